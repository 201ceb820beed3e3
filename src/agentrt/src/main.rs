//! The `agentrt` command.
fn main() {}
