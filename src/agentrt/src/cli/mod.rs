//! The command line.

mod doctor;
mod interrupt;
mod parse;
mod run;
mod streams;
mod terminal;

use clap::{Parser, Subcommand};

/// Exit status when agentrt itself fails, as env(1) and timeout(1) have it.
pub const FAILED: i32 = 125;

/// AI agents in KVM virtual machines without a guest kernel.
#[derive(Parser)]
#[command(name = "agentrt", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program in a virtual machine of its own.
    Run(Box<run::Options>),
    /// Examine this host: can agentrt run here, and what costs speed or safety?
    Doctor(doctor::Options),
}

/// Runs the command that the arguments name, and ends the process as it demands.
pub fn main() -> ! {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| {
        // Help and version are no errors.
        let status = if error.use_stderr() { FAILED } else { 0 };
        let _ = error.print();
        std::process::exit(status)
    });
    match arguments.command {
        Command::Run(options) => run::run(*options),
        Command::Doctor(options) => doctor::run(&options),
    }
}
