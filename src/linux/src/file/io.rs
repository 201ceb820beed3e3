//! read, write and their like.

use std::rc::Rc;

use agentrt_shim_abi::USER_END;
use agentrt_vfs::{File, FileKind, OpenFlags};
use rustix::io::Errno;
use vm_memory::VolatileSlice;

use super::memfd;
use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::mm::{Access, Mm, TRANSFER_MAX};
use crate::signal;
use crate::stop::{Result, Stop, Wait};
use crate::stream::Stream;

/// Most bytes of one call (`MAX_RW_COUNT` of `linux/fs.h`).
const COUNT_MAX: u64 = 0x7fff_f000;
/// Most bytes of one read of an endless device: what random(4) gives for /dev/urandom.
const STREAM_MAX: u64 = (32 << 20) - 1;
/// Most buffers of one call (`UIO_MAXIOV` of `linux/uio.h`).
const BUFFERS_MAX: u64 = 1024;
/// Bytes of several buffers that go to a stream in one piece.
const GATHER_MAX: usize = 64 << 10;

/// A buffer of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    address: u64,
    length: u64,
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// At the description's offset, which moves on.
    Current,
    /// Here.
    At(u64),
}

pub(super) fn read(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let buffers = one_buffer(arguments)?;
    read_into(guest, arguments.i32(0), &buffers, Position::Current)
}

pub(super) fn pread64(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (buffers, position) = (one_buffer(arguments)?, position(arguments)?);
    read_into(guest, arguments.i32(0), &buffers, position)
}

pub(super) fn readv(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    guest.task.descriptors.usable(arguments.i32(0))?;
    let buffers = buffers(guest, arguments)?;
    read_into(guest, arguments.i32(0), &buffers, Position::Current)
}

pub(super) fn preadv(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let position = position(arguments)?;
    guest.task.descriptors.usable(arguments.i32(0))?;
    let buffers = buffers(guest, arguments)?;
    read_into(guest, arguments.i32(0), &buffers, position)
}

pub(super) fn preadv2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    check_no_flags(arguments)?;
    match arguments.i64(3) {
        -1 => readv(guest, arguments),
        _ => preadv(guest, arguments),
    }
}

pub(super) fn write(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let buffers = one_buffer(arguments)?;
    write_from(guest, arguments.i32(0), &buffers, Position::Current)
}

pub(super) fn pwrite64(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (buffers, position) = (one_buffer(arguments)?, position(arguments)?);
    write_from(guest, arguments.i32(0), &buffers, position)
}

pub(super) fn writev(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    guest.task.descriptors.usable(arguments.i32(0))?;
    let buffers = buffers(guest, arguments)?;
    write_from(guest, arguments.i32(0), &buffers, Position::Current)
}

pub(super) fn pwritev(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let position = position(arguments)?;
    guest.task.descriptors.usable(arguments.i32(0))?;
    let buffers = buffers(guest, arguments)?;
    write_from(guest, arguments.i32(0), &buffers, position)
}

pub(super) fn pwritev2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    check_no_flags(arguments)?;
    match arguments.i64(3) {
        -1 => writev(guest, arguments),
        _ => pwritev(guest, arguments),
    }
}

fn check_no_flags(arguments: &Arguments) -> std::result::Result<(), Errno> {
    if arguments.u32(5) == 0 {
        Ok(())
    } else {
        Err(Errno::OPNOTSUPP)
    }
}

/// The fourth argument: on 64-bit machines the low word holds all of an offset.
fn position(arguments: &Arguments) -> std::result::Result<Position, Errno> {
    u64::try_from(arguments.i64(3))
        .map(Position::At)
        .map_err(|_| Errno::INVAL)
}

fn one_buffer(arguments: &Arguments) -> std::result::Result<[Buffer; 1], Errno> {
    let (address, length) = (arguments.address(1), arguments.u64(2));
    check_reach(address, length)?;
    Ok([Buffer {
        address,
        length: length.min(COUNT_MAX),
    }])
}

/// Linux refuses a buffer that reaches beyond the user half before it moves the first byte
/// (`access_ok`).
fn check_reach(address: u64, length: u64) -> std::result::Result<(), Errno> {
    match address.checked_add(length) {
        Some(end) if end <= USER_END => Ok(()),
        _ => Err(Errno::FAULT),
    }
}

/// Reads an array of `struct iovec`.
fn buffers(guest: &mut Guest, arguments: &Arguments) -> std::result::Result<Vec<Buffer>, Errno> {
    let (address, count) = (arguments.address(1), arguments.u64(2));
    if count > BUFFERS_MAX {
        return Err(Errno::INVAL);
    }
    let mut room = COUNT_MAX;
    let mut buffers = Vec::new();
    for index in 0..count {
        let at = address.checked_add(index * 16).ok_or(Errno::FAULT)?;
        let [address, length] = guest.task.mm.read_u64s(at)?;
        if i64::try_from(length).is_err() {
            return Err(Errno::INVAL);
        }
        check_reach(address, length)?;
        let length = length.min(room);
        room -= length;
        if length > 0 {
            buffers.push(Buffer { address, length });
        }
    }
    Ok(buffers)
}

