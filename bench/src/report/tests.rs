use super::*;
use crate::measure::Pairs;

fn report(bar: f64) -> Report {
    let pairs = Pairs {
        subject: vec![30.0, 31.0, 32.0],
        peer: vec![10.0, 10.0, 10.0],
    };
    let figures = vec![
        Figure::compared("wall", "ms", "native", &pairs, Some(Bar::Ratio(bar))),
        Figure::alone("files left", "", &[0.0], Bar::Value(0.0)),
    ];
    let scenarios = vec![
        ("pass", Outcome::Measured(figures)),
        ("node", Outcome::Skipped("no node")),
    ];
    Report {
        host: Host::examine(),
        scenarios,
    }
}

#[test]
fn the_table_has_a_row_for_each_figure() {
    assert_eq!(
        report(3.2).table(),
        "| scenario | figure | agentrt | peer | ratio | bar | |\n\
         |---|---|---|---|---|---|---|\n\
         | pass | wall | 31.0 ms (30.2–31.8) | native: 10.0 ms (10.0–10.0) | 3.10 × (3.02–3.18) | ≤ 3.2× | met |\n\
         | pass | files left | 0 |  |  | ≤ 0 | met |\n\
         | node | skipped: no node | | | | | |\n"
    );
}

#[test]
fn a_bar_that_is_not_met_shows() {
    assert!(report(3.2).is_met());
    assert!(!report(3.0).is_met());
    assert!(report(3.0).table().contains("| NOT met |"));
}

#[test]
fn the_file_holds_the_host_and_every_sample_summary() {
    let directory = tempfile::tempdir().unwrap();
    let path = report(3.0).save(&directory.path().join("made")).unwrap();
    let saved: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(saved["host"]["kernel"].is_string());
    let figure = &saved["scenarios"][0][1]["measured"][0];
    assert_eq!(
        (
            figure["subject"]["median"].as_f64(),
            figure["met"].as_bool()
        ),
        (Some(31.0), Some(false))
    );
}
