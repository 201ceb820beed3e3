//! What depends on the kind of KVM, in few and quick tests that need no compiler and no other tool
//! than Python, busybox and some of coreutils: the emulated machine of `tools/svm` runs them.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::harness::{Ended, Job, process, scratch, tests};

tests![
    busybox_says_hello,
    coreutils,
    python_prints,
    standard_library,
    database,
    writable_layer,
    volume,
    memory,
    segmentation_faults,
    exceptions,
    code_at_run_time,
    time_limit,
    signal_from_outside,
    sites_are_rewritten,
    trace,
    odd_stacks,
    ports,
];

/// Emulation is slow.
const LIMIT: Duration = Duration::from_secs(100);

fn python(script: &str) -> Job {
    Job::python(script).limit(LIMIT)
}

fn busybox_says_hello() {
    let job = Job::new([
        "/usr/bin/busybox",
        "sh",
        "-c",
        "read name; echo hello $name; exit 7",
    ]);
    let outcome = job
        .input("there\n")
        .limit(LIMIT)
        .guest()
        .ended(Ended::Exit(7));
    assert_eq!(outcome.out(), "hello there\n");
}

fn coreutils() {
    let job = Job::new(["/usr/bin/sha256sum"])
        .input("some text")
        .limit(LIMIT);
    let sum = "b94f6f125c79e3a5ffaa826f584c10d52ada669e6762051b826b55776d05aed2  -\n";
    assert_eq!(job.guest().ok().out(), sum);
    let job = Job::new(["/usr/bin/sort", "-n"])
        .input("10\n9\n-1\n")
        .limit(LIMIT);
    assert_eq!(job.guest().ok().out(), "-1\n9\n10\n");
}

fn python_prints() {
    assert_eq!(
        python("print(6 * 7, 2**100, 0.1 + 0.2)").guest().ok().out(),
        format!("42 {} 0.30000000000000004\n", 1u128 << 100)
    );
    python("import sys; sys.exit(3)")
        .guest()
        .ended(Ended::Exit(3));
}

fn standard_library() {
    let script = "import json, hashlib, re, zlib, decimal, datetime\n\
        print(json.dumps({'a': [1, None, 'x']}), hashlib.sha256(b'x' * 100000).hexdigest()[:16])\n\
        print(re.sub('(a+)b', r'<\\1>', 'aab ab'), len(zlib.compress(bytes(100000))), decimal.Decimal(1) / 3)";
    let expected =
        "{\"a\": [1, null, \"x\"]} d69e689881578332\n<aa> <a> 120 0.3333333333333333333333333333\n";
    assert_eq!(python(script).guest().ok().out(), expected);
}

fn database() {
    let script = "import sqlite3\n\
        c = sqlite3.connect('/tmp/data.db'); c.execute('create table t (x)')\n\
        c.executemany('insert into t values (?)', [(i,) for i in range(500)]); c.commit(); c.close()\n\
        print(sqlite3.connect('/tmp/data.db').execute('select sum(x), count(*) from t').fetchone())";
    assert_eq!(python(script).guest().ok().out(), "(124750, 500)\n");
}

fn writable_layer() {
    let script = "import os\n\
        os.makedirs('/tmp/a/b'); open('/tmp/a/b/c', 'w').write('x' * 10000); os.rename('/tmp/a/b', '/tmp/b')\n\
        open('/etc/passwd', 'a').write('more'); os.remove('/etc/hosts')\n\
        print(len(open('/tmp/b/c').read()), open('/etc/passwd').read()[-4:], os.path.exists('/etc/hosts'))";
    let before = fs::read("/etc/passwd").expect("a file of the host's");
    assert_eq!(python(script).guest().ok().out(), "10000 more False\n");
    assert_eq!(
        fs::read("/etc/passwd").expect("a file of the host's"),
        before
    );
}

