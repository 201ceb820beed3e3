//! The state that the handlers share: one process with one thread.

mod proc_view;

use std::time::{Duration, Instant};

use agentrt_vfs::{CpuTime, Location};

use crate::clock::Clock;
use crate::descriptor::Descriptors;
use crate::mm::Mm;
use crate::process::{Credentials, Limits};
use crate::signal::Signals;

/// The process id of every guest's first process.
pub const FIRST_PID: i32 = 1;

/// One process with one thread.
pub struct Task {
    /// Memory.
    pub mm: Mm,
    /// Descriptors.
    pub descriptors: Descriptors,
    /// Current directory.
    pub cwd: Location,
    /// File mode creation mask.
    pub umask: u32,
    /// Signal dispositions and mask.
    pub signals: Signals,
    /// User and group ids.
    pub credentials: Credentials,
    /// Resource limits.
    pub limits: Limits,
    /// The program image, as /proc shows it.
    pub program: Program,
    /// Clocks.
    pub clock: Clock,
    /// CPU time of this thread when the guest was started.
    pub cpu_at_boot: CpuTime,
    /// What a syscall that waits has to remember between its calls.
    pub sleep: Option<Instant>,
}

impl Task {
    /// Time since the guest was started, as its monotonic clock tells it; never zero.
    pub fn uptime(&self) -> Duration {
        self.clock.monotonic()
    }

    /// CPU time that the guest has used: that of this thread, in the guest and on its behalf.
    pub fn used_cpu_time(&self) -> CpuTime {
        let now = thread_cpu_time();
        CpuTime {
            user: now.user.saturating_sub(self.cpu_at_boot.user),
            system: now.system.saturating_sub(self.cpu_at_boot.system),
        }
    }
}

/// What is known of the program image.
pub struct Program {
    /// The executable.
    pub exe: Location,
    /// Name of the thread, at most 15 bytes.
    pub comm: Vec<u8>,
    /// Arguments, each followed by NUL.
    pub cmdline: Vec<u8>,
    /// Environment, each variable followed by NUL.
    pub environ: Vec<u8>,
    /// Auxiliary vector as it lies on the stack.
    pub auxv: Vec<u8>,
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> CpuTime {
    // SAFETY: all zeros is a valid rusage, which is plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage(2) fills the structure that it is given.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let duration = |time: libc::timeval| {
        Duration::new(
            time.tv_sec.max(0) as u64,
            (time.tv_usec.max(0) * 1000) as u32,
        )
    };
    CpuTime {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    }
}
