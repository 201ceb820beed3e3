//! Pipes: the host's, one for each of the program's.

use std::sync::atomic::{AtomicU64, Ordering};

use agentrt_vfs::OpenFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::Result;
use crate::stream::Stream;

/// Inode numbers of pipes; those below are the standard streams'.
static NEXT_INODE: AtomicU64 = AtomicU64::new(16);

pub(super) fn pipe(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    make(guest, arguments.address(0), OpenFlags::empty())
}

pub(super) fn pipe2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = OpenFlags::from_bits_retain(arguments.u32(1));
    let known = OpenFlags::CLOEXEC | OpenFlags::NONBLOCK | OpenFlags::DIRECT;
    if !known.contains(flags) {
        return Err(Errno::INVAL.into());
    }
    make(guest, arguments.address(0), flags)
}

/// Makes a pipe and writes its two descriptors to `address`.
fn make(guest: &mut Guest, address: u64, flags: OpenFlags) -> Result<u64> {
    let packets = flags.contains(OpenFlags::DIRECT);
    let mode = if packets {
        PipeFlags::DIRECT
    } else {
        PipeFlags::empty()
    };
    let (reader, writer) = rustix::pipe::pipe_with(mode | PipeFlags::CLOEXEC)?;
    let inode = NEXT_INODE.fetch_add(1, Ordering::Relaxed);
    let kept = flags & OpenFlags::NONBLOCK;
    let open = |end, access| -> std::result::Result<i32, Errno> {
        let stream = Object::Stream(Stream::new(end, inode)?.into());
        let description = Description::new(stream, access | kept);
        guest
            .task
            .descriptors
            .open(description, flags.contains(OpenFlags::CLOEXEC))
    };
    let read_number = open(reader, OpenFlags::empty())?;
    let write_number = open(writer, OpenFlags::WRONLY).inspect_err(|_| {
        // It was opened a moment ago.
        let _ = guest.task.descriptors.close(read_number);
    })?;
    let numbers = [read_number, write_number].map(i32::to_ne_bytes);
    guest
        .task
        .mm
        .write(address, numbers.as_flattened())
        .inspect_err(|_| {
            let _ = guest.task.descriptors.close(read_number);
            let _ = guest.task.descriptors.close(write_number);
        })?;
    Ok(0)
}
