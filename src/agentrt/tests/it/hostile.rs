//! Programs that attack their host: whatever they do, agentrt neither panics, nor hangs, nor gives
//! up; the program goes on or dies as a program does.

use std::process::Command;
use std::time::{Duration, Instant};

use super::harness::{Ended, Job, Linkage, Volume, compile, process, tests};

tests![
    every_call,
    vectors,
    strings,
    odd_instructions,
    odd_stacks,
    registers_are_kept,
    into_the_shim,
    huge_ranges,
    endless_transfers,
    memory_of_the_host,
    descriptors,
    deep_directories,
    signals_without_end,
];

fn calls(scenario: &str) {
    let job = Job::new([compile("hostile_calls", Linkage::Static)]).argument(scenario);
    let outcome = job.option("--memory=256M").guest();
    assert_eq!(outcome.ended, Ended::Exit(0), "{outcome:?}");
    assert!(outcome.out().ends_with("survived 1\n"), "{outcome:?}");
}

fn every_call() {
    calls("every_call");
}

fn vectors() {
    calls("vectors");
}

fn strings() {
    calls("strings");
}

fn code(arguments: &[&str]) -> Job {
    let job = Job::new([compile("hostile_code", Linkage::Static)]);
    arguments
        .iter()
        .fold(job, |job, argument| job.argument(*argument))
        .limit(Duration::from_secs(20))
}

/// The program went on, ran in circles, or died of a signal that a processor's exception brings.
#[track_caller]
fn lives_or_dies(what: &str, job: &Job) {
    let outcome = job.clone().option("--timeout=1s").guest();
    let fine = matches!(
        outcome.ended,
        Ended::Exit(0 | 124) | Ended::Signal(4 | 5 | 7 | 8 | 11)
    );
    // Software KVM does not enter a guest whose stack pointer is not canonical.
    let refused =
        what.starts_with("noncanonical") && outcome.err().contains("virtual machine failed");
    assert!(fine || refused, "{what}: {outcome:?}");
}

