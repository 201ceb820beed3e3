//! From one file to another: sendfile, copy_file_range.

use std::rc::Rc;

use agentrt_vfs::{File, FileKind, OpenFlags};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use vm_memory::VolatileSlice;

use super::io::{allowed, would_block};
use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::signal;
use crate::stop::Result;
use crate::stream::Stream;

/// Most bytes of one call: it is short for more, so that no call keeps the host for long.
const COPY_MAX: u64 = 16 << 20;
/// Bytes at a time.
const CHUNK: usize = 64 << 10;

/// Moves `count` bytes from `read` to `write`, which are told how many went before, until one
/// has less. An error ends it only if nothing was moved before.
fn pump(
    count: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> std::result::Result<usize, Errno>,
    mut write: impl FnMut(u64, &mut [u8]) -> std::result::Result<usize, Errno>,
) -> std::result::Result<u64, Errno> {
    let mut bytes = vec![0; CHUNK.min(usize::try_from(count).unwrap_or(CHUNK))];
    let mut done = 0;
    while done < count {
        let wanted = usize::try_from(count - done).unwrap_or(CHUNK).min(CHUNK);
        let moved = read(done, &mut bytes[..wanted]).and_then(|available| match available {
            0 => Ok((0, 0)),
            _ => Ok((available, write(done, &mut bytes[..available])?)),
        });
        match moved {
            Ok((available, written)) => {
                done += written as u64;
                if written < available || available == 0 {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// One end: a description, and the pointer to the offset to use instead of its own, or null.
struct End {
    description: Rc<Description>,
    pointer: u64,
    offset: u64,
}

impl End {
    fn read(guest: &mut Guest, description: Rc<Description>, pointer: u64) -> Result<End> {
        let offset = if pointer != 0 {
            let [offset] = guest.task.mm.read_u64s(pointer)?;
            if i64::try_from(offset).is_err() {
                return Err(Errno::INVAL.into());
            }
            offset
        } else {
            match &description.object {
                Object::File(file) if file.is_stream() => 0,
                Object::File(_) => description.offset.get(),
                Object::Stream(stream) => stream.seek(SeekFrom::Current(0))?,
            }
        };
        Ok(End {
            description,
            pointer,
            offset,
        })
    }

    fn advance(&self, guest: &mut Guest, done: u64) -> Result<()> {
        let offset = self.offset.saturating_add(done);
        match &self.description.object {
            _ if self.pointer != 0 => guest.task.mm.write(self.pointer, &offset.to_ne_bytes())?,
            Object::File(file) if file.is_stream() => {}
            Object::File(_) => self.description.offset.set(offset),
            Object::Stream(stream) => {
                stream.seek(SeekFrom::Start(offset))?;
            }
        }
        Ok(())
    }

    fn read_at(&self, done: u64, bytes: &mut [u8]) -> std::result::Result<usize, Errno> {
        let (offset, slices) = (
            self.offset.saturating_add(done),
            [VolatileSlice::from(bytes)],
        );
        match &self.description.object {
            Object::File(file) => file.read_at(offset, &slices),
            Object::Stream(stream) => stream.read(&slices, Some(offset)),
        }
    }
}

/// `count` cut so that neither the call is long nor an offset is too large.
fn bounded(offset: u64, count: u64) -> u64 {
    count
        .min(COPY_MAX)
        .min((i64::MAX as u64).saturating_sub(offset))
}

pub(super) fn sendfile(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let input = guest.task.descriptors.usable(arguments.i32(1))?;
    let output = guest.task.descriptors.usable(arguments.i32(0))?;
    if !input.flags.get().reads() || !output.flags.get().writes() {
        return Err(Errno::BADF.into());
    }
    let readable = match &input.object {
        Object::File(file) => file.kind() != FileKind::Directory,
        Object::Stream(stream) => stream.kind() == FileKind::Regular,
    };
    if !readable || output.flags.get().contains(OpenFlags::APPEND) {
        return Err(Errno::INVAL.into());
    }
    let from = End::read(guest, input, arguments.address(2))?;
    let count = bounded(from.offset, arguments.u64(3));
    let done = match &output.object {
        Object::File(file) => {
            let to = End::read(guest, Rc::clone(&output), 0)?;
            let done = copy_to_file(guest, &from, &to, file, count)?;
            to.advance(guest, done)?;
            done
        }
        Object::Stream(stream) => copy_to_stream(guest, &from, &output, stream, count)?,
    };
    from.advance(guest, done)?;
    Ok(done)
}

fn copy_to_file(
    guest: &mut Guest,
    from: &End,
    to: &End,
    file: &Rc<dyn File>,
    count: u64,
) -> Result<u64> {
    let count = count.min(bounded(to.offset, count));
    if count == 0 {
        return Ok(0);
    }
    let count = allowed(guest, &to.description, file, to.offset, count)?;
    guest.task.mm.sync_all_shared();
    let write = |done: u64, bytes: &mut [u8]| {
        file.write_at(
            to.offset.saturating_add(done),
            &[VolatileSlice::from(bytes)],
        )
    };
    let done = pump(count, |done, bytes| from.read_at(done, bytes), write)?;
    guest.task.mm.refresh_shared(&**file);
    Ok(done)
}

fn copy_to_stream(
    guest: &mut Guest,
    from: &End,
    output: &Description,
    stream: &Stream,
    count: u64,
) -> Result<u64> {
    guest.task.mm.sync_all_shared();
    let write = |_, bytes: &mut [u8]| stream.write(&[VolatileSlice::from(bytes)], None, false);
    match pump(count, |done, bytes| from.read_at(done, bytes), write) {
        Err(Errno::AGAIN) => Err(would_block(output, stream, libc::POLLOUT)),
        Err(Errno::PIPE) => {
            signal::raise(guest, libc::SIGPIPE)?;
            Err(Errno::PIPE.into())
        }
        result => Ok(result?),
    }
}

pub(super) fn copy_file_range(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let input = guest.task.descriptors.usable(arguments.i32(0))?;
    let output = guest.task.descriptors.usable(arguments.i32(2))?;
    if arguments.u32(5) != 0 {
        return Err(Errno::INVAL.into());
    }
    for end in [&input, &output] {
        match end.kind() {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::INVAL.into()),
        }
    }
    let flags = output.flags.get();
    if !input.flags.get().reads() || !flags.writes() || flags.contains(OpenFlags::APPEND) {
        return Err(Errno::BADF.into());
    }
    // A redirected file is on another file system.
    let source = Rc::clone(input.file(Errno::XDEV)?);
    let target = Rc::clone(output.file(Errno::XDEV)?);
    let from = End::read(guest, input, arguments.address(1))?;
    let to = End::read(guest, output, arguments.address(3))?;
    let count = bounded(from.offset, arguments.u64(4));
    if is_same(&source, &target)? && from.offset.abs_diff(to.offset) < count {
        return Err(Errno::INVAL.into());
    }
    let done = copy_to_file(guest, &from, &to, &target, count)?;
    from.advance(guest, done)?;
    to.advance(guest, done)?;
    Ok(done)
}

fn is_same(a: &Rc<dyn File>, b: &Rc<dyn File>) -> std::result::Result<bool, Errno> {
    let (a, b) = (a.stat()?, b.stat()?);
    Ok((a.dev, a.ino) == (b.dev, b.ino))
}

#[cfg(test)]
mod tests;
