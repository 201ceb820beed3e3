//! Attributes as they are set: chmod, chown, times, umask.

use agentrt_vfs::{TimeUpdate, Timestamp};
use rustix::io::Errno;

use super::memfd::Seals;
use super::paths::{Named, check_flags};
use crate::arguments::Arguments;
use crate::guest::Guest;
use crate::stop::Result;

/// Flags that the calls on a path, or on a descriptor, take.
const AT_FLAGS: i32 = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;

pub(super) fn chmod(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    chmod_at(
        guest,
        libc::AT_FDCWD,
        arguments.address(0),
        arguments.u32(1),
        0,
    )
}

pub(super) fn fchmodat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    chmod_at(
        guest,
        arguments.i32(0),
        arguments.address(1),
        arguments.u32(2),
        0,
    )
}

pub(super) fn fchmodat2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (mode, flags) = (arguments.u32(2), arguments.i32(3));
    chmod_at(guest, arguments.i32(0), arguments.address(1), mode, flags)
}

fn chmod_at(guest: &mut Guest, directory: i32, path: u64, mode: u32, flags: i32) -> Result<u64> {
    check_flags(flags, AT_FLAGS)?;
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let place = Named::read(guest, directory, path, flags)?.locate(guest, follow)?;
    guest.vfs.set_mode(&place, mode & 0o7777)?;
    Ok(0)
}

pub(super) fn fchmod(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    let file = description.file(Errno::PERM)?;
    let mode = arguments.u32(1) & 0o7777;
    let sealed = description.seals().contains(Seals::EXEC);
    if sealed && (file.stat()?.mode ^ mode) & 0o111 != 0 {
        return Err(Errno::PERM.into());
    }
    file.set_mode(mode)?;
    Ok(0)
}

/// An id argument of chown: -1 leaves the id alone.
fn id(value: u32) -> Option<u32> {
    (value != u32::MAX).then_some(value)
}

pub(super) fn chown(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (uid, gid) = (arguments.u32(1), arguments.u32(2));
    chown_at(guest, libc::AT_FDCWD, arguments.address(0), (uid, gid), 0)
}

pub(super) fn lchown(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (uid, gid) = (arguments.u32(1), arguments.u32(2));
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    chown_at(
        guest,
        libc::AT_FDCWD,
        arguments.address(0),
        (uid, gid),
        flags,
    )
}

pub(super) fn fchownat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (uid, gid) = (arguments.u32(2), arguments.u32(3));
    chown_at(
        guest,
        arguments.i32(0),
        arguments.address(1),
        (uid, gid),
        arguments.i32(4),
    )
}

fn chown_at(
    guest: &mut Guest,
    directory: i32,
    path: u64,
    (uid, gid): (u32, u32),
    flags: i32,
) -> Result<u64> {
    check_flags(flags, AT_FLAGS)?;
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let place = Named::read(guest, directory, path, flags)?.locate(guest, follow)?;
    guest.vfs.set_owner(&place, id(uid), id(gid))?;
    Ok(0)
}

pub(super) fn fchown(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    let file = description.file(Errno::PERM)?;
    file.set_owner(id(arguments.u32(1)), id(arguments.u32(2)))?;
    Ok(0)
}

pub(super) fn umask(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let old = guest.task.umask;
    guest.task.umask = arguments.u32(0) & 0o777;
    Ok(old.into())
}

/// Access and modification time.
type Times = [TimeUpdate; 2];

/// `struct utimbuf`, in seconds.
pub(super) fn utime(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let times = match arguments.address(1) {
        0 => [TimeUpdate::Now; 2],
        address => guest.task.mm.read_u64s::<2>(address)?.map(|seconds| {
            TimeUpdate::At(Timestamp {
                seconds: seconds as i64,
                nanoseconds: 0,
            })
        }),
    };
    set_times_at(guest, libc::AT_FDCWD, arguments.address(0), times, 0)
}

pub(super) fn utimes(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let times = read_timevals(guest, arguments.address(1))?;
    set_times_at(guest, libc::AT_FDCWD, arguments.address(0), times, 0)
}

pub(super) fn futimesat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let times = read_timevals(guest, arguments.address(2))?;
    match arguments.address(1) {
        0 => set_descriptor_times(guest, arguments.i32(0), times),
        path => set_times_at(guest, arguments.i32(0), path, times, 0),
    }
}

pub(super) fn utimensat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let times = read_timespecs(guest, arguments.address(2))?;
    // Linux looks at nothing else then.
    if times == [TimeUpdate::Omit; 2] {
        return Ok(0);
    }
    let (directory, path, flags) = (arguments.i32(0), arguments.address(1), arguments.i32(3));
    if path != 0 {
        return set_times_at(guest, directory, path, times, flags);
    }
    if directory == libc::AT_FDCWD {
        return Err(Errno::FAULT.into());
    }
    check_flags(flags, 0)?;
    set_descriptor_times(guest, directory, times)
}

fn set_times_at(
    guest: &mut Guest,
    directory: i32,
    path: u64,
    [atime, mtime]: Times,
    flags: i32,
) -> Result<u64> {
    check_flags(flags, AT_FLAGS)?;
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let place = Named::read(guest, directory, path, flags)?.locate(guest, follow)?;
    guest.vfs.set_times(&place, atime, mtime)?;
    Ok(0)
}

fn set_descriptor_times(guest: &mut Guest, number: i32, [atime, mtime]: Times) -> Result<u64> {
    let description = guest.task.descriptors.usable(number)?;
    description.file(Errno::PERM)?.set_times(atime, mtime)?;
    Ok(0)
}

fn read_timevals(guest: &mut Guest, address: u64) -> std::result::Result<Times, Errno> {
    if address == 0 {
        return Ok([TimeUpdate::Now; 2]);
    }
    let [a_seconds, a_micros, m_seconds, m_micros] = guest.task.mm.read_u64s(address)?;
    let time = |seconds: u64, micros: u64| match micros {
        0..=999_999 => {
            let nanoseconds = micros as u32 * 1000;
            Ok(TimeUpdate::At(Timestamp {
                seconds: seconds as i64,
                nanoseconds,
            }))
        }
        _ => Err(Errno::INVAL),
    };
    Ok([time(a_seconds, a_micros)?, time(m_seconds, m_micros)?])
}

fn read_timespecs(guest: &mut Guest, address: u64) -> std::result::Result<Times, Errno> {
    if address == 0 {
        return Ok([TimeUpdate::Now; 2]);
    }
    let [a_seconds, a_nanos, m_seconds, m_nanos] = guest.task.mm.read_u64s(address)?;
    Ok([
        time_update(a_seconds, a_nanos)?,
        time_update(m_seconds, m_nanos)?,
    ])
}

fn time_update(seconds: u64, nanos: u64) -> std::result::Result<TimeUpdate, Errno> {
    const NOW: u64 = libc::UTIME_NOW as u64;
    const OMIT: u64 = libc::UTIME_OMIT as u64;
    match nanos {
        NOW => Ok(TimeUpdate::Now),
        OMIT => Ok(TimeUpdate::Omit),
        0..=999_999_999 => Ok(TimeUpdate::At(Timestamp {
            seconds: seconds as i64,
            nanoseconds: nanos as u32,
        })),
        _ => Err(Errno::INVAL),
    }
}
