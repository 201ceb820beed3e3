//! What is counted while a guest runs.

use std::collections::BTreeMap;
use std::time::Duration;

use agentrt_vmm::vcpu::Route;
use serde::Serialize;

/// Where syscalls were served, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyscallCount {
    /// Calls in all.
    pub calls: u64,
    /// Of these, calls that came through a rewritten site.
    pub patched: u64,
    /// Of these, calls that came from a `syscall` instruction.
    pub trapped: u64,
    /// Of these, calls that were answered by the host (all, as long as the shim forwards).
    pub host: u64,
    /// Of these, calls that failed with ENOSYS because agentrt does not know them.
    pub unknown: u64,
}

/// Exits of the VM by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exits {
    /// Forwarded syscalls.
    pub syscall: u64,
    /// Page faults.
    pub page_fault: u64,
    /// Other exceptions.
    pub exception: u64,
    /// Interruptions by the host.
    pub interrupted: u64,
}

/// Syscall sites of the program's code by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sites {
    /// Rewritten to jump to a trampoline when the code was mapped.
    pub rewritten: u64,
    /// Left to trap because no jump fits.
    pub trapped: u64,
    /// Found at run time and rewritten then.
    pub lazily_patched: u64,
}

/// Everything that `--stats` shows. Durations are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Exits of the VM.
    pub exits: Exits,
    /// Syscalls by name.
    pub syscalls: BTreeMap<&'static str, SyscallCount>,
    /// Syscall sites.
    pub sites: Sites,
    /// Page faults that the host resolved, those in its own copies included.
    pub page_faults: u64,
    /// Pages of 4096 bytes that the guest's memory came to, its page tables included.
    pub pages_touched: u64,
    /// From the start of the run to the guest's first instruction.
    #[serde(rename = "first_instruction_us", serialize_with = "micros")]
    pub first_instruction: Duration,
    /// From the start of the run to the first syscall.
    #[serde(rename = "first_syscall_us", serialize_with = "micros")]
    pub first_syscall: Duration,
    /// From the start of the run to the end of the program.
    #[serde(rename = "wall_us", serialize_with = "micros")]
    pub wall: Duration,
    /// CPU time that the run took, in the guest and in the host.
    #[serde(rename = "cpu_us", serialize_with = "micros")]
    pub cpu: Duration,
}

impl Stats {
    /// Counts a syscall; `known` tells whether there is a handler for it.
    pub(crate) fn count(&mut self, number: u64, route: Route, known: bool) {
        let name = agentrt_strace::name(number);
        // A program can make up numbers without end: they share one line.
        let count = self
            .syscalls
            .entry(name.unwrap_or("unknown number"))
            .or_default();
        count.calls += 1;
        count.host += 1;
        match route {
            Route::Patched => count.patched += 1,
            Route::Trapped => count.trapped += 1,
        }
        count.unknown += u64::from(!known);
    }
}

fn micros<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_micros() as u64)
}
