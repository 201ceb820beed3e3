//! agentrt: AI agents in KVM virtual machines without a guest kernel.
