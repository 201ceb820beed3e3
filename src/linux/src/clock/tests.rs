use agentrt_vmm::Vm;

use super::*;

/// Nanoseconds a tick at 2 GHz.
const RATE: u64 = 1 << (MULTIPLIER_SHIFT - 1);

fn clock() -> Option<Clock> {
    if !std::path::Path::new("/dev/kvm").exists() {
        eprintln!("skipped: no /dev/kvm");
        return None;
    }
    let vm = Vm::new(64 << 20).unwrap();
    let mut clock = Clock::new(Instant::now(), vm.time_page, false);
    clock.zero = 0;
    Some(clock)
}

fn at(nanoseconds: u64, counter: u64) -> Sample {
    Sample {
        counter,
        monotonic: nanoseconds,
        realtime_offset: 1_700_000_000_000_000_000,
    }
}

#[test]
fn a_clock_that_trails_is_put_forward() {
    let Some(mut clock) = clock() else { return };
    clock.adjust(&at(1_000_000, 2_000_000), RATE);
    assert_eq!(clock.told(2_000_200), 1_000_100);
    clock.adjust(&at(6_000_500, 12_000_000), RATE);
    assert_eq!(clock.told(12_000_000), 6_000_500);
    assert_eq!(clock.page.multiplier, RATE);
}

#[test]
fn a_clock_that_leads_is_slowed_down_and_never_set_back() {
    let Some(mut clock) = clock() else { return };
    clock.adjust(&at(1_000_000, 2_000_000), RATE);
    let (mut counter, mut last, mut lead) = (12_000_000, 0, 100_000);
    for step in 1..2_000 {
        // The host's clock was 100 µs slow once and is right from then on.
        let truth = counter / 2 - 100_000;
        let before = clock.told(counter);
        clock.adjust(&at(truth, counter), RATE);
        let now = clock.told(counter);
        assert!(now >= before && now > last, "step {step}");
        assert!(now - truth <= lead, "step {step}");
        (counter, last, lead) = (counter + 10_000_000, now, now - truth);
    }
    assert!(lead < 100, "{lead} ns are left after 10 s");
}

#[test]
fn a_counter_that_leaves_the_clock_is_given_up() {
    let Some(mut clock) = clock() else { return };
    clock.adjust(&at(1_000_000, 2_000_000), RATE);
    clock.adjust(&at(6_000_000, 12_000_000), RATE);
    assert!(clock.is_counting());
    // A second by the counter, none by the clock.
    let before = clock.told(2_012_000_000);
    clock.adjust(&at(6_000_100, 2_012_000_000), RATE);
    assert!(!clock.is_counting());
    assert_eq!(clock.interval, u64::MAX);
    let after = 6_000_100u64.wrapping_sub(clock.zero);
    assert!(before > 1_000_000_000 && after >= before);
}

#[test]
fn the_real_time_moves_when_it_is_set_and_not_by_noise() {
    let Some(mut clock) = clock() else { return };
    clock.adjust(&at(1_000_000, 2_000_000), RATE);
    let offset = |clock: &Clock| clock.page.realtime - clock.page.monotonic;
    let first = offset(&clock);
    let mut sample = at(6_000_000, 12_000_000);
    sample.realtime_offset -= 200;
    clock.adjust(&sample, RATE);
    assert_eq!(offset(&clock), first);
    let mut sample = at(11_000_000, 22_000_000);
    sample.realtime_offset -= 3_600_000_000_000;
    clock.adjust(&sample, RATE);
    assert_eq!(offset(&clock), first - 3_600_000_000_000);
}

#[test]
fn a_clock_without_a_counter_asks_the_host() {
    let Some(clock) = clock() else { return };
    let before = clock.monotonic();
    assert!(!before.is_zero());
    assert!(clock.monotonic() >= before);
    let epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(clock.realtime().abs_diff(epoch) < Duration::from_secs(1));
}

#[test]
fn a_counting_clock_keeps_to_the_host_s() {
    let Some(_) = clock() else { return };
    let vm = Vm::new(64 << 20).unwrap();
    let boot = Instant::now();
    let mut clock = Clock::new(boot, vm.time_page, vm.vcpu.tsc_is_hosts());
    let mut last = Duration::ZERO;
    while boot.elapsed() < Duration::from_millis(60) {
        clock.refresh(vm.space.memory());
        for _ in 0..1000 {
            let (before, now, after) = (boot.elapsed(), clock.monotonic(), boot.elapsed());
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
            const TOLERANCE: Duration = Duration::from_micros(50);
            assert!(now + TOLERANCE >= before && now <= after + TOLERANCE);
        }
    }
    assert_eq!(
        clock.is_counting(),
        vm.vcpu.tsc_is_hosts() && host::counter_keeps_time()
    );
}
