//! `--stats`: the numbers are there, and they can be true.

use std::process::Command;

use serde_json::Value;

use super::harness::{Ended, Job, Linkage, compile, tests, text};

tests![
    keys_are_documented,
    numbers_add_up,
    unknown_calls_show,
    lazily_patched,
    open_descriptor,
    after_every_end
];

const TOP: [&str; 9] = [
    "cpu_us",
    "exits",
    "first_instruction_us",
    "first_syscall_us",
    "page_faults",
    "pages_touched",
    "sites",
    "syscalls",
    "wall_us",
];

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} is no number: {value}"))
}

fn keys_are_documented() {
    let (_, stats) = Job::new(["/bin/true"]).stats();
    let mut keys: Vec<&String> = stats.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(keys, TOP);
    for key in ["syscall", "page_fault", "exception", "interrupted"] {
        number(&stats["exits"], key);
    }
    for key in ["rewritten", "trapped", "lazily_patched"] {
        number(&stats["sites"], key);
    }
}

fn numbers_add_up() {
    let (outcome, stats) = Job::python("print(sum(range(1000)))").stats();
    assert_eq!(outcome.ok().out(), "499500\n");
    let calls: Vec<&Value> = stats["syscalls"]
        .as_object()
        .expect("an object")
        .values()
        .collect();
    let sum = |key| calls.iter().map(|call| number(call, key)).sum::<u64>();
    assert_eq!(sum("calls"), number(&stats["exits"], "syscall"));
    assert_eq!(sum("calls"), sum("patched") + sum("trapped"));
    assert!(
        sum("patched") > 200 && sum("patched") > sum("trapped"),
        "{stats}"
    );
    assert_eq!(number(&stats["syscalls"]["write"], "calls"), 1);
    assert!(number(&stats["sites"], "rewritten") > 400, "{stats}");
    let (first, second) = (
        number(&stats, "first_instruction_us"),
        number(&stats, "first_syscall_us"),
    );
    assert!(
        first > 0 && first <= second && second <= number(&stats, "wall_us"),
        "{stats}"
    );
    let (cpu, wall) = (number(&stats, "cpu_us"), number(&stats, "wall_us"));
    assert!(cpu > 0 && cpu <= wall + 50_000, "{stats}");
    // Python alone maps a few MB, and is far from using the gigabyte.
    assert!(
        (500..20_000).contains(&number(&stats, "pages_touched")),
        "{stats}"
    );
}

fn unknown_calls_show() {
    let script = "import ctypes\n\
        call = ctypes.CDLL(None, use_errno=True).syscall\n\
        for number in [425, 425, 9999, 77777, -1]: print(call(number, 0, 0, 0), ctypes.get_errno())";
    let (outcome, stats) = Job::python(script).stats();
    assert_eq!(outcome.ok().out(), "-1 38\n".repeat(5));
    let syscalls = &stats["syscalls"];
    assert_eq!(
        number(&syscalls["io_uring_setup"], "unknown"),
        2,
        "{syscalls}"
    );
    assert_eq!(
        number(&syscalls["unknown number"], "unknown"),
        3,
        "{syscalls}"
    );
    assert_eq!(number(&syscalls["write"], "unknown"), 0);
}

/// Code that the program makes at run time: its one site is patched when it is first met.
fn lazily_patched() {
    let (outcome, stats) = Job::new([compile("jit", Linkage::Static)])
        .argument("1000")
        .stats();
    assert_eq!(outcome.ok().out(), "1000 calls\n");
    assert!(number(&stats["sites"], "lazily_patched") >= 1, "{stats}");
    let call = &stats["syscalls"]["getppid"];
    assert_eq!(number(call, "calls"), 1000, "{stats}");
    assert_eq!(number(call, "trapped"), 1, "{stats}");
}

fn open_descriptor() {
    let mut shell = Command::new("/bin/sh");
    let command = Job::new(["/bin/true"])
        .option("--stats=fd:3")
        .guest_command();
    shell
        .args(["-c", "exec \"$@\" 3>&1", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let output = shell.output().expect("a shell");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
    assert!(number(&stats["exits"], "syscall") > 0, "{stats}");
    // The program does not get it.
    let command = Job::new(["/bin/ls", "/proc/self/fd"])
        .option("--stats=fd:9")
        .guest_command();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "exec \"$@\" 9>/dev/null", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    assert_eq!(text(&shell.output().expect("a shell").stdout), "0\n1\n2\n");
}

fn after_every_end() {
    let end = compile("end", Linkage::Static);
    for (how, ended) in [
        ("abort", Ended::Signal(6)),
        ("null", Ended::Signal(11)),
        ("ud2", Ended::Signal(4)),
    ] {
        let (outcome, stats) = Job::new([&end]).argument(how).stats();
        assert_eq!(outcome.ended, ended);
        assert!(number(&stats, "wall_us") > 0, "{stats}");
    }
    let job = Job::python("while True: pass").option("--timeout=300ms");
    let (outcome, stats) = job.stats();
    assert_eq!(outcome.ended, Ended::Exit(124));
    assert!(number(&stats, "wall_us") >= 300_000, "{stats}");
    let (outcome, stats) = Job::python("x = []\nwhile 1: x.append(bytes(9999))")
        .option("--memory=32M")
        .stats();
    assert_eq!(outcome.ended, Ended::Signal(9));
    assert!(number(&stats, "pages_touched") > 4096, "{stats}");
}
