//! The vDSO: functions that tell the time inside the guest, found by programs as Linux's own are.
//!
//! Its image, [`image`], stands at [`VDSO_BASE`] behind the [`TimePage`] that it reads. Symbols
//! have the version LINUX_2.6 (vdso(7)), by which glibc, musl and Go look them up. What the page
//! cannot tell becomes a syscall, made as a rewritten site makes it.

use core::mem::offset_of;

use agentrt_shim_abi::{
    ClockMode, ENTRY_PATCHED, MULTIPLIER_SHIFT, PAGE_SIZE, TIME_PAGE, TimePage, VDSO_BASE,
};

/// CLOCK_REALTIME, CLOCK_REALTIME_COARSE and CLOCK_TAI, by their bits (clock_gettime(2)).
const REALTIME_CLOCKS: u32 = 1 | 1 << 5 | 1 << 11;
/// CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE and CLOCK_BOOTTIME.
const MONOTONIC_CLOCKS: u32 = 1 << 1 | 1 << 4 | 1 << 6 | 1 << 7;

core::arch::global_asm!(
    include_str!("vdso.s"),
    page_size = const PAGE_SIZE,
    time_page_distance = const VDSO_BASE - TIME_PAGE,
    entry_distance = const VDSO_BASE - ENTRY_PATCHED,
    sequence = const offset_of!(TimePage, sequence),
    mode = const offset_of!(TimePage, mode),
    tsc = const offset_of!(TimePage, tsc),
    multiplier = const offset_of!(TimePage, multiplier),
    monotonic = const offset_of!(TimePage, monotonic),
    realtime = const offset_of!(TimePage, realtime),
    mode_tsc = const ClockMode::Tsc as u32,
    multiplier_shift = const MULTIPLIER_SHIFT,
    realtime_clocks = const REALTIME_CLOCKS,
    monotonic_clocks = const MONOTONIC_CLOCKS,
    options(att_syntax),
);

unsafe extern "C" {
    static agentrt_vdso: [u8; PAGE_SIZE as usize];
}

/// The vDSO's image, to be placed at [`VDSO_BASE`].
pub fn image() -> &'static [u8] {
    // SAFETY: the assembly defines the symbol with a page of bytes behind it, in a read-only
    // section that lives as long as the program.
    unsafe { &agentrt_vdso }
}

#[cfg(test)]
mod tests;
