use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;

use super::*;

fn slice(bytes: &mut [u8]) -> VolatileSlice<'_> {
    VolatileSlice::from(bytes)
}

fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap()
}

#[test]
fn an_empty_pipe_would_block_and_a_closed_one_ends() {
    let (reader, writer) = pipe();
    let stream = Stream::new(reader, 1).unwrap();
    let mut bytes = [0; 8];
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Err(Errno::AGAIN));
    rustix::io::write(&writer, b"abc").unwrap();
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Ok(3));
    assert_eq!(&bytes[..3], b"abc");
    assert_eq!(
        stream.read(&[slice(&mut bytes)], Some(0)),
        Err(Errno::SPIPE)
    );
    assert_eq!(stream.seek(SeekFrom::Start(0)), Err(Errno::SPIPE));
    drop(writer);
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Ok(0));
}

#[test]
fn a_full_pipe_would_block_and_one_without_reader_breaks() {
    for blocking in [Blocking::OwnDescription, Blocking::Asked] {
        let (reader, writer) = pipe();
        let mut stream = Stream::new(writer.try_clone().unwrap(), 1).unwrap();
        assert_eq!(stream.blocking, Blocking::OwnDescription);
        if blocking == Blocking::Asked {
            stream.fd = writer.try_clone().unwrap();
            stream.blocking = blocking;
        }
        let mut bytes = vec![7; 100_000];
        let mut written = 0;
        let end = loop {
            match stream.write(&[slice(&mut bytes)], None, false) {
                Ok(count) => written += count,
                Err(error) => break error,
            }
        };
        assert_eq!((written, end), (stream.pipe_size().unwrap(), Errno::AGAIN));
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        assert!(
            !flags.contains(OFlags::NONBLOCK),
            "the host's own flags are left alone"
        );
        drop(reader);
        assert_eq!(
            stream.write(&[slice(&mut bytes)], None, false),
            Err(Errno::PIPE)
        );
    }
}

#[test]
fn sockets_do_not_block() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let stream = Stream::new(ours.into(), 1).unwrap();
    let mut bytes = vec![1; 1 << 20];
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Err(Errno::AGAIN));
    let first = stream.write(&[slice(&mut bytes)], None, false).unwrap();
    assert!(first > 0 && first < bytes.len());
    assert_eq!(
        stream.write(&[slice(&mut bytes)], None, false),
        Err(Errno::AGAIN)
    );
    drop(theirs);
    assert_eq!(stream.link(), b"socket:[1]");
}

#[test]
fn a_redirected_file_shares_its_position_with_the_host() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"0123456789").unwrap();
    file.seek(std::io::SeekFrom::Start(2)).unwrap();
    let stream = Stream::new(file.try_clone().unwrap().into(), 4).unwrap();
    assert!(!stream.can_wait());
    let mut bytes = [0; 3];
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Ok(3));
    assert_eq!(&bytes, b"234");
    assert_eq!(file.stream_position().unwrap(), 5);
    assert_eq!(stream.read(&[slice(&mut bytes)], Some(8)), Ok(2));
    assert_eq!(file.stream_position().unwrap(), 5);
    assert_eq!(
        stream.write(&[slice(&mut *b"ab".to_owned().as_mut())], None, true),
        Ok(2)
    );
    let mut all = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut all).unwrap();
    assert_eq!(all, "0123456789ab");
}

#[test]
fn identity_is_synthetic() {
    let (reader, writer) = pipe();
    let null = std::fs::File::open("/dev/null").unwrap();
    let [input, output, error] = standard([
        Some(null.into()),
        Some(writer.try_clone().unwrap()),
        Some(writer),
    ])
    .unwrap();
    let stats = [input, output, error].map(|description| {
        let description = description.unwrap();
        let Object::Stream(stream) = &description.object else {
            panic!("not a stream")
        };
        (
            stream.link(),
            description.stat().unwrap(),
            description.flags.get(),
        )
    });
    assert_eq!(stats[0].0, b"/dev/null");
    assert!(stats[0].2.reads() && !stats[0].2.writes());
    assert_eq!(stats[1].0, b"pipe:[2]");
    assert_eq!(stats[2].0, b"pipe:[2]");
    assert_eq!(stats[1].1.ino, stats[2].1.ino);
    let host = rustix::fs::fstat(&reader).unwrap();
    assert!(
        stats
            .iter()
            .all(|(_, stat, _)| stat.dev == DEVICE && stat.ino != host.st_ino)
    );
    assert_eq!(
        standard([None, None, None])
            .unwrap()
            .iter()
            .flatten()
            .count(),
        0
    );
}

#[test]
fn a_terminal_gets_a_description_of_our_own() {
    let master = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    let stream = Stream::new(terminal.try_clone().unwrap(), 1).unwrap();
    assert!(stream.is_terminal() && stream.blocking == Blocking::OwnDescription);
    assert_eq!(stream.link(), b"/dev/tty");
    let mut bytes = [0; 16];
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Err(Errno::AGAIN));
    rustix::io::write(&master, b"line\n").unwrap();
    assert_eq!(stream.read(&[slice(&mut bytes)], None), Ok(5));
    // The other end is no terminal to be opened again: that would make a new one.
    assert_eq!(Stream::new(master, 1).unwrap().blocking, Blocking::Asked);
}
