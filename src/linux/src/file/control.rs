//! fcntl.

use agentrt_vfs::{FileKind, OpenFlags};
use rustix::io::Errno;

use super::{locks, memfd};
use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::Result;

/// Status flags that `F_SETFL` changes.
const SETTABLE: OpenFlags = OpenFlags::APPEND
    .union(OpenFlags::NONBLOCK)
    .union(OpenFlags::DIRECT)
    .union(OpenFlags::NOATIME);
/// `F_SETSIG` and `F_GETSIG` of `asm-generic/fcntl.h`.
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;

pub(super) fn fcntl(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (number, command, argument) = (arguments.i32(0), arguments.i32(1), arguments.i32(2));
    let descriptors = &guest.task.descriptors;
    let description = descriptors.get(number)?;
    match command {
        libc::F_DUPFD => return Ok(descriptors.open_from(argument, description, false)? as u64),
        libc::F_DUPFD_CLOEXEC => {
            return Ok(descriptors.open_from(argument, description, true)? as u64);
        }
        libc::F_GETFD => return Ok(descriptors.close_on_exec(number)?.into()),
        libc::F_SETFD => {
            descriptors.set_close_on_exec(number, argument & libc::FD_CLOEXEC != 0)?;
            return Ok(0);
        }
        libc::F_GETFL => return Ok(description.flags.get().bits().into()),
        // Nothing else is possible with a handle.
        _ if description.is_handle() => return Err(Errno::BADF.into()),
        _ => {}
    }
    match command {
        libc::F_SETFL => set_flags(&description, argument as u32),
        libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW => {
            return locks::process_lock(guest, &description, command, arguments.address(2));
        }
        libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            return locks::description_lock(guest, &description, command, arguments.address(2));
        }
        libc::F_GET_SEALS => return Ok(memfd::get(&description)?),
        libc::F_ADD_SEALS => memfd::add(&description, argument as u32)?,
        libc::F_GETPIPE_SZ | libc::F_SETPIPE_SZ => return Ok(pipe_size(&description, command)?),
        // No descriptor of a guest sends signals.
        libc::F_GETOWN | F_GETSIG | libc::F_SETOWN => {}
        F_SETSIG if (0..=64).contains(&argument) => {}
        libc::F_GETLEASE => return Ok(libc::F_UNLCK as u64),
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(0)
}

/// `F_SETFL`. A stream to which the host appends stays one.
fn set_flags(description: &Description, flags: u32) {
    let wanted = OpenFlags::from_bits_retain(flags) & SETTABLE;
    let mut flags = (description.flags.get() - SETTABLE) | wanted;
    if let Object::Stream(stream) = &description.object {
        flags |= stream.flags() & OpenFlags::APPEND;
    }
    description.flags.set(flags);
}

/// `F_GETPIPE_SZ` and `F_SETPIPE_SZ`: the pipes are the host's, their size is too.
fn pipe_size(description: &Description, command: i32) -> std::result::Result<u64, Errno> {
    match &description.object {
        Object::Stream(stream) if stream.kind() == FileKind::Fifo => match command {
            libc::F_GETPIPE_SZ => Ok(stream.pipe_size()? as u64),
            _ => Err(Errno::PERM),
        },
        _ => Err(Errno::BADF),
    }
}
