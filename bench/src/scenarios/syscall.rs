//! The price of a forwarded syscall.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agentrt::{Cache, Config, End, Ended, Files, Guest};
use agentrt_vmm::{Exit, Vm};

use super::start::bare_guest;
use super::{Outcome, Setting, without_kvm};
use crate::BenchError;
use crate::measure::{Bar, Figure, Pairs};
use crate::programs::counting_program;

/// A syscall that the host serves, beside a bare machine's exit that the host answers at once.
pub fn forwarded(setting: &Setting) -> Result<Outcome, BenchError> {
    if let Some(skipped) = without_kvm() {
        return Ok(skipped);
    }
    let calls = setting.scale.pick(10_000, 100);
    let image = tempfile::tempdir().map_err(|error| BenchError::Write {
        path: std::env::temp_dir(),
        error,
    })?;
    write_program(image.path(), calls)?;
    let cache = Arc::new(Cache::disabled());
    let mut bare = bare_guest()?;
    let pairs = Pairs::take(
        setting.scale.pick(15, 1),
        || {
            let mut guest = guest(image.path(), &cache)?;
            let start = Instant::now();
            let end = guest.run();
            let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
            check(&guest, end, calls.into())?;
            Ok(each)
        },
        || Ok(exits(&mut bare, calls)? * 1e6 / f64::from(calls)),
    )?;
    let bar = Some(Bar::Ratio(1.3));
    Ok(Outcome::Measured(vec![Figure::compared(
        "getppid",
        "µs",
        "bare exit loop",
        &pairs,
        bar,
    )]))
}

/// Writes `/program`, which makes `calls` calls, into `image`.
pub(super) fn write_program(image: &Path, calls: u32) -> Result<(), BenchError> {
    let path = image.join("program");
    fs::write(&path, counting_program(calls))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(|error| BenchError::Write { path, error })
}

/// A guest that is about to run `/program` of `image`.
pub(super) fn guest(image: &Path, cache: &Arc<Cache>) -> Result<Guest, BenchError> {
    Ok(Guest::new(Config {
        program: b"/program".to_vec(),
        arguments: vec![b"/program".to_vec()],
        environment: Vec::new(),
        directory: b"/".to_vec(),
        files: Files::new(image),
        memory: agentrt::DEFAULT_MEMORY,
        streams: [None, None, None],
        ignored_signals: Vec::new(),
        rewriter: Arc::clone(cache),
        trace: None,
    })?)
}

/// The program ended well, and its calls came the way that is measured.
fn check(guest: &Guest, end: End, wanted: u64) -> Result<(), BenchError> {
    if end != End::Program(Ended::Exited(0)) {
        return Err(BenchError::End(end));
    }
    let patched = guest
        .stats
        .syscalls
        .get("getppid")
        .map_or(0, |count| count.patched);
    if patched == wanted {
        Ok(())
    } else {
        Err(BenchError::Route { wanted, patched })
    }
}

/// Seconds that `count` exits take.
fn exits(vm: &mut Vm, count: u32) -> Result<f64, BenchError> {
    let start = Instant::now();
    for _ in 0..count {
        match vm.run() {
            Exit::Syscall(_) => vm.vcpu.answer(0),
            Exit::Interrupted => {}
            other => return Err(BenchError::Exit(other)),
        }
    }
    Ok(start.elapsed().as_secs_f64())
}
