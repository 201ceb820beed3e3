//! What many runs leave behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentrt::{Cache, End, Ended};

use super::start::NOTHING;
use super::syscall::{guest, write_program};
use super::{Outcome, Setting, without_kvm};
use crate::BenchError;
use crate::measure::{Bar, Figure, Pairs};
use crate::process::{native, time};

/// Bytes of memory that may be missing after all runs: what else the machine does, not what runs
/// leave.
const MEMORY_NOISE: f64 = 50.0;
/// Mebibytes that one process may grow by over [`GUESTS`] guests: the allocator's.
const PROCESS_NOISE: f64 = 8.0;
/// Guests that one process makes one after the other.
const GUESTS: usize = 300;
/// Guests before that, which fill caches.
const WARM_UP: usize = 20;

/// Runs one after the other, beside native ones; and guests one after the other in one process.
pub fn thousand_runs(setting: &Setting) -> Result<Outcome, BenchError> {
    if let Some(skipped) = without_kvm() {
        return Ok(skipped);
    }
    if !Path::new(NOTHING[0]).exists() {
        return Ok(Outcome::Skipped("no /usr/bin/busybox"));
    }
    let mut figures = processes(setting)?;
    figures.extend(guests(setting.scale.pick(GUESTS, 3))?);
    Ok(Outcome::Measured(figures))
}

fn processes(setting: &Setting) -> Result<Vec<Figure>, BenchError> {
    let runs = setting.scale.pick(1000, 3);
    let milliseconds = |command| Ok(time(command)?.wall.as_secs_f64() * 1e3);
    let before = HostUse::count()?;
    let pairs = Pairs::take(
        runs,
        || milliseconds(setting.agentrt.run(&[], &NOTHING)),
        || milliseconds(native(&NOTHING)),
    )?;
    // Others use the machine, too: one in ten runs that leaves something is what can be told.
    let noise = (runs as f64 / 10.0).max(50.0);
    let mut after = HostUse::count()?;
    for _ in 0..20 {
        if after.exceeds(&before) <= noise {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        after = HostUse::count()?;
    }
    let left = |name, unit, before: f64, after: f64, most| {
        Figure::alone(name, unit, &[(after - before).max(0.0)], Bar::Value(most))
    };
    Ok(vec![
        Figure::compared("wall time of a run", "ms", "native", &pairs, None),
        left("open files left", "", before.files, after.files, noise),
        left(
            "memory left",
            "MiB",
            -before.memory,
            -after.memory,
            MEMORY_NOISE,
        ),
        left(
            "temporary files left",
            "",
            before.temporary,
            after.temporary,
            noise,
        ),
        left("threads left", "", before.threads, after.threads, noise),
        left(
            "virtual machines left",
            "",
            before.machines,
            after.machines,
            noise,
        ),
    ])
}

/// What is in use on the whole host.
struct HostUse {
    /// Open files.
    files: f64,
    /// Mebibytes of memory that are available.
    memory: f64,
    /// Files in the directory for temporary files.
    temporary: f64,
    /// Threads of all processes.
    threads: f64,
    /// KVM's virtual machines, as far as other processes' descriptors can be seen.
    machines: f64,
}

impl HostUse {
    fn count() -> Result<HostUse, BenchError> {
        let (mut threads, mut machines) = (0, 0);
        for process in entries(Path::new("/proc"))? {
            // Processes end meanwhile.
            threads += entries(&process.join("task")).map_or(0, |tasks| tasks.len());
            let open = entries(&process.join("fd")).unwrap_or_default();
            let is_machine = |path: &PathBuf| {
                fs::read_link(path).is_ok_and(|target| target.as_os_str() == "anon_inode:kvm-vm")
            };
            machines += open.iter().filter(|path| is_machine(path)).count();
        }
        Ok(HostUse {
            files: number("/proc/sys/fs/file-nr", "")?,
            memory: number("/proc/meminfo", "MemAvailable:")? / 1024.0,
            temporary: entries(&std::env::temp_dir())?.len() as f64,
            threads: threads as f64,
            machines: machines as f64,
        })
    }

    /// By how much the count that grew most is above the one in `before`.
    fn exceeds(&self, before: &HostUse) -> f64 {
        let grown = [
            self.files - before.files,
            self.temporary - before.temporary,
            self.threads - before.threads,
            self.machines - before.machines,
        ];
        grown.into_iter().fold(0.0, f64::max)
    }
}

/// Guests one after the other in this process.
fn guests(count: usize) -> Result<Vec<Figure>, BenchError> {
    let image = tempfile::tempdir().map_err(|error| BenchError::Write {
        path: std::env::temp_dir(),
        error,
    })?;
    write_program(image.path(), 1)?;
    let cache = Arc::new(Cache::disabled());
    let run = || match guest(image.path(), &cache)?.run() {
        End::Program(Ended::Exited(0)) => Ok(()),
        end => Err(BenchError::End(end)),
    };
    (0..WARM_UP.min(count)).try_for_each(|_| run())?;
    let before = ProcessUse::count()?;
    (0..count).try_for_each(|_| run())?;
    let after = ProcessUse::count()?;
    let left = |name, unit, before: f64, after: f64, most| {
        Figure::alone(name, unit, &[(after - before).max(0.0)], Bar::Value(most))
    };
    Ok(vec![
        left(
            "in one process: open files left",
            "",
            before.files,
            after.files,
            0.0,
        ),
        left(
            "in one process: threads left",
            "",
            before.threads,
            after.threads,
            0.0,
        ),
        left(
            "in one process: memory left",
            "MiB",
            before.memory,
            after.memory,
            PROCESS_NOISE,
        ),
    ])
}

/// What this process uses.
struct ProcessUse {
    files: f64,
    threads: f64,
    /// Mebibytes that are resident.
    memory: f64,
}

impl ProcessUse {
    fn count() -> Result<ProcessUse, BenchError> {
        Ok(ProcessUse {
            files: entries(Path::new("/proc/self/fd"))?.len() as f64,
            threads: entries(Path::new("/proc/self/task"))?.len() as f64,
            memory: number("/proc/self/status", "VmRSS:")? / 1024.0,
        })
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let failed = |error| BenchError::Read {
        path: directory.to_owned(),
        error,
    };
    let entries = fs::read_dir(directory).map_err(failed)?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}

/// The first number of the first line that starts with `name`.
fn number(path: &str, name: &str) -> Result<f64, BenchError> {
    let path = PathBuf::from(path);
    let text = fs::read_to_string(&path).map_err(|error| BenchError::Read {
        path: path.clone(),
        error,
    })?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let number = lines
        .next()
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or(BenchError::Format { path })
}
