use std::mem::{offset_of, size_of};

use super::*;

#[test]
fn the_layout_that_the_vdso_was_assembled_for() {
    let offsets = [
        offset_of!(TimePage, sequence),
        offset_of!(TimePage, mode),
        offset_of!(TimePage, tsc),
        offset_of!(TimePage, multiplier),
        offset_of!(TimePage, monotonic),
        offset_of!(TimePage, realtime),
        size_of::<TimePage>(),
    ];
    assert_eq!(offsets, [0, 4, 8, 16, 24, 32, 40]);
    assert_eq!((ClockMode::Syscall as u32, ClockMode::Tsc as u32), (0, 1));
}

#[test]
fn ticks_become_nanoseconds() {
    let page = TimePage {
        tsc: 1000,
        // 2.5 GHz.
        multiplier: (1 << MULTIPLIER_SHIFT) * 2 / 5,
        ..TimePage::default()
    };
    assert_eq!(page.nanoseconds_since(1000), 0);
    assert_eq!(page.nanoseconds_since(999), 0);
    assert_eq!(page.nanoseconds_since(1025), 9);
    let year = 365 * 86_400 * 2_500_000_000;
    let error = page.nanoseconds_since(1000 + year).abs_diff(year / 5 * 2);
    assert!(error < 10_000_000, "{error}");
}
