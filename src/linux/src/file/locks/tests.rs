use super::LockKind::{Exclusive, Shared};
use super::*;

#[test]
fn ranges_split_and_join() {
    let mut locks = Locks::default();
    locks.set(10..20, Some(Shared)).unwrap();
    locks.set(20..30, Some(Shared)).unwrap();
    assert_eq!(locks.ranges, [(10..30, Shared)]);
    locks.set(15..18, Some(Exclusive)).unwrap();
    assert_eq!(
        locks.ranges,
        [(10..15, Shared), (15..18, Exclusive), (18..30, Shared)]
    );
    locks.set(12..END, None).unwrap();
    assert_eq!(locks.ranges, [(10..12, Shared)]);
    locks.set(0..END, None).unwrap();
    assert!(locks.is_empty());
}

#[test]
fn only_exclusive_locks_conflict() {
    let mut locks = Locks::default();
    locks.set(10..20, Some(Shared)).unwrap();
    locks.set(30..END, Some(Exclusive)).unwrap();
    assert_eq!(locks.conflict(&(0..15), Shared), None);
    assert_eq!(locks.conflict(&(0..11), Exclusive), Some((10..20, Shared)));
    assert_eq!(locks.conflict(&(20..30), Exclusive), None);
    assert_eq!(
        locks.conflict(&(29..31), Shared),
        Some((30..END, Exclusive))
    );
}

#[test]
fn their_number_is_bounded() {
    let mut locks = Locks::default();
    for index in 0..RANGES_MAX as u64 {
        locks.set(index * 2..index * 2 + 1, Some(Shared)).unwrap();
    }
    let far = 1 << 40;
    assert_eq!(locks.set(far..far + 1, Some(Shared)), Err(Errno::NOLCK));
    locks.set(0..far, Some(Shared)).unwrap();
    assert_eq!(locks.ranges, [(0..far, Shared)]);
}

#[test]
fn ranges_as_fcntl_takes_them() {
    assert_eq!(range(100, -10, 5), Ok(90..95));
    assert_eq!(range(100, 0, 0), Ok(100..END));
    assert_eq!(range(100, 0, -30), Ok(70..100));
    assert_eq!(range(100, -101, 1), Err(Errno::INVAL));
    assert_eq!(range(100, 0, -101), Err(Errno::INVAL));
    assert_eq!(range(100, i64::MAX, 1), Err(Errno::OVERFLOW));
    assert_eq!(range(100, 0, i64::MAX), Err(Errno::OVERFLOW));
    assert_eq!(range(0, i64::MAX, 1), Ok(END - 1..END));
    assert_eq!(range(0, 0, i64::MIN), Err(Errno::INVAL));
    assert_eq!(range(u64::MAX, 0, 1), Err(Errno::OVERFLOW));
}
