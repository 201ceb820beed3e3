//! Runs the benchmarks: prints a table and writes a JSON file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentrt_bench::BenchError;
use agentrt_bench::host::Host;
use agentrt_bench::process::Agentrt;
use agentrt_bench::report::Report;
use agentrt_bench::scenarios::{ALL, Scale, Setting};
use clap::Parser;

/// Measures agentrt against peers in the same run.
#[derive(Parser)]
struct Options {
    /// Scenarios to run; all of them if none is named.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(ALL.map(|scenario| scenario.name)))]
    scenarios: Vec<String>,
    /// Fail if a bar is not met.
    #[arg(long)]
    check: bool,
    /// Only see that everything works; the numbers then mean nothing.
    #[arg(long)]
    smoke: bool,
    /// The agentrt to measure; else the one beside this program.
    #[arg(long, value_name = "FILE")]
    agentrt: Option<PathBuf>,
    /// Where the JSON file goes; else `bench` in the build directory.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("agentrt-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well: bars count if they are to be checked.
fn run(options: Options) -> Result<bool, BenchError> {
    let program = std::env::current_exe().map_err(|error| BenchError::Read {
        path: "/proc/self/exe".into(),
        error,
    })?;
    let directory = program.parent().unwrap_or(Path::new("."));
    let setting = Setting {
        agentrt: Agentrt::new(options.agentrt.unwrap_or_else(|| directory.join("agentrt")))?,
        scale: if options.smoke {
            Scale::Smoke
        } else {
            Scale::Full
        },
    };
    let mut report = Report {
        host: Host::examine(),
        scenarios: Vec::new(),
    };
    let chosen = |name: &str| {
        options.scenarios.is_empty() || options.scenarios.iter().any(|chosen| chosen == name)
    };
    for scenario in ALL.into_iter().filter(|scenario| chosen(scenario.name)) {
        eprintln!("measuring {}", scenario.name);
        report
            .scenarios
            .push((scenario.name, (scenario.run)(&setting)?));
    }
    print!("{}", report.table());
    let output = options
        .output
        .unwrap_or_else(|| directory.with_file_name("bench"));
    println!("\nwritten to {}", report.save(&output)?.display());
    Ok(report.is_met() || !options.check)
}