fn odd_instructions() {
    let names = code(&["names"]).guest().ok().out();
    let mut failures = Vec::new();
    for name in names.lines().filter(|name| *name != "went on") {
        let result = std::panic::catch_unwind(|| lives_or_dies(name, &code(&[name])));
        if let Err(panic) = result {
            failures.push(panic.downcast_ref::<String>().cloned().unwrap_or_default());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn odd_stacks() {
    let expected: String = (0..9).map(|stack| format!("{stack}: 1 1\n")).collect();
    assert_eq!(code(&["stacks"]).guest().ok().out(), expected + "went on\n");
}

fn registers_are_kept() {
    code(&["registers"]).same().ok();
}

fn into_the_shim() {
    let offsets = (0..0x50).chain([0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0x8000, 0xff_f000]);
    for offset in offsets {
        lives_or_dies(
            &format!("shim + {offset:#x}"),
            &code(&["shim", &offset.to_string(), "0"]),
        );
    }
    for forged in [
        "1",
        "0x7fffff000040",
        "0x800000000000",
        "0x8000000000000000",
        "0xffffffff81003000",
        "-1",
    ] {
        for offset in ["0", "0x40"] {
            lives_or_dies(
                &format!("{offset}, {forged}"),
                &code(&["shim", offset, forged]),
            );
        }
    }
}

/// Runs Python with a time limit that a busy host could not keep.
#[track_caller]
fn ends_in_time(script: &str, options: &[&str]) -> Ended {
    let job = Job::python(script).option("--timeout=5s");
    let job = options.iter().fold(job, |job, option| job.option(*option));
    let started = Instant::now();
    let outcome = job.limit(Duration::from_secs(30)).guest();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}: {outcome:?}");
    assert!(matches!(outcome.ended, Ended::Exit(0 | 124)), "{outcome:?}");
    outcome.ended
}

fn huge_ranges() {
    let script = r#"
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
def call(*arguments): return libc.syscall(*[ctypes.c_long(a) for a in arguments])
size = 1 << 45
fd = os.open("/tmp/file", os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 1 << 20)
for protection, flags, file in [(0, 0x4022, -1), (3, 0x4022, -1), (3, 0x4021, -1), (3, 1, fd), (1, 2, fd), (3, 0x4002, fd), (5, 2, fd)]:
    address = call(9, 0, size, protection, flags, file, 0)
    if address < 0: continue
    for offset in (0, size // 2, size - 4096): call(10, address + offset, 4096, 3)
    ctypes.memset(address, 1, 4096)
    for advice in (4, 8, 3, 0, 14, 22, 23): call(28, address, size, advice)
    call(26, address, size, 4); call(27, address, size, address); call(10, address, size, 1); call(10, address, size, 3)
    call(25, address, size, size // 2, 0); call(25, address, size // 2, size // 4, 1); call(149, address, size); call(150, address, size)
    call(11, address, size)
print("done")
"#;
    ends_in_time(script, &["--memory=64M"]);
}

fn endless_transfers() {
    let scripts = [
        "import os\nz, n = os.open('/dev/zero', 0), os.open('/dev/null', 1)\nwhile True: os.sendfile(n, z, None, 1 << 62)",
        "import os\nz, n = os.open('/dev/zero', 0), os.open('/dev/null', 1)\nos.copy_file_range(z, n, 1 << 62)",
        "import os\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 45)\n\
         n = os.open('/dev/null', 1)\nwhile os.sendfile(n, f, None, 1 << 62): pass",
        "import os\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 45)\n\
         g = os.open('/tmp/g', os.O_RDWR | os.O_CREAT)\nwhile os.copy_file_range(f, g, 1 << 62): pass",
        "import os\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 45)\nprint(os.lseek(f, 0, os.SEEK_HOLE))",
        "import os\nb = bytearray(100 << 20)\nwhile True: os.readv(os.open('/dev/urandom', 0), [b] * 1000)",
        "import os\nwhile True: len(os.getrandom(1 << 25))",
        "import os\nwhile True: open('/proc/self/maps').read()",
        "while True: pass",
    ];
    for script in scripts {
        let script = format!(
            "try:\n {}\nexcept OSError: pass",
            script.replace('\n', "\n ")
        );
        let job = Job::python(&script)
            .option("--timeout=1s")
            .limit(Duration::from_secs(30));
        let started = Instant::now();
        let outcome = job.guest();
        assert!(
            matches!(outcome.ended, Ended::Exit(0 | 124)),
            "{script}: {outcome:?}"
        );
        assert!(
            started.elapsed() < Duration::from_secs(6),
            "{script}: {:?}",
            started.elapsed()
        );
    }
}

/// Files, names and attributes are made until the guest's quota ends it; the host's own memory is
/// bounded meanwhile, or its allocator would abort.
fn memory_of_the_host() {
    let scripts = [
        "n = 0\nwhile True: os.mkdir(f'/tmp/{n}'); n += 1",
        "n = 0\nwhile True: os.symlink('x' * 4000, f'/tmp/{n}'); n += 1",
        "n = 0\nopen('/tmp/f', 'w')\nwhile True: os.link('/tmp/f', '/tmp/' + 'l' * 200 + str(n)); n += 1",
        "n = 0\nopen('/tmp/f', 'w')\nwhile True: os.setxattr('/tmp/f', f'user.{n}', b'x' * 60000); n += 1",
        "n = 0\nwhile True: fd = os.memfd_create('m'); os.write(fd, bytes(1 << 20)); n += 1",
        "n = 0\nwhile True: os.write(os.open(f'/tmp/{n}', os.O_RDWR | os.O_CREAT), b'x'); os.unlink(f'/tmp/{n}'); n += 1",
        "n = 0\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT)\nwhile n < 300000: os.pwrite(f, b'x', n << 30); n += 1",
        "p = '/tmp'\nwhile True: os.chdir(p); p = 'd' * 200; os.mkdir(p)",
        "import mmap\nwhile True: mmap.mmap(-1, 4096, prot=1); os.dup(0)",
        "for root, ds, fs in os.walk('/'): [os.path.getsize(os.path.join(root, f)) for f in fs if os.path.lexists(os.path.join(root, f)) and not root.startswith('/proc') and not os.path.islink(os.path.join(root, f))]",
    ];
    for script in scripts {
        let script = format!(
            "import os\ntry:\n {}\nexcept (OSError, MemoryError): pass",
            script.replace('\n', "\n ")
        );
        let job = Job::python(&script)
            .option("--writable=16M")
            .option("--memory=64M")
            .option("--timeout=10s");
        let command = job.guest_command();
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "ulimit -v 500000; exec \"$@\"", "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        let outcome = process::finish(shell, Vec::new(), Duration::from_secs(30));
        assert!(
            matches!(outcome.ended, Ended::Exit(0 | 124)),
            "{script}: {outcome:?}"
        );
    }
}

fn descriptors() {
    let script = "import os, resource\n\
        print(resource.getrlimit(resource.RLIMIT_NOFILE))\n\
        def fill():\n \
         opened = []\n \
         try:\n  \
          while True: opened.append(os.open('/etc/hostname', os.O_RDONLY))\n \
         except OSError as error: print(error.strerror, len(opened) > 1000)\n \
         for fd in opened: os.close(fd)\n\
        fill()\n\
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n\
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard)); fill(); fill()\n\
        print(open('/etc/hostname').read() != '')";
    let outcome = Job::python(script).guest().ok();
    assert_eq!(
        outcome.out().matches("Too many open files True").count(),
        3,
        "{outcome:?}"
    );
    assert!(outcome.out().ends_with("True\n"), "{outcome:?}");
}

fn deep_directories() {
    let script = "import os\n\
        depth = 0\n\
        try:\n \
         while depth < 3000: os.mkdir('d'); os.chdir('d'); depth += 1\n\
        except OSError as error: print(error.strerror)\n\
        try: print(len(os.getcwd()))\n\
        except OSError as error: print(error.strerror)\n\
        while depth: os.chdir('..'); os.rmdir('d'); depth -= 1\n\
        print(os.path.exists('d'))";
    for directory in ["/tmp", "/data"] {
        let volume = Volume::new();
        let job = Job::python(script)
            .volume(volume.guest(), "/data")
            .directory(directory);
        let outcome = job.guest().ok();
        assert!(outcome.out().ends_with("False\n"), "{outcome:?}");
    }
}

fn signals_without_end() {
    let script = "import os, signal\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n\
        for number in signal.valid_signals() - {9, 19}:\n \
         for _ in range(50): os.kill(1, number)\n\
        print(len(signal.sigpending()) > 50, flush=True)\n\
        os.kill(1, 9)";
    let outcome = Job::python(script).guest();
    assert_eq!(
        (outcome.ended, outcome.out().as_str()),
        (Ended::Signal(9), "True\n"),
        "{outcome:?}"
    );
}
