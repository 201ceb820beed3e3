//! What the vDSO reads to tell the time without leaving the guest.
//!
//! A clock's time is its base plus the ticks since [`TimePage::tsc`] times
//! [`TimePage::multiplier`], shifted right by [`MULTIPLIER_SHIFT`]. The host writes the page while
//! the guest is stopped; a guest that was stopped in the middle of a read notices by the sequence.

/// The time page's contents. Zeros mean that there is no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimePage {
    /// Odd while the page is written; another value after each change. A reader begins anew if it
    /// finds an odd value, or another one after reading than before.
    pub sequence: u32,
    /// A [`ClockMode`].
    pub mode: u32,
    /// Time stamp counter at which the bases hold.
    pub tsc: u64,
    /// Nanoseconds a tick, times 2 to the power of [`MULTIPLIER_SHIFT`].
    pub multiplier: u64,
    /// CLOCK_MONOTONIC at `tsc`, in nanoseconds since the guest's boot.
    pub monotonic: u64,
    /// CLOCK_REALTIME at `tsc`, in nanoseconds since the epoch.
    pub realtime: u64,
}

/// How the time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockMode {
    /// By a syscall: the time stamp counter is of no use, or its rate is not known yet.
    Syscall = 0,
    /// By the time stamp counter and this page.
    Tsc = 1,
}

/// How far [`TimePage::multiplier`] is shifted left: far enough for a rate to be exact to a
/// thousandth of a part in a million up to 10 GHz.
pub const MULTIPLIER_SHIFT: u32 = 32;

impl TimePage {
    /// The nanoseconds from [`TimePage::tsc`] to `tsc`, as the vDSO computes them.
    pub fn nanoseconds_since(&self, tsc: u64) -> u64 {
        // A processor whose counter is a few ticks behind must not turn them into centuries.
        let ticks = tsc.saturating_sub(self.tsc);
        ((u128::from(ticks) * u128::from(self.multiplier)) >> MULTIPLIER_SHIFT) as u64
    }
}

#[cfg(test)]
mod tests;
