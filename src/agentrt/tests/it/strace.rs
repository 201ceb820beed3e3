//! `--strace` prints what strace(1) prints for the same program.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use super::harness::{ENVIRONMENT, Ended, Job, assert_same, scratch, tests, text};

tests![same_as_strace, to_standard_error, bad_pointers];

/// Calls whose arguments or results are another process's business: only their names are compared.
const PRIVATE: [&str; 4] = ["set_tid_address(", "rseq(", "prlimit64(", "getrandom("];

/// How the dynamic loader gets memory for its own. When it does depends on how many libraries it
/// knows, and natively it knows one more, the vDSO.
const LOADER_MEMORY: &str =
    "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0)";

/// The lines that strace(1) prints for a command.
fn native(command: &[&str]) -> Vec<String> {
    let directory = scratch();
    let file = directory.path().join("trace");
    let mut strace = Command::new("/usr/bin/strace");
    strace
        .arg("-o")
        .arg(&file)
        .args(command)
        .env_clear()
        .envs(ENVIRONMENT)
        .current_dir("/");
    let output = strace.output().expect("strace starts");
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&fs::read(&file).expect("a trace"));
    // The call that started the program, and the epilogue.
    lines
        .into_iter()
        .filter(|line| !line.starts_with("execve(") && !line.starts_with("+++"))
        .collect()
}

/// The lines that agentrt prints.
fn guest(command: &[&str]) -> Vec<String> {
    let directory = scratch();
    let file = directory.path().join("trace");
    let mut option = OsString::from("--strace=");
    option.push(&file);
    Job::new(command)
        .option(option)
        .guest()
        .ended(Ended::Exit(0));
    lines(&fs::read(&file).expect("a trace"))
}

fn lines(trace: &[u8]) -> Vec<String> {
    text(trace)
        .lines()
        .filter(|line| !line.starts_with(LOADER_MEMORY))
        .map(normal)
        .collect()
}

/// A line without what differs from run to run: addresses, and the padding before the result.
fn normal(line: &str) -> String {
    if let Some(name) = PRIVATE.iter().find(|name| line.starts_with(**name)) {
        return format!("{name}…)");
    }
    // The heap of a program that is not relocated has short addresses; elsewhere short numbers are
    // flags and sizes.
    let heap = ["brk(", "arch_prctl(", "set_robust_list("]
        .iter()
        .any(|name| line.starts_with(name));
    let shortest = if heap { 5 } else { 9 };
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| without_address(word, shortest))
        .collect();
    words.join(" ")
}

/// A word with ADDRESS in place of a hexadecimal number of at least `shortest` digits.
fn without_address(word: &str, shortest: usize) -> String {
    let Some(at) = word.find("0x") else {
        return word.to_owned();
    };
    let digits = word[at + 2..]
        .bytes()
        .take_while(u8::is_ascii_hexdigit)
        .count();
    if digits < shortest {
        return word.to_owned();
    }
    format!("{}ADDRESS{}", &word[..at], &word[at + 2 + digits..])
}

fn same_as_strace() {
    let directory = scratch();
    fs::write(
        directory.path().join("a \"file\"\n"),
        "text\twith \u{1} and \u{e4}\n",
    )
    .expect("a file");
    fs::create_dir(directory.path().join("sub")).expect("a directory");
    let path = directory.path().to_str().expect("a path of ASCII");
    let file = format!("{path}/a \"file\"\n");
    let commands: [&[&str]; 8] = [
        &["/bin/true"],
        &["/bin/cat", &file],
        &["/bin/cat", "/proc/sys/kernel/ostype"],
        &["/usr/bin/head", "-n", "1", &file],
        &["/usr/bin/wc", "-c", &file],
        &["/usr/bin/realpath", &format!("{path}/sub/../sub")],
        &["/usr/bin/touch", &file],
        &["/usr/bin/busybox", "cat", &file],
    ];
    for command in commands {
        let (native, guest) = (native(command), guest(command));
        assert_same(
            &format!("{command:?}"),
            native.join("\n").as_bytes(),
            guest.join("\n").as_bytes(),
        );
    }
}

fn to_standard_error() {
    let outcome = Job::new(["/bin/echo", "hello"]).option("--strace").guest();
    let outcome = outcome.ended(Ended::Exit(0));
    assert_eq!(outcome.out(), "hello\n");
    let lines: Vec<String> = outcome.err().lines().map(str::to_owned).collect();
    assert!(
        lines.contains(&"write(1, \"hello\\n\", 6) = 6".to_owned()),
        "{outcome:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("exit_group(0) = ?"));
}

/// What a hostile program passes is printed, not believed.
fn bad_pointers() {
    let script = "import ctypes\n\
        call = ctypes.CDLL(None).syscall\n\
        wrong = ctypes.c_ulong(0xffff800000000123)\n\
        for number in range(335): number in (15, 23, 34, 60, 231) or call(number, wrong, wrong, wrong, wrong, wrong, wrong)\n\
        print('alive')";
    let outcome = Job::python(script).option("--strace").guest();
    assert_eq!(outcome.ended, Ended::Exit(0), "{outcome:?}");
    assert_eq!(outcome.out(), "alive\n");
}
