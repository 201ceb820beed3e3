//! What is refused, with which exit status and message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::harness::{Ended, Job, agentrt, process, scratch, tests, text};

tests![
    options_are_refused,
    programs_are_refused,
    unwritable_outputs,
    no_kvm_is_explained
];

/// Arguments of agentrt, and a part of the message.
const REFUSED: &[(&[&str], &str)] = &[
    (&[], "Usage"),
    (&["fly"], "fly"),
    (&["run"], "PROGRAM"),
    (&["run", "--"], "PROGRAM"),
    (
        &["run", "--no-such-option", "--", "/bin/true"],
        "--no-such-option",
    ),
    (&["run", "--memory=lots", "--", "/bin/true"], "512M"),
    (&["run", "--memory=-1", "--", "/bin/true"], "512M"),
    (
        &["run", "--memory=99999999999999999999", "--", "/bin/true"],
        "512M",
    ),
    (
        &["run", "--memory=99999999999999T", "--", "/bin/true"],
        "512M",
    ),
    (&["run", "--timeout=soon", "--", "/bin/true"], "30s"),
    (&["run", "--timeout=0", "--", "/bin/true"], "30s"),
    (&["run", "--timeout=-5s", "--", "/bin/true"], "30s"),
    (&["run", "--timeout=nan", "--", "/bin/true"], "30s"),
    (&["run", "--env=novalue", "--", "/bin/true"], "NAME=VALUE"),
    (&["run", "--env==x", "--", "/bin/true"], "NAME=VALUE"),
    (&["run", "--volume=/tmp", "--", "/bin/true"], "HOST:GUEST"),
    (
        &["run", "--volume=/tmp:relative", "--", "/bin/true"],
        "HOST:GUEST",
    ),
    (&["run", "--volume=:/x", "--", "/bin/true"], "HOST:GUEST"),
    (
        &["run", "--volume=/nowhere/at/all:/x", "--", "/bin/true"],
        "/nowhere/at/all",
    ),
    (&["run", "--volume=/tmp:/", "--", "/bin/true"], "/"),
    (
        &["run", "--root=/nowhere/at/all", "--", "/bin/true"],
        "/nowhere/at/all",
    ),
    (
        &["run", "--root=/etc/passwd", "--", "/bin/true"],
        "/etc/passwd",
    ),
    (
        &["run", "--cwd=/nowhere/at/all", "--", "/bin/true"],
        "/nowhere/at/all",
    ),
    (&["run", "--cwd=relative", "--", "/bin/true"], "relative"),
    (&["run", "--stats=fd:x", "--", "/bin/true"], "fd:N"),
    (&["run", "--stats=fd:-1", "--", "/bin/true"], "fd:N"),
    (&["run", "--stats=fd:77", "--", "/bin/true"], "fd:77"),
    (
        &["run", "--stats=/nowhere/at/all", "--", "/bin/true"],
        "/nowhere/at/all",
    ),
    (
        &["run", "--strace=/nowhere/at/all", "--", "/bin/true"],
        "/nowhere/at/all",
    ),
    (&["run", "--memory=1K", "--", "/bin/true"], "memory"),
];

fn options_are_refused() {
    for (arguments, message) in REFUSED {
        let mut command = Command::new(agentrt());
        command.args(*arguments).env_clear();
        let outcome = process::finish(command, Vec::new(), std::time::Duration::from_secs(20));
        assert_eq!(
            outcome.ended,
            Ended::Exit(125),
            "{arguments:?}: {outcome:?}"
        );
        assert!(outcome.stdout.is_empty(), "{arguments:?}: {outcome:?}");
        assert!(
            outcome.err().contains(message),
            "{arguments:?}: {outcome:?}"
        );
    }
}

