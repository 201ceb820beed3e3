//! Directories: listings, and the current one.

use agentrt_vfs::{FileKind, Location};
use rustix::io::Errno;

use super::layout::{self, DirentFormat};
use super::paths::PathAt;
use crate::arguments::Arguments;
use crate::guest::Guest;
use crate::mm::TRANSFER_MAX;
use crate::stop::Result;

pub(super) fn getdents(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    list(guest, arguments, DirentFormat::Old)
}

pub(super) fn getdents64(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    list(guest, arguments, DirentFormat::New)
}

fn list(guest: &mut Guest, arguments: &Arguments, format: DirentFormat) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    let file = description.file(Errno::NOTDIR)?;
    let room = (arguments.u32(2) as usize).min(TRANSFER_MAX);
    let (mut entries, mut next, mut refused) = (Vec::new(), description.offset.get(), false);
    file.read_dir(next, &mut |entry| {
        let taken = layout::push_dirent(&mut entries, room, format, &entry);
        if taken {
            next = entry.next;
        }
        refused = !taken;
        taken
    })?;
    if entries.is_empty() && refused {
        return Err(Errno::INVAL.into());
    }
    guest.task.mm.write(arguments.address(1), &entries)?;
    description.offset.set(next);
    Ok(entries.len() as u64)
}

pub(super) fn chdir(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let at = PathAt::read(guest, libc::AT_FDCWD, arguments.address(0))?;
    let place = guest.vfs.lookup(&guest.task, &at.base, &at.path, true)?;
    enter(guest, place)
}

pub(super) fn fchdir(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.get(arguments.i32(0))?;
    let place = description.file(Errno::NOTDIR)?.location().clone();
    enter(guest, place)
}

fn enter(guest: &mut Guest, place: Location) -> Result<u64> {
    if guest.vfs.stat_of(&guest.task, &place)?.kind() != FileKind::Directory {
        return Err(Errno::NOTDIR.into());
    }
    guest.task.cwd = place;
    Ok(0)
}

pub(super) fn getcwd(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // A directory that was removed has no path.
    if guest.vfs.stat_of(&guest.task, &guest.task.cwd)?.nlink == 0 {
        return Err(Errno::NOENT.into());
    }
    let mut path = guest.vfs.path_of(&guest.task.cwd);
    if !path.starts_with(b"/") {
        return Err(Errno::NAMETOOLONG.into());
    }
    path.push(0);
    if path.len() as u64 > arguments.u64(1) {
        return Err(Errno::RANGE.into());
    }
    guest.task.mm.write(arguments.address(0), &path)?;
    Ok(path.len() as u64)
}

/// `chroot`: the root of a guest is the root of its tree.
pub(super) fn chroot(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let at = PathAt::read(guest, libc::AT_FDCWD, arguments.address(0))?;
    guest.vfs.lookup(&guest.task, &at.base, &at.path, true)?;
    Err(Errno::PERM.into())
}
