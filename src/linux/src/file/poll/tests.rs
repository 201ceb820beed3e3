use super::*;

fn interest(number: i32, events: i16) -> Interest {
    Interest {
        number,
        events,
        ready: 0,
    }
}

#[test]
fn streams_are_asked_together() {
    let (input, input_writer) = rustix::pipe::pipe().unwrap();
    let (output_reader, output) = rustix::pipe::pipe().unwrap();
    let file = tempfile::tempfile().unwrap();
    let descriptors = Descriptors::default();
    let streams = stream::standard([Some(input), Some(output), Some(file.into())]).unwrap();
    for description in streams.into_iter().flatten() {
        descriptors.open(description, false).unwrap();
    }
    // Another name of the input, asked for something else.
    let copy = descriptors
        .open(descriptors.get(0).unwrap(), false)
        .unwrap();

    let mut interests = [
        interest(0, libc::POLLIN | UNASKED),
        interest(copy, libc::POLLRDNORM | UNASKED),
        interest(1, UNASKED),
        interest(99, libc::POLLIN),
    ];
    let awaited = look(&descriptors, &mut interests).unwrap();
    assert_eq!(
        interests.map(|interest| interest.ready),
        [0, 0, 0, libc::POLLNVAL]
    );
    let events: Vec<i16> = awaited.iter().map(|(_, events)| *events).collect();
    assert_eq!(events, [libc::POLLIN | libc::POLLRDNORM | UNASKED, UNASKED]);

    rustix::io::write(&input_writer, b"x").unwrap();
    let mut interests = [
        interest(0, libc::POLLIN),
        interest(2, libc::POLLOUT | libc::POLLPRI),
    ];
    look(&descriptors, &mut interests).unwrap();
    assert_eq!(
        interests.map(|interest| interest.ready),
        [libc::POLLIN, libc::POLLOUT]
    );

    // A pipe that broke is not awaited by who did not ask about it.
    drop(output_reader);
    let mut interests = [interest(1, libc::POLLPRI)];
    assert_eq!(look(&descriptors, &mut interests).unwrap(), []);
    assert_eq!(interests[0].ready, 0);
}

#[test]
fn bits_of_a_set() {
    let set = [0b0000_0001, 0b1000_0000, 0, 0, 0, 0, 0, 0];
    let set_bits: Vec<usize> = (0..64).filter(|number| has_bit(&set, *number)).collect();
    assert_eq!(set_bits, [0, 15]);
}
