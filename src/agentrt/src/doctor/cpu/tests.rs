use super::super::Status;
use super::super::tests::host;
use super::*;

const SMT_ON: [(&str, &str); 2] = [
    ("sys/devices/system/cpu/smt/control", "on\n"),
    ("sys/devices/system/cpu/smt/active", "1\n"),
];

fn examine(files: &[(&str, &str)]) -> [Check; 3] {
    let files: Vec<_> = files
        .iter()
        .map(|(path, content)| match path.starts_with("sys/") {
            true => ((*path).to_owned(), *content),
            false => (
                format!("sys/devices/system/cpu/vulnerabilities/{path}"),
                *content,
            ),
        })
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, content)| (path.as_str(), *content))
        .collect();
    checks(host(&files).path()).try_into().unwrap()
}

#[test]
fn processor_without_known_faults() {
    let [vulnerabilities, mitigations, smt] = examine(&[("meltdown", "Not affected\n")]);
    assert_eq!(vulnerabilities.status, Status::Ok);
    assert_eq!(mitigations.found, "none that slows entries and exits");
    assert_eq!(smt.found, "not active (not in this kernel)");
}

#[test]
fn open_faults_are_a_problem_and_mitigations_a_price() {
    let [vulnerabilities, mitigations, _] = examine(&[
        ("meltdown", "Mitigation: PTI\n"),
        (
            "spectre_v2",
            "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional\n",
        ),
        ("spec_store_bypass", "Vulnerable\n"),
    ]);
    assert_eq!(vulnerabilities.status, Status::Warn);
    assert!(
        vulnerabilities
            .found
            .ends_with(": spec_store_bypass (Vulnerable)")
    );
    assert_eq!(mitigations.status, Status::Ok);
    assert!(mitigations.found.ends_with(": meltdown (PTI)"));
}

#[test]
fn multithreading_is_a_problem_where_siblings_leak() {
    let [.., smt] = examine(&SMT_ON);
    assert_eq!(smt, Check::ok("cpu.smt", "active"));
    let mds = ("mds", "Mitigation: Clear CPU buffers; SMT vulnerable\n");
    let [.., smt] = examine(&[SMT_ON[0], SMT_ON[1], mds]);
    assert_eq!(smt.status, Status::Warn);
    assert!(smt.found.contains("mds"));
}

#[test]
fn hidden_sysfs_is_not_taken_for_a_safe_processor() {
    let [vulnerabilities, ..] = examine(&[]);
    assert_eq!(vulnerabilities.status, Status::Warn);
}
