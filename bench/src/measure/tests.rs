use super::*;

#[test]
fn quantiles_interpolate() {
    let summary = Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
    assert_eq!(
        (summary.samples, summary.p10, summary.median, summary.p90),
        (5, 1.4, 3.0, 4.6)
    );
    assert_eq!(Summary::of(&[7.0]).p90, 7.0);
    assert!(Summary::of(&[]).median.is_nan());
}

#[test]
fn samples_are_taken_in_turns_and_the_first_of_each_is_dropped() {
    let order = std::cell::RefCell::new(String::new());
    let mut counter = 0.0;
    let pairs = Pairs::take(
        2,
        || {
            order.borrow_mut().push('a');
            counter += 2.0;
            Ok(counter)
        },
        || {
            order.borrow_mut().push('b');
            Ok(2.0)
        },
    )
    .unwrap();
    assert_eq!(order.into_inner(), "ababab");
    assert_eq!(pairs.subject, [4.0, 6.0]);
    assert_eq!(pairs.ratio().median, 2.5);
}

#[test]
fn bars_are_judged_by_medians() {
    let pairs = Pairs {
        subject: vec![1.0, 2.0, 30.0],
        peer: vec![1.0, 1.0, 1.0],
    };
    let figure = |bar| Figure::compared("figure", "s", "peer", &pairs, Some(bar)).met;
    assert_eq!(figure(Bar::Ratio(2.0)), Some(true));
    assert_eq!(figure(Bar::Ratio(1.9)), Some(false));
    assert_eq!(figure(Bar::Value(2.0)), Some(true));
    assert_eq!(
        Figure::alone("figure", "s", &[], Bar::Value(1.0)).met,
        Some(false)
    );
}
