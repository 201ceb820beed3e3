use super::*;

#[test]
fn everything_moves_in_chunks() {
    let source: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    let mut target = Vec::new();
    let read = |done: u64, bytes: &mut [u8]| {
        let rest = &source[done as usize..];
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    };
    let mut write = |_, bytes: &mut [u8]| {
        target.extend_from_slice(bytes);
        Ok(bytes.len())
    };
    assert_eq!(pump(150_000, read, &mut write), Ok(150_000));
    assert_eq!(target, source[..150_000]);
    target.clear();
    let write = |_, bytes: &mut [u8]| {
        target.extend_from_slice(bytes);
        Ok(bytes.len())
    };
    assert_eq!(pump(u64::MAX, read, write), Ok(200_000));
    assert_eq!(target, source);
}

#[test]
fn errors_wait_until_nothing_was_moved() {
    let read = |_, bytes: &mut [u8]| Ok(bytes.len());
    let failing = |done, bytes: &mut [u8]| {
        if done == 0 {
            Ok(bytes.len())
        } else {
            Err(Errno::IO)
        }
    };
    assert_eq!(pump(u64::MAX, read, failing), Ok(CHUNK as u64));
    assert_eq!(pump(5, |_, _| Err(Errno::IO), failing), Err(Errno::IO));
    assert_eq!(pump(1 << 20, read, |_, _| Ok(100)), Ok(100));
    assert_eq!(pump(0, read, |_, _| Err(Errno::IO)), Ok(0));
}

#[test]
fn calls_are_bounded() {
    assert_eq!(bounded(0, u64::MAX), COPY_MAX);
    assert_eq!(bounded(i64::MAX as u64 - 5, 10), 5);
    assert_eq!(bounded(u64::MAX, 10), 0);
}
