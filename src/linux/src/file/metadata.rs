//! Attributes as they are asked for: stat, statfs, access.

use agentrt_vfs::{Stat, StatFs};
use rustix::io::Errno;

use super::layout;
use super::paths::{Named, PathAt, check_flags};
use crate::arguments::Arguments;
use crate::descriptor::Object;
use crate::guest::Guest;
use crate::stop::Result;

/// Flags that all of stat's relatives take.
const STAT_FLAGS: i32 = libc::AT_SYMLINK_NOFOLLOW
    | libc::AT_NO_AUTOMOUNT
    | libc::AT_EMPTY_PATH
    | libc::AT_STATX_SYNC_TYPE;
/// `STATX__RESERVED` of `linux/stat.h`.
const STATX_RESERVED: u32 = 0x8000_0000;
/// `PIPEFS_MAGIC` of `linux/magic.h`: streams are on no file system of the guest's.
const STREAM_MAGIC: i64 = 0x5049_5045;

pub(super) fn stat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let stat = stat_at(guest, libc::AT_FDCWD, arguments.address(0), 0)?;
    write_stat(guest, arguments.address(1), &stat)
}

pub(super) fn lstat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    let stat = stat_at(guest, libc::AT_FDCWD, arguments.address(0), flags)?;
    write_stat(guest, arguments.address(1), &stat)
}

pub(super) fn fstat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let stat = guest.task.descriptors.get(arguments.i32(0))?.stat()?;
    write_stat(guest, arguments.address(1), &stat)
}

pub(super) fn newfstatat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = arguments.i32(3);
    let stat = stat_at(guest, arguments.i32(0), arguments.address(1), flags)?;
    write_stat(guest, arguments.address(2), &stat)
}

pub(super) fn statx(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (flags, mask) = (arguments.i32(2), arguments.u32(3));
    let both = flags & libc::AT_STATX_SYNC_TYPE == libc::AT_STATX_SYNC_TYPE;
    if mask & STATX_RESERVED != 0 || both {
        return Err(Errno::INVAL.into());
    }
    let stat = stat_at(guest, arguments.i32(0), arguments.address(1), flags)?;
    guest
        .task
        .mm
        .write(arguments.address(4), &layout::statx(&stat))?;
    Ok(0)
}

fn stat_at(
    guest: &mut Guest,
    directory: i32,
    path: u64,
    flags: i32,
) -> std::result::Result<Stat, Errno> {
    check_flags(flags, STAT_FLAGS)?;
    // Since Linux 6.11 a null pointer is as good as an empty path.
    if path == 0 && flags & libc::AT_EMPTY_PATH != 0 && directory >= 0 {
        return guest.task.descriptors.get(directory)?.stat();
    }
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    match Named::read(guest, directory, path, flags)? {
        Named::Path(at) => guest.vfs.stat(&guest.task, &at.base, &at.path, follow),
        Named::Descriptor(_, description) => description.stat(),
        Named::CurrentDirectory => guest.vfs.stat_of(&guest.task, &guest.task.cwd),
    }
}

fn write_stat(guest: &mut Guest, address: u64, stat: &Stat) -> Result<u64> {
    guest.task.mm.write(address, &layout::stat(stat))?;
    Ok(0)
}

pub(super) fn statfs(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let at = PathAt::read(guest, libc::AT_FDCWD, arguments.address(0))?;
    let place = guest.vfs.lookup(&guest.task, &at.base, &at.path, true)?;
    let statfs = guest.vfs.statfs(&place)?;
    guest
        .task
        .mm
        .write(arguments.address(1), &layout::statfs(&statfs))?;
    Ok(0)
}

pub(super) fn fstatfs(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.get(arguments.i32(0))?;
    let statfs = match &description.object {
        Object::File(file) => guest.vfs.statfs(file.location())?,
        Object::Stream(_) => StatFs {
            magic: STREAM_MAGIC,
            block_size: 4096,
            name_max: agentrt_vfs::NAME_MAX as i64,
            ..StatFs::default()
        },
    };
    guest
        .task
        .mm
        .write(arguments.address(1), &layout::statfs(&statfs))?;
    Ok(0)
}

pub(super) fn access(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    access_at(
        guest,
        libc::AT_FDCWD,
        arguments.address(0),
        arguments.u32(1),
        0,
    )
}

pub(super) fn faccessat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    access_at(
        guest,
        arguments.i32(0),
        arguments.address(1),
        arguments.u32(2),
        0,
    )
}

pub(super) fn faccessat2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (mode, flags) = (arguments.u32(2), arguments.i32(3));
    access_at(guest, arguments.i32(0), arguments.address(1), mode, flags)
}

fn access_at(guest: &mut Guest, directory: i32, path: u64, mode: u32, flags: i32) -> Result<u64> {
    if mode & !(libc::R_OK | libc::W_OK | libc::X_OK) as u32 != 0 {
        return Err(Errno::INVAL.into());
    }
    check_flags(
        flags,
        libc::AT_EACCESS | libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH,
    )?;
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let at = match Named::read(guest, directory, path, flags)? {
        Named::Path(at) => at,
        // Its link names a descriptor whatever it is.
        Named::Descriptor(number, _) => PathAt {
            base: guest.task.cwd.clone(),
            path: format!("/proc/self/fd/{number}").into_bytes(),
        },
        Named::CurrentDirectory => PathAt {
            base: guest.task.cwd.clone(),
            path: b".".to_vec(),
        },
    };
    guest
        .vfs
        .access(&guest.task, &at.base, &at.path, mode, follow)?;
    Ok(0)
}