fn volume() {
    let directory = scratch();
    fs::write(directory.path().join("in"), "from the host\n").expect("a file");
    let script = "text = open('/data/in').read(); open('/data/out', 'w').write(text.upper())";
    python(script)
        .volume(directory.path(), "/data")
        .guest()
        .ok();
    assert_eq!(
        fs::read_to_string(directory.path().join("out")).expect("a file"),
        "FROM THE HOST\n"
    );
}

fn memory() {
    let script = "import mmap, ctypes\n\
        libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p\n\
        big = libc.mmap(None, ctypes.c_size_t(1 << 36), 0, 0x4022, -1, ctypes.c_long(0))\n\
        for at in range(0, 1 << 36, 1 << 33):\n \
         assert libc.mprotect(ctypes.c_void_p(big + at), 8192, 3) == 0; ctypes.memset(big + at, at >> 33, 8192)\n\
        print([ctypes.string_at(big + at + 8191, 1)[0] for at in range(0, 1 << 36, 1 << 33)])\n\
        print(libc.munmap(ctypes.c_void_p(big), ctypes.c_size_t(1 << 36)))\n\
        with open('/tmp/f', 'w+b') as f:\n \
         f.write(bytes(10000)); f.flush(); m = mmap.mmap(f.fileno(), 10000); m[5000:5005] = b'hello'; m.flush()\n \
         f.seek(5000); print(f.read(5))\n\
        data = [bytearray(1 << 20) for _ in range(32)]; print(sum(map(len, data)))\n\
        for _ in range(20): m = mmap.mmap(-1, 4 << 20); m[::4096] = b'x' * 1024; m.close()\n\
        print('done')";
    let outcome = python(script).option("--memory=96M").guest().ok();
    assert_eq!(
        outcome.out(),
        "[0, 1, 2, 3, 4, 5, 6, 7]\n0\nb'hello'\n33554432\ndone\n"
    );
}

fn segmentation_faults() {
    let actions = [
        "ctypes.string_at(0)",
        "ctypes.memset(ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value, 0, 1)",
        "ctypes.string_at(0x7fffff000000 - 4096)",
        "ctypes.memset(0x7fffff000000, 0, 1)",
        "ctypes.string_at(0xffffffff81000000)",
        "ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_int()))()",
    ];
    for action in actions {
        let outcome = python(&format!(
            "import ctypes; print('before', flush=True); {action}"
        ))
        .guest();
        assert_eq!(
            (outcome.ended, outcome.out().as_str()),
            (Ended::Signal(11), "before\n"),
            "{action}"
        );
    }
}

/// Makes a function of machine code, in hexadecimal, and calls it.
fn machine_code(code: &str) -> String {
    format!(
        "import ctypes, mmap\n\
         m = mmap.mmap(-1, 4096, flags=0x22, prot=7); m.write(b'\\x90' * 64 + bytes.fromhex('{code}c3'))\n\
         f = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)) + 64)\n"
    )
}

fn exceptions() {
    // div, ud2, int3, hlt, out to the port of a ring-0 stub, mov to cr3, wrmsr.
    let codes = [
        ("31d231c9f7f1", 8),
        ("0f0b", 4),
        ("cc", 5),
        ("f4", 11),
        ("e60e", 11),
        ("0f22d8", 11),
        ("0f30", 11),
    ];
    for (code, signal) in codes {
        let outcome = python(&(machine_code(code) + "f()")).guest();
        assert_eq!(outcome.ended, Ended::Signal(signal), "{code}: {outcome:?}");
    }
}

