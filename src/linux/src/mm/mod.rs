//! The program's memory: areas, page faults, and the host's access to it.
//!
//! - [`area`]: what is mapped where
//! - [`map`]: mmap, munmap, mprotect, mremap, brk and their like
//! - [`fault`]: brings pages in
//! - [`access`]: reads and writes the program's memory for the host
//! - [`text`]: rewrites the syscall sites of code that is mapped
//! - [`shared`]: keeps shared mappings and their files in step
//! - [`show`]: /proc/self/maps and the numbers of /proc/self/status
//! - [`syscalls`]: decodes the memory syscalls

use std::collections::HashSet;
use std::sync::Arc;

use agentrt_loader::rewriter::Cache;
use agentrt_shim_abi::{PAGE_SIZE, SHIM_BASE, TIME_PAGE, USER_START, VDSO_BASE};
use agentrt_vmm::{AddressSpace, Protection};

pub mod access;
pub mod area;
pub mod fault;
pub mod map;
pub mod shared;
pub mod show;
pub mod syscalls;
pub mod text;

pub use access::{Access, TRANSFER_MAX};
use area::{Area, Areas};

use crate::stats::Sites;

/// Where the main thread's stack ends.
pub const STACK_TOP: u64 = SHIM_BASE - (16 << 20);
/// Bytes that the main thread's stack may take (RLIMIT_STACK as Linux has it by default).
pub const STACK_SIZE: u64 = 8 << 20;
/// Areas found by the kernel lie below this, the highest first; Linux keeps as wide a gap.
const MMAP_TOP: u64 = STACK_TOP - (128 << 20);
/// Addresses that a program may map.
const USER: std::ops::Range<u64> = USER_START..SHIM_BASE;
/// Most areas a program may have (Linux's default `vm.max_map_count`).
const AREAS_MAX: usize = 65_530;

/// The memory of a program.
pub struct Mm {
    space: AddressSpace,
    areas: Areas,
    /// Start of the heap, and its current end (`brk`).
    brk: (u64, u64),
    rewriter: Arc<Cache>,
    sites: Sites,
    trampolines: text::TrampolinePool,
    /// Return addresses of trapped sites that need no further look.
    settled_sites: HashSet<u64>,
    faults: u64,
    /// Was a file ever mapped shared since the program image started?
    shares_files: bool,
}

impl Mm {
    /// Memory in which nothing is mapped but the vDSO and its time page, for good: they lie beyond
    /// what memory syscalls reach.
    pub fn new(space: AddressSpace, rewriter: Arc<Cache>) -> Mm {
        let mut areas = Areas::default();
        for (start, protection, name) in [
            (TIME_PAGE, Protection::READ, "[vvar]"),
            (VDSO_BASE, Protection::READ_EXECUTE, "[vdso]"),
        ] {
            let area = Area::anonymous(start + PAGE_SIZE, protection, false, name);
            areas.insert(start, area);
        }
        Mm {
            space,
            areas,
            brk: (0, 0),
            rewriter,
            sites: Sites::default(),
            trampolines: text::TrampolinePool::default(),
            settled_sites: HashSet::new(),
            faults: 0,
            shares_files: false,
        }
    }

    /// The pages behind it.
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// Page faults that were resolved.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// What became of the syscall sites of the code that was mapped.
    pub fn sites(&self) -> Sites {
        self.sites
    }
}

/// Rounds up to a multiple of the page size; None on overflow.
pub(crate) fn page_ceil(value: u64) -> Option<u64> {
    value.checked_next_multiple_of(agentrt_shim_abi::PAGE_SIZE)
}

/// Rounds down to a multiple of the page size.
pub(crate) fn page_floor(value: u64) -> u64 {
    value & !(agentrt_shim_abi::PAGE_SIZE - 1)
}
