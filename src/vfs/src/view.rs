//! What `/proc` shows of the process that looks at it.

use std::time::Duration;

use crate::{Location, Result, Stat};

/// The caller of an operation, as `/proc` describes it. Implemented by who owns the process.
pub trait ProcView {
    /// Process id, positive.
    fn pid(&self) -> i32;
    /// Parent's process id, 0 if there is none.
    fn ppid(&self) -> i32;
    /// Ids of all threads, the main thread (= pid) first.
    fn tids(&self) -> Vec<i32> {
        vec![self.pid()]
    }
    /// Name of the main thread, without newline, at most 15 bytes.
    fn comm(&self) -> Vec<u8>;
    /// Arguments, each followed by NUL.
    fn cmdline(&self) -> Vec<u8>;
    /// Initial environment, each variable followed by NUL.
    fn environ(&self) -> Vec<u8>;
    /// Auxiliary vector as the kernel laid it out.
    fn auxv(&self) -> Vec<u8>;
    /// The executable.
    fn exe(&self) -> Option<Location>;
    /// The current directory.
    fn cwd(&self) -> Location;
    /// File mode creation mask.
    fn umask(&self) -> u32;
    /// Numbers of the open descriptors, ascending.
    fn fds(&self) -> Vec<i32>;
    /// Whether descriptor `fd` is open. Asked for every entry of `/proc/self/fd`.
    fn has_fd(&self, fd: i32) -> bool;
    /// What is known of descriptor `fd`; `None` if it is not open.
    fn fd(&self, fd: i32) -> Option<FdView>;
    /// `fstat` of descriptor `fd`; EBADF if it is not open.
    fn fd_stat(&self, fd: i32) -> Result<Stat>;
    /// Text of `/proc/self/maps`.
    fn maps(&self) -> Vec<u8>;
    /// Memory of the guest and of this process.
    fn memory(&self) -> MemoryUsage;
    /// CPU time used so far.
    fn cpu_time(&self) -> CpuTime;
    /// When the process started, after the boot of the guest.
    fn start_time(&self) -> Duration;
    /// Time since the boot of the guest.
    fn uptime(&self) -> Duration;
    /// Resource limit by its `RLIMIT_*` number (0 to 15); `None` is unlimited.
    fn limit(&self, resource: u32) -> Limit;
}

/// One open descriptor.
#[derive(Clone)]
pub struct FdView {
    /// Text of `/proc/self/fd/N` without a `location`: `pipe:[7]`, `anon_inode:[eventfd]`, ….
    /// A file of the tree shows its path there, so this is empty.
    pub link: Vec<u8>,
    /// Where it is in the tree, if it is a file of the tree.
    pub location: Option<Location>,
    /// `O_*` bits as `/proc/self/fdinfo/N` prints them.
    pub flags: u32,
    /// File offset.
    pub offset: u64,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Memory of the guest in all.
    pub total: u64,
    /// Memory of the guest that is free.
    pub free: u64,
    /// Address space of the process.
    pub virtual_size: u64,
    /// Resident memory of the process.
    pub resident: u64,
    /// Highest resident memory so far.
    pub resident_peak: u64,
    /// Executable mappings.
    pub text: u64,
    /// Private writable mappings, heap and stack included.
    pub data: u64,
    /// The main thread's stack.
    pub stack: u64,
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Spent in the program.
    pub user: Duration,
    /// Spent on its behalf.
    pub system: Duration,
}

/// A resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Soft limit.
    pub soft: Option<u64>,
    /// Hard limit.
    pub hard: Option<u64>,
}