fn code_at_run_time() {
    // mov $SYS_getppid, %eax; syscall
    let script = machine_code("b86e0000000f05") + "print([f() for _ in range(100)] == [0] * 100)";
    let (outcome, stats) = python(&script).stats();
    assert_eq!(outcome.ok().out(), "True\n");
    let calls = &stats["syscalls"]["getppid"];
    assert_eq!(
        (number(&calls["calls"]), number(&calls["trapped"])),
        (100, 1),
        "{stats}"
    );
    assert!(number(&stats["sites"]["lazily_patched"]) >= 1, "{stats}");
    // A number that is in a register only: each call comes by the syscall instruction.
    let script =
        machine_code("b86e00000090900f05") + "print([f() for _ in range(100)] == [0] * 100)";
    let (outcome, stats) = python(&script).stats();
    assert_eq!(outcome.ok().out(), "True\n");
    assert_eq!(
        number(&stats["syscalls"]["getppid"]["trapped"]),
        100,
        "{stats}"
    );
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

fn time_limit() {
    for script in ["while True: pass", "import time; time.sleep(1000)"] {
        python(script)
            .option("--timeout=3s")
            .guest()
            .ended(Ended::Exit(124));
    }
}

fn signal_from_outside() {
    let script = "print('ready', flush=True)\nwhile True: pass";
    let mut child = process::spawn(python(script).guest_command());
    let mut ready = [0; 6];
    let stdout = child.stdout.as_mut().expect("a pipe");
    std::io::Read::read_exact(stdout, &mut ready).expect("a line");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    let outcome = process::finish_child(child, Vec::new(), LIMIT).expect("an end in time");
    assert_eq!(outcome.ended, Ended::Signal(15));
}

fn sites_are_rewritten() {
    let (outcome, stats) = python("print('counted')").stats();
    assert_eq!(outcome.ok().out(), "counted\n");
    let calls: Vec<&Value> = stats["syscalls"]
        .as_object()
        .expect("an object")
        .values()
        .collect();
    let sum = |key| calls.iter().map(|call| number(&call[key])).sum::<u64>();
    assert_eq!(sum("calls"), sum("patched") + sum("trapped"));
    assert!(sum("patched") > 10 * sum("trapped").max(1), "{stats}");
    assert_eq!(sum("calls"), number(&stats["exits"]["syscall"]), "{stats}");
    assert!(number(&stats["sites"]["rewritten"]) > 400, "{stats}");
}

fn trace() {
    let job = Job::new(["/usr/bin/echo", "traced"])
        .limit(LIMIT)
        .option("--strace");
    let mut command = job.guest_command();
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("agentrt starts");
    let trace = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        trace.contains("write(1, \"traced\\n\", 7) = 7\n"),
        "{trace}"
    );
    assert!(
        trace.contains("openat(AT_FDCWD, \"/etc/ld.so.cache\""),
        "{trace}"
    );
}

/// A syscall leaves stack and red zone alone, wherever they are.
fn odd_stacks() {
    // mov %rsp,%r9; mov $-8,%rsp; mov $SYS_getppid,%eax; syscall; mov $SYS_getpid,%eax; nop; nop;
    // syscall; mov %r9,%rsp
    let code = "4989e148c7c4f8ffffffb86e0000000f05b82700000090900f054c89cc";
    assert_eq!(
        python(&(machine_code(code) + "print(f(), f())"))
            .guest()
            .ok()
            .out(),
        "1 1\n"
    );
}

/// The port that the shim writes to is open to the whole of ring 3 on hardware KVM: what is written
/// there is a syscall, and all other input and output ends the program.
fn ports() {
    let getppid = "b86e000000";
    let codes = [
        ("out", format!("{getppid}e620")),
        ("out of a word", format!("{getppid}66e720")),
        ("out to a stub's port", "e60e".to_owned()),
        ("in", "e420".to_owned()),
        (
            "rep outs",
            format!("488d35f9ffffffb905000000{getppid}66ba2000f36e"),
        ),
        ("rep ins", "488d3df9ffffffb90500000066ba2000f36c".to_owned()),
    ];
    for (what, code) in codes {
        let outcome = python(&(machine_code(&code) + "f()"))
            .option("--timeout=30s")
            .guest();
        let fine = matches!(outcome.ended, Ended::Exit(0) | Ended::Signal(11));
        assert!(fine && outcome.stderr.is_empty(), "{what}: {outcome:?}");
    }
}
