//! The host's clocks and its time stamp counter.

use std::cell::RefCell;
use std::sync::LazyLock;

use agentrt_shim_abi::MULTIPLIER_SHIFT;
use rustix::time::{ClockId, clock_gettime};

/// Attempts at a sample that nothing disturbs; the narrowest one counts.
const ATTEMPTS: u32 = 4;
/// Widest sample, in ticks, that is precise enough. A quiet one takes about 300.
const WIDTH_MAX: u64 = 1_500;
/// Shortest time, in nanoseconds, over which a rate is measured. Two samples of `WIDTH_MAX` err by
/// less than 500 parts in a million over it, quiet ones by about 10; both shrink as it grows.
const BASELINE_MIN: u64 = 2_000_000;
/// Time, in nanoseconds, over which a rate is measured in the long run, up to twice as long: the
/// host's clock is disciplined and its rate changes.
const BASELINE: u64 = 5_000_000_000;

/// The host's clocks and the counter at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time stamp counter.
    pub counter: u64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub monotonic: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds, modulo 2 to the power of 64.
    pub realtime_offset: u64,
}

impl Sample {
    /// Reads everything at once; None if that was disturbed too much.
    pub fn take() -> Option<Sample> {
        let attempts = (0..ATTEMPTS).map(|_| {
            // In the middle: the monotonic clock, so that the halves before and after it cancel.
            let (start, earlier) = (counter(), realtime());
            let monotonic = monotonic();
            let (later, end) = (realtime(), counter());
            let width = end.saturating_sub(start);
            let realtime = earlier + later.saturating_sub(earlier) / 2;
            let sample = Sample {
                counter: start + width / 2,
                monotonic,
                realtime_offset: realtime.wrapping_sub(monotonic),
            };
            (width, sample)
        });
        let (width, sample) = attempts.min_by_key(|&(width, _)| width)?;
        (width <= WIDTH_MAX).then_some(sample)
    }
}

/// The time stamp counter, read after everything before it.
pub fn counter() -> u64 {
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// CLOCK_REALTIME in nanoseconds since the epoch; 0 before it.
pub fn realtime() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Does the counter run at one rate on all processors and never stop? The kernel's own choice of a
/// clock tells: it takes the counter away if it finds it wanting (Documentation/timers).
pub fn counter_keeps_time() -> bool {
    static KEEPS_TIME: LazyLock<bool> = LazyLock::new(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        match std::fs::read_to_string(source).unwrap_or_default().trim() {
            "tsc" => true,
            // Paravirtual clocks are computed from the counter, which need not be invariant.
            "kvm-clock" | "hyperv_clocksource_tsc_page" => invariant(),
            _ => false,
        }
    });
    *KEEPS_TIME
}

/// CPUID.80000007H:EDX[8] (SDM vol. 3B, 18.17.1).
fn invariant() -> bool {
    let leaf = |number| std::arch::x86_64::__cpuid(number);
    leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & (1 << 8) != 0
}

/// The counter's rate as a [`TimePage`](agentrt_shim_abi::TimePage) has it, measured against the
/// host's monotonic clock from earlier samples on this thread up to this one; None as long as that
/// would be imprecise.
pub fn multiplier(now: &Sample) -> Option<u64> {
    thread_local! {
        static CALIBRATION: RefCell<Calibration> = const { RefCell::new(Calibration { span: None }) };
    }
    CALIBRATION.with_borrow_mut(|calibration| calibration.multiplier(now))
}

/// Measures the counter's rate.
pub struct Calibration {
    /// The sample that the rate is measured from, and the one that will take its place.
    span: Option<(Sample, Sample)>,
}

impl Calibration {
    fn multiplier(&mut self, now: &Sample) -> Option<u64> {
        let (mut from, mut next) = self.span.unwrap_or((*now, *now));
        if now.monotonic.saturating_sub(next.monotonic) >= BASELINE {
            (from, next) = (next, *now);
        }
        if now.counter < from.counter {
            // The counter was set back: begin anew.
            (from, next) = (*now, *now);
        }
        self.span = Some((from, next));
        let nanoseconds = now.monotonic.saturating_sub(from.monotonic);
        if nanoseconds < BASELINE_MIN {
            return None;
        }
        let ticks = now.counter - from.counter;
        let ratio = (u128::from(nanoseconds) << MULTIPLIER_SHIFT).checked_div(ticks.into())?;
        u64::try_from(ratio).ok()
    }
}

#[cfg(test)]
mod tests;
