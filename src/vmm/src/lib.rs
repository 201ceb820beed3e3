//! The KVM virtual machine of one agent: memory, vCPU, exits, platform.
