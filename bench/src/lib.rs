//! Benchmarks of agentrt against peers measured in the same run.