fn total(buffers: &[Buffer]) -> u64 {
    buffers.iter().map(|buffer| buffer.length).sum()
}

/// The part of `buffers` between two offsets.
fn part(buffers: &[Buffer], mut skip: u64, mut length: u64) -> Vec<Buffer> {
    let mut kept = Vec::new();
    for buffer in buffers {
        let skipped = skip.min(buffer.length);
        skip -= skipped;
        let taken = length.min(buffer.length - skipped);
        length -= taken;
        if taken > 0 {
            kept.push(Buffer {
                address: buffer.address.wrapping_add(skipped),
                length: taken,
            });
        }
    }
    kept
}

/// Calls `step` for one piece of the buffers after the other, with the number of bytes before
/// it, until one is not moved as a whole. An error ends it only if nothing was moved before.
fn transfer(
    mm: &mut Mm,
    buffers: &[Buffer],
    access: Access,
    mut step: impl FnMut(u64, &[VolatileSlice<'_>]) -> std::result::Result<usize, Errno>,
) -> std::result::Result<u64, Errno> {
    let mut done = 0;
    for buffer in buffers {
        let mut at = 0;
        while at < buffer.length {
            let wanted = usize::try_from(buffer.length - at).unwrap_or(TRANSFER_MAX);
            let address = buffer.address.wrapping_add(at);
            let moved = mm
                .slices(address, wanted.min(TRANSFER_MAX), access)
                .and_then(|slices| {
                    let offered: usize = slices.iter().map(|slice| slice.len()).sum();
                    Ok((offered, step(done, &slices)?))
                });
            match moved {
                Ok((offered, count)) => {
                    at += count as u64;
                    done += count as u64;
                    if count < offered || count == 0 {
                        return Ok(done);
                    }
                }
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(done)
}

fn read_into(
    guest: &mut Guest,
    number: i32,
    buffers: &[Buffer],
    position: Position,
) -> Result<u64> {
    let description = guest.task.descriptors.usable(number)?;
    if !description.flags.get().reads() {
        return Err(Errno::BADF.into());
    }
    match &description.object {
        Object::File(file) => Ok(read_file(guest, &description, file, buffers, position)?),
        Object::Stream(stream) => read_stream(guest, &description, stream, buffers, position),
    }
}

fn read_file(
    guest: &mut Guest,
    description: &Description,
    file: &Rc<dyn File>,
    buffers: &[Buffer],
    position: Position,
) -> std::result::Result<u64, Errno> {
    if file.kind() == FileKind::Directory {
        return Err(Errno::ISDIR);
    }
    guest.task.mm.sync_shared(&**file);
    let start = start(description, file, buffers, position)?;
    let most = if file.is_stream() {
        STREAM_MAX
    } else {
        COUNT_MAX
    };
    let done = transfer(
        &mut guest.task.mm,
        &part(buffers, 0, most),
        Access::Write,
        |done, slices| file.read_at(start + done, slices),
    )?;
    if position == Position::Current && !file.is_stream() {
        description.offset.set(start + done);
    }
    Ok(done)
}

/// Where a transfer starts; it ends at a valid offset, too.
fn start(
    description: &Description,
    file: &Rc<dyn File>,
    buffers: &[Buffer],
    position: Position,
) -> std::result::Result<u64, Errno> {
    let start = match position {
        _ if file.is_stream() => 0,
        Position::Current => description.offset.get(),
        Position::At(offset) => offset,
    };
    match start.checked_add(total(buffers)) {
        Some(end) if i64::try_from(end).is_ok() => Ok(start),
        _ => Err(Errno::INVAL),
    }
}

fn stream_offset(position: Position) -> Option<u64> {
    match position {
        Position::Current => None,
        Position::At(offset) => Some(offset),
    }
}

fn read_stream(
    guest: &mut Guest,
    description: &Description,
    stream: &Rc<Stream>,
    buffers: &[Buffer],
    position: Position,
) -> Result<u64> {
    let offset = stream_offset(position);
    let result = transfer(
        &mut guest.task.mm,
        buffers,
        Access::Write,
        |done, slices| stream.read(slices, offset.map(|offset| offset.saturating_add(done))),
    );
    match result {
        Err(Errno::AGAIN) => Err(would_block(description, stream, libc::POLLIN)),
        result => Ok(result?),
    }
}

/// What to answer where a stream is not ready.
pub(super) fn would_block(description: &Description, stream: &Stream, events: i16) -> Stop {
    if description.flags.get().contains(OpenFlags::NONBLOCK) {
        Stop::Error(Errno::AGAIN)
    } else {
        Stop::Wait(Wait::descriptor(stream.descriptor(), events))
    }
}

fn write_from(
    guest: &mut Guest,
    number: i32,
    buffers: &[Buffer],
    position: Position,
) -> Result<u64> {
    let description = guest.task.descriptors.usable(number)?;
    if !description.flags.get().writes() {
        return Err(Errno::BADF.into());
    }
    match &description.object {
        Object::File(file) => write_file(guest, &description, file, buffers, position),
        Object::Stream(stream) => write_stream(guest, &description, stream, buffers, position),
    }
}

fn write_file(
    guest: &mut Guest,
    description: &Description,
    file: &Rc<dyn File>,
    buffers: &[Buffer],
    position: Position,
) -> Result<u64> {
    let count = total(buffers);
    if count == 0 {
        return Ok(0);
    }
    let regular = file.kind() == FileKind::Regular;
    // Even for pwrite, as Linux has it.
    let appends = regular && description.flags.get().contains(OpenFlags::APPEND);
    let mut at = start(description, file, buffers, position)?;
    if appends {
        at = file.size()?;
    }
    guest.task.mm.sync_shared(&**file);
    let allowed = allowed(guest, description, file, at, count)?;
    let allowed = part(buffers, 0, allowed);
    let mut end = at;
    let done = transfer(
        &mut guest.task.mm,
        &allowed,
        Access::Read,
        |done, slices| {
            if appends {
                let (count, behind) = file.append(slices)?;
                end = behind;
                return Ok(count);
            }
            let count = file.write_at(at + done, slices)?;
            end = at + done + count as u64;
            Ok(count)
        },
    )?;
    guest.task.mm.refresh_shared(&**file);
    if position == Position::Current && !file.is_stream() {
        description.offset.set(end);
    }
    Ok(done)
}

/// How many of `count` bytes may be written at `offset`, limit and seals considered.
pub(super) fn allowed(
    guest: &mut Guest,
    description: &Description,
    file: &Rc<dyn File>,
    offset: u64,
    count: u64,
) -> Result<u64> {
    if file.kind() != FileKind::Regular {
        return Ok(count);
    }
    let allowed = within_size_limit(guest, offset, count)?;
    let seals = description.seals();
    if !seals.is_empty() {
        memfd::check_write(seals, file.size()?, offset.saturating_add(allowed))?;
    }
    Ok(allowed)
}

/// How many of `count` bytes at `offset` RLIMIT_FSIZE allows to be written; if none, the
/// program gets SIGXFSZ and EFBIG (setrlimit(2)).
pub(super) fn within_size_limit(guest: &mut Guest, offset: u64, count: u64) -> Result<u64> {
    let Some(limit) = guest.task.limits.get(libc::RLIMIT_FSIZE).soft else {
        return Ok(count);
    };
    match limit.checked_sub(offset) {
        Some(room) if room > 0 || count == 0 => Ok(count.min(room)),
        _ => {
            signal::raise(guest, libc::SIGXFSZ)?;
            Err(Errno::FBIG.into())
        }
    }
}

/// Writes everything, in as many calls as it takes: a write to a pipe is not short unless it
/// is not to block.
fn write_stream(
    guest: &mut Guest,
    description: &Description,
    stream: &Rc<Stream>,
    buffers: &[Buffer],
    position: Position,
) -> Result<u64> {
    let append = description.flags.get().contains(OpenFlags::APPEND);
    let before = stream.progress.take() as u64;
    let mut done = before;
    let mut rest = part(buffers, before, u64::MAX);
    while !rest.is_empty() {
        let offset = stream_offset(position).map(|offset| offset.saturating_add(done));
        match write_piece(&mut guest.task.mm, stream, &rest, offset, append) {
            Ok(0) => break,
            Ok(count) => {
                done += count as u64;
                rest = part(&rest, count as u64, u64::MAX);
            }
            Err(Errno::AGAIN) => {
                let stop = would_block(description, stream, libc::POLLOUT);
                if let Stop::Wait(_) = stop {
                    stream.progress.set(done as usize);
                } else if done > 0 {
                    break;
                }
                return Err(stop);
            }
            Err(Errno::PIPE) => {
                signal::raise(guest, libc::SIGPIPE)?;
                if done == 0 {
                    return Err(Errno::PIPE.into());
                }
                break;
            }
            Err(_) if done > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Writes the beginning of `buffers`, which are not empty.
fn write_piece(
    mm: &mut Mm,
    stream: &Stream,
    buffers: &[Buffer],
    offset: Option<u64>,
    append: bool,
) -> std::result::Result<usize, Errno> {
    if let [buffer] = buffers {
        let wanted = usize::try_from(buffer.length).unwrap_or(TRANSFER_MAX);
        let slices = mm.slices(buffer.address, wanted.min(TRANSFER_MAX), Access::Read)?;
        return stream.write(&slices, offset, append);
    }
    // One call, so that no other writer comes in between.
    let mut gathered = Vec::new();
    for buffer in part(buffers, 0, GATHER_MAX as u64) {
        let old = gathered.len();
        gathered.resize(old + buffer.length as usize, 0);
        match mm.read(buffer.address, &mut gathered[old..]) {
            Ok(()) => {}
            Err(error) if old == 0 => return Err(error),
            Err(_) => {
                gathered.truncate(old);
                break;
            }
        }
    }
    stream.write(&[VolatileSlice::from(&mut gathered[..])], offset, append)
}

#[cfg(test)]
mod tests;
