//! The machine that the numbers are from.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use agentrt_vmm::Platform;
use serde::Serialize;

/// What one has to know of the machine to judge the numbers. Empty where the host does not tell.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Processor model.
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Version of the kernel.
    pub kernel: String,
    /// Kind of KVM.
    pub kvm: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Load averages of 1, 5 and 15 minutes: what else the machine did.
    pub load: String,
    /// Seconds since 1970-01-01 UTC.
    pub time: u64,
    /// Revision of the sources, `-dirty` if they were changed since.
    pub revision: String,
    /// Whether the measuring code itself is an optimised build.
    pub optimised: bool,
}

impl Host {
    /// This machine, now.
    pub fn examine() -> Host {
        let kib = field("/proc/meminfo", "MemTotal")
            .trim_end_matches(" kB")
            .parse()
            .unwrap_or(0u64);
        Host {
            processor: field("/proc/cpuinfo", "model name"),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: file("/proc/sys/kernel/osrelease"),
            kvm: format!("{:?}", Platform::detect()),
            memory: kib * 1024,
            load: file("/proc/loadavg")
                .split(' ')
                .take(3)
                .collect::<Vec<_>>()
                .join(" "),
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            revision: revision(),
            optimised: !cfg!(debug_assertions),
        }
    }
}

fn file(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The value of the first line `NAME: VALUE`.
fn field(path: &str, name: &str) -> String {
    let text = file(path);
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| key.trim() == name);
    found
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

fn revision() -> String {
    let output = Command::new("git")
        .args([
            "-C",
            env!("CARGO_MANIFEST_DIR"),
            "describe",
            "--always",
            "--dirty",
        ])
        .output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
