//! What the shim and the host share: addresses, ports and layouts.
//!
//! A guest has two parts of its address space that are not the program's: the *shim area* at the
//! top of the user half, and the *ring-0 area* in the kernel half. Everything else is the
//! program's. No memory syscall reaches either area, and the program's memory map shows none of
//! it but the vDSO and its time page.

mod time_page;

pub use time_page::{ClockMode, MULTIPLIER_SHIFT, TimePage};

/// Size of a page in bytes (Intel SDM vol. 3A, 4.5: 4-KByte pages).
pub const PAGE_SIZE: u64 = 4096;

/// First address that a program may map, as Linux's default `vm.mmap_min_addr`.
pub const USER_START: u64 = 0x1_0000;

/// End of the user half: Linux's TASK_SIZE_MAX with 4-level page tables (`(1 << 47) - PAGE_SIZE`).
pub const USER_END: u64 = 0x7fff_ffff_f000;

/// Start of the shim area, which ends at [`USER_END`]. Programs own what lies below.
pub const SHIM_BASE: u64 = 0x7fff_ff00_0000;

/// Where a rewritten site's trampoline enters the shim.
pub const ENTRY_PATCHED: u64 = SHIM_BASE;

/// Where a `syscall` instruction that was not rewritten enters the shim (through MSR_LSTAR).
pub const ENTRY_LSTAR: u64 = SHIM_BASE + 0x40;

/// Most bytes of text, read-only data and data that a shim may have.
pub const SHIM_LIMIT: usize = 36 * 1024;

/// The time page, which ring 3 may read: a [`TimePage`] and zeros.
pub const TIME_PAGE: u64 = SHIM_BASE + 0x1_0000;

/// The vDSO, directly behind the time page: an ELF image of one page that ring 3 may execute.
pub const VDSO_BASE: u64 = TIME_PAGE + PAGE_SIZE;

/// Port that the shim writes to for a syscall on hardware KVM, where ring 3 may reach it through
/// the TSS's I/O permission bitmap. Ports 0 to 31 are the ring-0 stubs' own, one per exception
/// vector.
pub const SYSCALL_PORT: u16 = 0x20;

/// Start of the ring-0 area: descriptor tables, task state segment, stubs and their stack. In the
/// last 2 GiB, so that a stub can name it by a sign-extended 32-bit displacement.
pub const RING0_BASE: u64 = 0xffff_ffff_8100_0000;

// Relations that the code relies on, checked when it is compiled.
const _: () = {
    assert!(SHIM_BASE.is_multiple_of(PAGE_SIZE) && RING0_BASE.is_multiple_of(PAGE_SIZE));
    assert!(SHIM_BASE + (SHIM_LIMIT as u64) <= TIME_PAGE);
    assert!(VDSO_BASE + PAGE_SIZE <= USER_END);
    assert!(ENTRY_LSTAR >= ENTRY_PATCHED + 0x40);
    assert!(RING0_BASE as i64 as i32 as i64 == RING0_BASE as i64);
};
