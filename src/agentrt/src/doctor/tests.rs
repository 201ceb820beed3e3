use super::*;

fn report() -> Report {
    Report::new(vec![
        Check::ok("one", "fine"),
        Check::warn("second", "slow", "do this"),
    ])
}

#[test]
fn report_prints_remedies_below_their_checks() {
    assert_eq!(
        report().to_string(),
        "ok    one     fine\n\
         warn  second  slow\n\
         \x20             remedy: do this\n\
         1 ok, 1 to improve, 0 in the way\n"
    );
}

#[test]
fn report_has_the_worst_status() {
    assert_eq!(report().status, Status::Warn);
    let failed = Report::new(vec![
        Check::fail("a", "", "b"),
        Check::ok("c", ""),
        Check::warn("d", "", "e"),
    ]);
    assert_eq!(failed.status, Status::Fail);
    assert_eq!(Report::new(Vec::new()).status, Status::Ok);
}

#[test]
fn report_is_json() {
    assert_eq!(
        serde_json::to_value(report()).unwrap(),
        serde_json::json!({
            "status": "warn",
            "checks": [
                { "name": "one", "status": "ok", "found": "fine" },
                { "name": "second", "status": "warn", "found": "slow", "remedy": "do this" },
            ],
        })
    );
}

#[test]
fn this_machine_can_be_examined() {
    let report = examine();
    for check in &report.checks {
        assert_eq!(
            check.remedy.is_none(),
            check.status == Status::Ok,
            "{check:?}"
        );
        assert!(!check.found.contains('\n'), "{check:?}");
    }
    let mut names: Vec<_> = report.checks.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), report.checks.len(), "names are unique");
}

/// A tree with the given files, to stand for the root of a host.
pub(super) fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::TempDir::new().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    root
}
