//! The `agentrt` command.

mod cli;

fn main() {
    cli::main();
}
