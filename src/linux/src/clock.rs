//! A guest's clocks, as the vDSO and the time syscalls both tell them.
//!
//! ```text
//!   starting ──the counter's rate is known──► counting ──counter and host disagree──► asking
//!       └───────────the counter is of no use───────────────────────────────────────────►┘
//! ```
//!
//! While it is *counting*, the time page holds a point in time and the rate of the time stamp
//! counter, and everybody computes the time from that, the host included; every few milliseconds
//! the point is moved up to the host's clocks. Otherwise every reading *asks* the host's clocks.
//!
//! Invariants: the monotonic clock never goes back, whoever reads it; the page changes only while
//! the guest is stopped.

mod host;

use std::time::{Duration, Instant};

use agentrt_shim_abi::{ClockMode, MULTIPLIER_SHIFT, TimePage};
use agentrt_vmm::{GuestMemory, TimePagePlace};

use host::Sample;

/// How old, in nanoseconds, the time page's point in time may get while the guest has exits.
const PERIOD: u64 = 5_000_000;
/// Ticks until the next attempt after one that failed: about a millisecond.
const RETRY: u64 = 1 << 21;
/// Nanoseconds in which a clock that is ahead is slowed down to meet the host's.
const SLEW: u64 = 1_000_000_000;
/// Nanoseconds by which the real time may seem to move against the monotonic one, through
/// inaccurate sampling, without having been set.
const REALTIME_NOISE: u64 = 1_000;

/// The clocks of one guest.
#[derive(Clone, Debug)]
pub struct Clock {
    place: TimePagePlace,
    page: TimePage,
    /// The host's monotonic time, in nanoseconds, at which the guest's is zero, modulo 2 to the
    /// power of 64.
    zero: u64,
    /// Counter at the last attempt to move the point, and ticks from there to the next one.
    checked: u64,
    interval: u64,
}

impl Clock {
    /// The clocks of a guest that booted at `boot`. `tsc_is_hosts` tells whether it reads the
    /// host's time stamp counter.
    pub fn new(boot: Instant, place: TimePagePlace, tsc_is_hosts: bool) -> Clock {
        let uptime = u64::try_from(boot.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let counting = tsc_is_hosts && host::counter_keeps_time();
        if counting && let Some(sample) = Sample::take() {
            // The first sample on a thread is what the counter's rate is measured from.
            host::multiplier(&sample);
        }
        Clock {
            place,
            page: TimePage::default(),
            // Programs divide by the time since boot: it is never zero.
            zero: host::monotonic().wrapping_sub(uptime).wrapping_sub(1),
            checked: 0,
            interval: if counting { 0 } else { u64::MAX },
        }
    }

    /// Time since the guest's boot; never zero.
    pub fn monotonic(&self) -> Duration {
        Duration::from_nanos(if self.is_counting() {
            self.told(host::counter())
        } else {
            host::monotonic().wrapping_sub(self.zero)
        })
    }

    /// Time since the epoch.
    pub fn realtime(&self) -> Duration {
        Duration::from_nanos(if self.is_counting() {
            let since = self.page.nanoseconds_since(host::counter());
            self.page.realtime.wrapping_add(since)
        } else {
            host::realtime()
        })
    }

    /// Brings the time page up to date if that is due. The guest must be stopped.
    pub fn refresh(&mut self, memory: &GuestMemory) {
        let due = host::counter().wrapping_sub(self.checked) >= self.interval;
        if due && self.check(Sample::take()) {
            self.place.write(memory, &self.page);
        }
    }

    /// The monotonic clock at some value of the counter, by the time page.
    fn told(&self, counter: u64) -> u64 {
        let since = self.page.nanoseconds_since(counter);
        self.page.monotonic.wrapping_add(since)
    }

    fn is_counting(&self) -> bool {
        self.page.mode == ClockMode::Tsc as u32
    }

    /// Compares the clock with the host's and puts it right; true if the page changed.
    fn check(&mut self, sample: Option<Sample>) -> bool {
        let measured = sample.and_then(|sample| Some((sample, host::multiplier(&sample)?)));
        let Some((sample, multiplier)) = measured else {
            (self.checked, self.interval) = (host::counter(), RETRY);
            return false;
        };
        self.checked = sample.counter;
        self.adjust(&sample, multiplier);
        self.page.sequence = self.page.sequence.wrapping_add(2);
        true
    }

    fn adjust(&mut self, sample: &Sample, multiplier: u64) {
        let truth = sample.monotonic.wrapping_sub(self.zero);
        let told = if self.is_counting() {
            self.told(sample.counter)
        } else {
            truth
        };
        let elapsed = truth.saturating_sub(self.page.monotonic);
        let ahead = told.saturating_sub(truth);
        if self.is_counting() && told.abs_diff(truth) > tolerance(elapsed) {
            // The guest's time goes on from what it was told last.
            self.zero = self.zero.wrapping_sub(ahead);
            self.page.mode = ClockMode::Syscall as u32;
            self.interval = u64::MAX;
            return;
        }
        let to_realtime = self.zero.wrapping_add(sample.realtime_offset);
        let previous = self.page.realtime.wrapping_sub(self.page.monotonic);
        let was_set = previous.abs_diff(to_realtime) > REALTIME_NOISE;
        let offset = if was_set { to_realtime } else { previous };
        let slowdown = u128::from(multiplier) * u128::from(ahead) / u128::from(SLEW);
        self.page.mode = ClockMode::Tsc as u32;
        self.page.tsc = sample.counter;
        self.page.multiplier = multiplier.saturating_sub(slowdown as u64);
        self.page.monotonic = told.max(truth);
        self.page.realtime = self.page.monotonic.wrapping_add(offset);
        self.interval = (PERIOD << MULTIPLIER_SHIFT) / multiplier.max(1);
    }
}

/// How far, in nanoseconds, a good counter may lead or trail the host's clock after `elapsed`
/// nanoseconds without a look: its rate was measured with some error (see `host`), and the host's
/// clock is itself slewed by at most 500 parts in a million (adjtimex(2)).
fn tolerance(elapsed: u64) -> u64 {
    (1_000_000 + elapsed / 500).min(SLEW / 2)
}

#[cfg(test)]
mod tests;
