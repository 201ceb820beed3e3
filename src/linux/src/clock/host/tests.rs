use super::*;

/// A counter of 2 GHz that was 1000 when the clock was 0.
fn at(nanoseconds: u64) -> Sample {
    Sample {
        counter: 1000 + nanoseconds * 2,
        monotonic: nanoseconds,
        realtime_offset: 0,
    }
}

const HALF: u64 = 1 << (MULTIPLIER_SHIFT - 1);

#[test]
fn a_rate_needs_a_baseline() {
    let mut calibration = Calibration { span: None };
    assert_eq!(calibration.multiplier(&at(0)), None);
    assert_eq!(calibration.multiplier(&at(BASELINE_MIN - 1)), None);
    assert_eq!(calibration.multiplier(&at(BASELINE_MIN)), Some(HALF));
    assert_eq!(calibration.multiplier(&at(1 << 50)), Some(HALF));
}

#[test]
fn the_baseline_follows() {
    let mut calibration = Calibration { span: None };
    for second in 0..60 {
        calibration.multiplier(&at(second * 1_000_000_000));
        let (from, _) = calibration.span.unwrap();
        let age = second * 1_000_000_000 - from.monotonic;
        assert!(age < 2 * BASELINE && (age >= BASELINE || second < 10));
    }
}

#[test]
fn a_counter_that_was_set_back_is_measured_anew() {
    let mut calibration = Calibration { span: None };
    calibration.multiplier(&at(5_000_000));
    let back = |nanoseconds| Sample {
        counter: nanoseconds,
        ..at(nanoseconds)
    };
    assert_eq!(calibration.multiplier(&back(6_000_000)), None);
    assert_eq!(calibration.multiplier(&back(8_000_000)), Some(2 * HALF));
}

#[test]
fn a_counter_that_stands_still_has_no_rate() {
    let mut calibration = Calibration { span: None };
    let stuck = |nanoseconds| Sample {
        counter: 7,
        ..at(nanoseconds)
    };
    assert_eq!(calibration.multiplier(&stuck(0)), None);
    assert_eq!(calibration.multiplier(&stuck(1 << 40)), None);
}

#[test]
fn a_sample_is_of_one_moment() {
    if !counter_keeps_time() {
        return;
    }
    let before = (counter(), monotonic(), realtime());
    let Some(sample) = (0..100).find_map(|_| Sample::take()) else {
        panic!("a hundred samples were disturbed")
    };
    let after = (counter(), monotonic(), realtime());
    assert!((before.0..after.0).contains(&sample.counter));
    assert!((before.1..=after.1).contains(&sample.monotonic));
    let real = sample.monotonic.wrapping_add(sample.realtime_offset);
    assert!((before.2..=after.2).contains(&real));
}
