//! Names in directories: made, moved, removed.

use agentrt_vfs::RenameFlags;
use rustix::io::Errno;

use super::paths::{self, Named, PathAt, check_flags};
use crate::arguments::Arguments;
use crate::guest::Guest;
use crate::stop::Result;

const CWD: i32 = libc::AT_FDCWD;

pub(super) fn mkdir(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    mkdir_at(guest, CWD, arguments.address(0), arguments.u32(1))
}

pub(super) fn mkdirat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    mkdir_at(
        guest,
        arguments.i32(0),
        arguments.address(1),
        arguments.u32(2),
    )
}

fn mkdir_at(guest: &mut Guest, directory: i32, path: u64, mode: u32) -> Result<u64> {
    let at = PathAt::read(guest, directory, path)?;
    let mode = mode & 0o7777 & !guest.task.umask;
    guest.vfs.mkdir(&guest.task, &at.base, &at.path, mode)?;
    Ok(0)
}

pub(super) fn mknod(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    mknod_at(guest, CWD, arguments.address(0), arguments.u32(1))
}

pub(super) fn mknodat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    mknod_at(
        guest,
        arguments.i32(0),
        arguments.address(1),
        arguments.u32(2),
    )
}

fn mknod_at(guest: &mut Guest, directory: i32, path: u64, mode: u32) -> Result<u64> {
    let at = PathAt::read(guest, directory, path)?;
    let mode = mode & (libc::S_IFMT | 0o7777) & !guest.task.umask;
    guest.vfs.mknod(&guest.task, &at.base, &at.path, mode)?;
    Ok(0)
}

pub(super) fn unlink(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    remove_at(guest, CWD, arguments.address(0), 0)
}

pub(super) fn rmdir(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    remove_at(guest, CWD, arguments.address(0), libc::AT_REMOVEDIR)
}

pub(super) fn unlinkat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    remove_at(
        guest,
        arguments.i32(0),
        arguments.address(1),
        arguments.i32(2),
    )
}

fn remove_at(guest: &mut Guest, directory: i32, path: u64, flags: i32) -> Result<u64> {
    check_flags(flags, libc::AT_REMOVEDIR)?;
    let at = PathAt::read(guest, directory, path)?;
    match flags {
        0 => guest.vfs.unlink(&guest.task, &at.base, &at.path)?,
        _ => guest.vfs.rmdir(&guest.task, &at.base, &at.path)?,
    }
    Ok(0)
}

pub(super) fn rename(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    rename_at(
        guest,
        (CWD, arguments.address(0)),
        (CWD, arguments.address(1)),
        0,
    )
}

pub(super) fn renameat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let from = (arguments.i32(0), arguments.address(1));
    rename_at(guest, from, (arguments.i32(2), arguments.address(3)), 0)
}

pub(super) fn renameat2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let from = (arguments.i32(0), arguments.address(1));
    rename_at(
        guest,
        from,
        (arguments.i32(2), arguments.address(3)),
        arguments.u32(4),
    )
}

fn rename_at(guest: &mut Guest, from: (i32, u64), to: (i32, u64), flags: u32) -> Result<u64> {
    let from = PathAt::read(guest, from.0, from.1)?;
    let to = PathAt::read(guest, to.0, to.1)?;
    let flags = RenameFlags::from_bits_retain(flags);
    let (source, target) = ((&from.base, &from.path[..]), (&to.base, &to.path[..]));
    guest.vfs.rename(&guest.task, source, target, flags)?;
    Ok(0)
}

pub(super) fn link(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    link_at(
        guest,
        (CWD, arguments.address(0)),
        (CWD, arguments.address(1)),
        0,
    )
}

pub(super) fn linkat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let from = (arguments.i32(0), arguments.address(1));
    link_at(
        guest,
        from,
        (arguments.i32(2), arguments.address(3)),
        arguments.i32(4),
    )
}

fn link_at(guest: &mut Guest, from: (i32, u64), to: (i32, u64), flags: i32) -> Result<u64> {
    check_flags(flags, libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH)?;
    let from = Named::read(guest, from.0, from.1, flags)?;
    let to = PathAt::read(guest, to.0, to.1)?;
    let from = from.locate(guest, flags & libc::AT_SYMLINK_FOLLOW != 0)?;
    guest.vfs.link(&guest.task, &from, &to.base, &to.path)?;
    Ok(0)
}

pub(super) fn symlink(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    symlink_at(guest, arguments.address(0), CWD, arguments.address(1))
}

pub(super) fn symlinkat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    symlink_at(
        guest,
        arguments.address(0),
        arguments.i32(1),
        arguments.address(2),
    )
}

fn symlink_at(guest: &mut Guest, target: u64, directory: i32, path: u64) -> Result<u64> {
    let target = paths::read_path(guest, target)?;
    let at = PathAt::read(guest, directory, path)?;
    guest
        .vfs
        .symlink(&guest.task, &target, &at.base, &at.path)?;
    Ok(0)
}

pub(super) fn readlink(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    read_link_at(
        guest,
        CWD,
        arguments.address(0),
        arguments.address(1),
        arguments.i32(2),
    )
}

pub(super) fn readlinkat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (path, buffer) = (arguments.address(1), arguments.address(2));
    read_link_at(guest, arguments.i32(0), path, buffer, arguments.i32(3))
}

fn read_link_at(
    guest: &mut Guest,
    directory: i32,
    path: u64,
    buffer: u64,
    size: i32,
) -> Result<u64> {
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size > 0)
        .ok_or(Errno::INVAL)?;
    let target = match Named::read(guest, directory, path, libc::AT_EMPTY_PATH)? {
        Named::Path(at) => guest.vfs.readlink(&guest.task, &at.base, &at.path)?,
        // A handle on the link itself. For anything else an empty path names nothing.
        Named::Descriptor(_, description) => {
            let place = description.file(Errno::NOENT)?.location();
            let target = guest.vfs.readlink_of(&guest.task, place);
            target.map_err(|error| {
                if error == Errno::INVAL {
                    Errno::NOENT
                } else {
                    error
                }
            })?
        }
        Named::CurrentDirectory => return Err(Errno::NOENT.into()),
    };
    let length = target.len().min(size);
    guest.task.mm.write(buffer, &target[..length])?;
    Ok(length as u64)
}
