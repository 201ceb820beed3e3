//! A virtual machine's way to its first instruction.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use agentrt_vmm::{Exit, Protection, Vm, page_table::Owner};

use super::{Outcome, Setting, without_kvm};
use crate::BenchError;
use crate::measure::{Bar, Figure, Pairs};
use crate::process::{read, time};
use crate::programs::bare_exit_loop;

/// A static program that does nothing.
pub(super) const NOTHING: [&str; 2] = ["/usr/bin/busybox", "true"];
/// Where the bare guest's code is.
const CODE: u64 = 0x40_0000;
/// Bytes of the bare guest's memory.
const MEMORY: u64 = 64 << 20;

/// From the start of a run to the first instruction of its program, beside a bare machine's way
/// from nothing to its first exit.
pub fn first_instruction(setting: &Setting) -> Result<Outcome, BenchError> {
    if let Some(skipped) = without_kvm() {
        return Ok(skipped);
    }
    if !Path::new(NOTHING[0]).exists() {
        return Ok(Outcome::Skipped("no /usr/bin/busybox"));
    }
    let pairs = Pairs::take(
        setting.scale.pick(100, 1),
        || reported(setting),
        || {
            let start = Instant::now();
            let mut vm = bare_guest()?;
            match vm.run() {
                Exit::Syscall(_) => Ok(start.elapsed().as_secs_f64() * 1e6),
                other => Err(BenchError::Exit(other)),
            }
        },
    )?;
    let bar = Some(Bar::Value(2000.0));
    Ok(Outcome::Measured(vec![Figure::compared(
        "to the first instruction",
        "µs",
        "bare virtual machine",
        &pairs,
        bar,
    )]))
}

/// What a run's statistics say.
fn reported(setting: &Setting) -> Result<f64, BenchError> {
    let path = setting.agentrt.stats_file();
    time(
        setting
            .agentrt
            .run(&[OsStr::new("--stats"), path.as_os_str()], &NOTHING),
    )?;
    let stats: serde_json::Value = serde_json::from_slice(&read(&path)?).unwrap_or_default();
    let value = stats
        .get("first_instruction_us")
        .and_then(serde_json::Value::as_f64);
    value.ok_or(BenchError::Format { path })
}

/// A virtual machine that leaves by the shim's instruction again and again, with no program, no
/// files and nobody who serves it.
pub(super) fn bare_guest() -> Result<Vm, BenchError> {
    let mut vm = Vm::new(MEMORY)?;
    let run = vm
        .space
        .map_new(CODE, 1, Protection::READ_EXECUTE, Owner::Program)?;
    let code = bare_exit_loop();
    if let Some(slice) = vm.space.memory().slice(run.start, code.len()) {
        slice.copy_from(&code);
    }
    vm.start(CODE, 0);
    Ok(vm)
}