/// Contents and mode of a file, and the exit status when it is run.
const PROGRAMS: &[(&str, &[u8], u32, i32)] = &[
    ("not-executable", b"#!/bin/sh\n", 0o644, 126),
    ("empty", b"", 0o755, 126),
    ("text", b"hello\n", 0o755, 126),
    ("short-elf", b"\x7fELF", 0o755, 126),
    (
        "other-machine",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7\0\x01\0\0\0",
        0o755,
        126,
    ),
    (
        "32-bit",
        b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\0\0",
        0o755,
        126,
    ),
    ("empty-line", b"#!\n", 0o755, 126),
    ("missing-interpreter", b"#!/nowhere/at/all\n", 0o755, 127),
    ("directory-interpreter", b"#!/etc\n", 0o755, 126),
];

fn programs_are_refused() {
    let directory = scratch();
    for (name, contents, mode, status) in PROGRAMS {
        let path = directory.path().join(name);
        fs::write(&path, contents).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).expect("a mode");
        let outcome = Job::new([format!("/data/{name}")])
            .volume(directory.path(), "/data")
            .guest();
        assert_eq!(outcome.ended, Ended::Exit(*status), "{name}: {outcome:?}");
        let message = outcome.err();
        assert!(
            message.starts_with("agentrt: ") && message.lines().count() == 1,
            "{name}: {message}"
        );
    }
    for (program, status) in [
        ("/nowhere/at/all", 127),
        ("no-such-program-at-all", 127),
        ("", 127),
        ("/etc", 126),
        ("/etc/passwd", 126),
        ("/etc/passwd/x", 126),
        ("/dev/null", 126),
    ] {
        let outcome = Job::new([program]).guest();
        assert_eq!(outcome.ended, Ended::Exit(status), "{program}: {outcome:?}");
        assert!(outcome.err().contains(program), "{program}: {outcome:?}");
    }
    let damaged = truncated_programs();
    for (length, program) in damaged {
        let path = directory.path().join("damaged");
        fs::write(&path, program).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        let outcome = Job::new(["/data/damaged"])
            .volume(directory.path(), "/data")
            .guest();
        let message = text(&outcome.stderr);
        let explained = outcome.ended == Ended::Exit(126) && message.starts_with("agentrt: ");
        let died = matches!(outcome.ended, Ended::Signal(7 | 11));
        assert!(explained || died, "{length}: {outcome:?}");
    }
}

/// The first bytes of a real program.
fn truncated_programs() -> impl Iterator<Item = (usize, Vec<u8>)> {
    let program = fs::read("/usr/bin/busybox").expect("a static program");
    [16, 63, 64, 100, 300, 4096, 5000, 400_000]
        .into_iter()
        .map(move |length| (length, program[..length.min(program.len())].to_vec()))
}

fn unwritable_outputs() {
    // The program has run by then: it is told, and not taken for the program's own status.
    let outcome = Job::new(["/bin/echo", "done"])
        .option("--stats=/dev/full")
        .guest();
    let outcome = outcome.ended(Ended::Exit(125));
    assert_eq!(outcome.out(), "done\n");
    assert!(outcome.err().contains("/dev/full"), "{outcome:?}");
    // A trace that cannot be written must not end a program.
    let outcome = Job::new(["/bin/echo", "done"])
        .option("--strace=/dev/full")
        .guest();
    assert_eq!(outcome.ended(Ended::Exit(0)).out(), "done\n");
}

fn no_kvm_is_explained() {
    // Where nobody but root may use KVM, somebody else is told how.
    let mut command = Command::new("/usr/bin/setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(agentrt());
    command.args(["run", "--", "/bin/true"]).env_clear();
    let mode = fs::metadata("/dev/kvm")
        .expect("/dev/kvm")
        .permissions()
        .mode();
    if mode & 0o006 == 0o006 || !rustix::process::geteuid().is_root() {
        return;
    }
    let outcome = process::finish(command, Vec::new(), std::time::Duration::from_secs(20));
    if outcome.err().contains("failed to execute") {
        return;
    }
    assert_eq!(outcome.ended, Ended::Exit(125), "{outcome:?}");
    assert!(outcome.err().contains("/dev/kvm"), "{outcome:?}");
}
