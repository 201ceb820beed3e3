use super::*;

fn buffer(address: u64, length: u64) -> Buffer {
    Buffer { address, length }
}

#[test]
fn parts_of_buffers() {
    let all = [buffer(0x1000, 10), buffer(0x2000, 5), buffer(0x3000, 1)];
    assert_eq!(total(&all), 16);
    assert_eq!(part(&all, 0, u64::MAX), all);
    assert_eq!(part(&all, 10, 3), [buffer(0x2000, 3)]);
    assert_eq!(part(&all, 4, 8), [buffer(0x1004, 6), buffer(0x2000, 2)]);
    assert_eq!(part(&all, 16, 1), []);
    assert_eq!(part(&all, 3, 0), []);
}

#[test]
fn lengths_and_offsets_are_checked() {
    let arguments = |length, offset| Arguments([3, 0x1000, length, offset, 0, 0]);
    assert_eq!(one_buffer(&arguments(5, 0)), Ok([buffer(0x1000, 5)]));
    assert_eq!(
        one_buffer(&arguments(1 << 46, 0)),
        Ok([buffer(0x1000, COUNT_MAX)])
    );
    for beyond_user_space in [i64::MAX as u64, u64::MAX] {
        assert_eq!(
            one_buffer(&arguments(beyond_user_space, 0)),
            Err(Errno::FAULT)
        );
    }
    assert_eq!(position(&arguments(0, 1 << 40)), Ok(Position::At(1 << 40)));
    assert_eq!(position(&arguments(0, u64::MAX)), Err(Errno::INVAL));
}
