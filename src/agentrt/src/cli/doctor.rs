//! `agentrt doctor`.

use agentrt::doctor::{Status, examine};

/// Options of `agentrt doctor`.
#[derive(clap::Args)]
pub struct Options {
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// Examines the host; exit status 1 if agentrt cannot run here.
pub fn run(options: &Options) -> ! {
    let report = examine();
    if options.json {
        match serde_json::to_string_pretty(&report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("agentrt: cannot print the report: {error}"),
        }
    } else {
        print!("{report}");
    }
    std::process::exit(i32::from(report.status == Status::Fail))
}
