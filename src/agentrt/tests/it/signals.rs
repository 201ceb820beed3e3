//! Deaths by signal, and signals that come from outside.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::harness::{Ended, Job, Linkage, compile, process, tests};

tests![
    deaths_by_fault,
    deaths_by_signal,
    harmless_signals,
    signals_from_outside,
    signals_while_waiting,
    ignored_signals_stay_ignored,
];

const LIMIT: Duration = Duration::from_secs(60);

fn end(arguments: &[&str]) -> Job {
    let job = Job::new([compile("end", Linkage::Static)]);
    arguments
        .iter()
        .fold(job, |job, argument| job.argument(*argument))
}

/// Faults and forbidden instructions, each with the signal that Linux sends for it.
fn deaths_by_fault() {
    let faults = [
        ("null", 11),
        ("kernel", 11),
        ("noncanonical", 11),
        ("fetch", 11),
        ("divide", 8),
        ("sse", 8),
        ("x87", 8),
        ("ud2", 4),
        ("int3", 5),
        ("trap", 5),
        ("bus", 7),
        ("alignment", 7),
        ("hlt", 11),
        ("cli", 11),
        ("out", 11),
        ("in", 11),
        ("cr3", 11),
        ("wrmsr", 11),
        ("lgdt", 11),
    ];
    for (fault, signal) in faults {
        let outcome = end(&[fault]).guest();
        assert_eq!(
            (outcome.ended, outcome.out().as_str()),
            (Ended::Signal(signal), "before\n"),
            "{fault}"
        );
    }
}

fn deaths_by_signal() {
    for signal in [1, 2, 3, 4, 6, 9, 10, 13, 14, 15, 24, 31, 34, 64] {
        let outcome = end(&["signal", &signal.to_string()]).same();
        outcome.ended(Ended::Signal(signal));
    }
    end(&["abort"]).same().ended(Ended::Signal(6));
    let outcome = end(&["blocked", "15"]).same().ended(Ended::Signal(15));
    assert_eq!(outcome.out(), "before\nstill here\n");
}

fn harmless_signals() {
    for signal in ["17", "18", "23", "28"] {
        assert_eq!(
            end(&["signal", signal]).same().ended(Ended::Exit(0)).out(),
            "before\nafter\n"
        );
    }
    end(&["ignored", "15"]).same().ended(Ended::Exit(0));
    // A core file is written by nobody.
    assert_eq!(
        Job::python("import os; os.abort()").guest().ended,
        Ended::Signal(6)
    );
}

/// Sends `signal` once the guest has printed its first line; returns how it ended.
fn interrupted(script: &str, signal: Signal) -> Ended {
    let mut command = Job::python(script).guest_command();
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().expect("agentrt starts");
    // Kept open, so that a reader waits.
    let _input = child.stdin.take();
    let mut ready = [0; 6];
    child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut ready)
        .expect("a line");
    let sent = Instant::now();
    kill_process(Pid::from_child(&child), signal).expect("a signal");
    let ended = process::wait(&mut child, LIMIT)
        .expect("an end in time")
        .into();
    assert!(
        sent.elapsed() < Duration::from_secs(5),
        "{:?}",
        sent.elapsed()
    );
    ended
}

const DEFAULT: &str = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n";

fn signals_from_outside() {
    let signals = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::USR1,
        Signal::USR2,
    ];
    for signal in signals {
        let script = format!("{DEFAULT}print('ready', flush=True)\nwhile True: pass");
        assert_eq!(interrupted(&script, signal), Ended::Signal(signal.as_raw()));
    }
}

fn signals_while_waiting() {
    for wait in [
        "import time; time.sleep(1000)",
        "input()",
        "import time; time.sleep(1e9)",
    ] {
        let script = format!("{DEFAULT}print('ready', flush=True)\n{wait}");
        assert_eq!(
            interrupted(&script, Signal::TERM),
            Ended::Signal(15),
            "{wait}"
        );
    }
}

fn ignored_signals_stay_ignored() {
    let script = "import signal, time\n\
        print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)\n\
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)";
    let guest = Job::python(script).guest_command();
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(guest.get_program())
        .args(guest.get_args());
    let output = shell.output().expect("a shell");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "True\nTrue\n",
        "{output:?}"
    );
}
