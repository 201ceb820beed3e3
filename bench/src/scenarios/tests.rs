//! Every scenario still works. The numbers of such a run mean nothing.

use std::path::PathBuf;
use std::process::Command;

use super::*;

/// The agentrt beside this test, built if nobody has built it yet.
fn agentrt() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let directory = test.ancestors().nth(2).unwrap();
    let binary = directory.join("agentrt");
    if !binary.is_file() {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "agentrt", "--target-dir"])
            .arg(directory.parent().unwrap())
            .args((!cfg!(debug_assertions)).then_some("--release"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(status.success());
    }
    binary
}

#[test]
fn every_scenario_works() {
    let setting = Setting {
        agentrt: Agentrt::new(agentrt()).unwrap(),
        scale: Scale::Smoke,
    };
    for scenario in ALL {
        match (scenario.run)(&setting) {
            Ok(Outcome::Skipped(what)) => eprintln!("skipped: {}: {what}", scenario.name),
            Ok(Outcome::Measured(figures)) => {
                assert!(!figures.is_empty(), "{}", scenario.name);
                for figure in figures {
                    assert!(
                        figure.subject.median.is_finite(),
                        "{}: {figure:?}",
                        scenario.name
                    );
                    assert!(
                        figure.subject.median >= 0.0,
                        "{}: {figure:?}",
                        scenario.name
                    );
                }
            }
            Err(error) => panic!("{}: {error}", scenario.name),
        }
    }
}

#[test]
fn a_missing_agentrt_is_named() {
    let error = Agentrt::new("/nowhere/agentrt".into())
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "no agentrt at /nowhere/agentrt; build it with `cargo build --release --package agentrt`, \
         or name one with --agentrt"
    );
}
