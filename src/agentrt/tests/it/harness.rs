//! What the tests share: jobs that run natively and in a guest, and what came of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use libtest_mimic::{Failed, Trial};

mod job;
pub mod process;
mod tree;

pub use job::Job;
pub use process::Ended;
pub use tree::{Volume, listing};

/// The environment that README.md documents.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("HOME", "/root"),
    ("USER", "root"),
    ("LANG", "C.UTF-8"),
];

/// A test that runs guests. It fails by panicking; where there is no KVM it is ignored.
pub fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    let name = name.strip_prefix("it::").unwrap_or(name);
    let trial = Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    });
    if kvm() {
        trial
    } else {
        trial.with_kind("no /dev/kvm").with_ignored_flag(true)
    }
}

/// Defines `tests()`, which lists the functions that are named, each as a test.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        /// The tests of this module.
        pub fn tests() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::harness::trial(concat!(module_path!(), "::", stringify!($name)), $name)),*]
        }
    };
}
pub(crate) use tests;

fn kvm() -> bool {
    static KVM: LazyLock<bool> = LazyLock::new(|| {
        std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .is_ok()
    });
    *KVM
}

/// The binary under test.
pub fn agentrt() -> PathBuf {
    std::env::var_os("AGENTRT").map_or_else(|| env!("CARGO_BIN_EXE_agentrt").into(), PathBuf::from)
}

/// How a test program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    Static,
    StaticPie,
    Dynamic,
}

/// Compiles `programs/NAME.c`; returns where the program is.
pub fn compile(name: &str, linkage: Linkage) -> PathBuf {
    static COMPILER: Mutex<()> = Mutex::new(());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/programs/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{linkage:?}"));
    let modified = |path: &Path| {
        path.metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    // One at a time: two tests may want the same program.
    let _guard = COMPILER
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if modified(&program) < modified(&source) {
        let how = match linkage {
            Linkage::Static => "-static",
            Linkage::StaticPie => "-static-pie",
            Linkage::Dynamic => "-pie",
        };
        let mut command = Command::new("gcc");
        command
            .args(["-O1", "-Wall", "-Wextra", "-Werror", how, "-o"])
            .arg(&program)
            .arg(&source);
        let output = command.output().expect("gcc starts");
        assert!(
            output.status.success(),
            "gcc: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    program
}

/// A directory of the test's own that goes away with the value.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("agentrt-it-")
        .tempdir()
        .expect("a temporary directory")
}

/// The text of bytes that should be UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fails with the lines in which two texts differ.
#[track_caller]
pub fn assert_same(what: &str, native: &[u8], guest: &[u8]) {
    const SHOWN: usize = 12;
    if native == guest {
        return;
    }
    let (native, guest) = (text(native), text(guest));
    let (native, guest): (Vec<&str>, Vec<&str>) =
        (native.lines().collect(), guest.lines().collect());
    let mut message = format!(
        "{what} differs ({} and {} lines):",
        native.len(),
        guest.len()
    );
    let differ =
        (0..native.len().max(guest.len())).filter(|&line| native.get(line) != guest.get(line));
    for line in differ.take(SHOWN) {
        let show = |lines: &[&str]| {
            lines
                .get(line)
                .map_or("(no line)".to_owned(), |line| excerpt(line))
        };
        message += &format!(
            "\n{:5} native: {}\n       guest: {}",
            line + 1,
            show(&native),
            show(&guest)
        );
    }
    panic!("{message}");
}

/// Enough of a text to understand a failure.
pub fn excerpt(text: &str) -> String {
    const ENOUGH: usize = 1000;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Signals that the tests were started with ignored (by nohup, or in the background of a script)
/// would be ignored by every program that they start.
pub fn take_default_signals() {
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        // SAFETY: the default action runs no code of this process; no other thread exists yet.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
