//! The size of files, and what becomes of their data: truncate, fallocate, sync, advice.

use agentrt_vfs::FileKind;
use rustix::io::Errno;

use super::io::within_size_limit;
use super::memfd::{self, Seals};
use super::paths::{PathAt, check_flags};
use crate::arguments::Arguments;
use crate::descriptor::Object;
use crate::guest::Guest;
use crate::stop::Result;

fn size_argument(arguments: &Arguments) -> std::result::Result<u64, Errno> {
    u64::try_from(arguments.i64(1)).map_err(|_| Errno::INVAL)
}

pub(super) fn truncate(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let size = size_argument(arguments)?;
    let at = PathAt::read(guest, libc::AT_FDCWD, arguments.address(0))?;
    let stat = guest.vfs.stat(&guest.task, &at.base, &at.path, true)?;
    check_growth(guest, stat.size, size)?;
    guest.task.mm.sync_all_shared();
    guest.vfs.truncate(&guest.task, &at.base, &at.path, size)?;
    guest.task.mm.refresh_all_shared();
    Ok(0)
}

pub(super) fn ftruncate(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let size = size_argument(arguments)?;
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    if !description.flags.get().writes() || description.kind() != FileKind::Regular {
        return Err(Errno::INVAL.into());
    }
    match &description.object {
        Object::File(file) => {
            let old = file.size()?;
            memfd::check_resize(description.seals(), old, size)?;
            check_growth(guest, old, size)?;
            guest.task.mm.sync_shared(&**file);
            file.truncate(size)?;
            guest.task.mm.refresh_shared(&**file);
        }
        Object::Stream(stream) => stream.truncate(size)?,
    }
    Ok(0)
}

/// A file may not grow beyond RLIMIT_FSIZE.
fn check_growth(guest: &mut Guest, old: u64, new: u64) -> Result<()> {
    let Some(grown) = new.checked_sub(old).filter(|grown| *grown > 0) else {
        return Ok(());
    };
    // All or nothing: the last byte has to be allowed.
    within_size_limit(guest, old + grown - 1, 1).map(drop)
}

pub(super) fn fallocate(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    let mode = arguments.u32(1);
    let (offset, length) = (
        u64::try_from(arguments.i64(2)),
        u64::try_from(arguments.i64(3)),
    );
    let (Ok(offset), Ok(length @ 1..)) = (offset, length) else {
        return Err(Errno::INVAL.into());
    };
    if !description.flags.get().writes() {
        return Err(Errno::BADF.into());
    }
    let file = match (&description.object, description.kind()) {
        (Object::File(file), FileKind::Regular) => file,
        (_, FileKind::Fifo) => return Err(Errno::SPIPE.into()),
        (_, FileKind::Directory) => return Err(Errno::ISDIR.into()),
        (Object::Stream(_), FileKind::Regular) => return Err(Errno::OPNOTSUPP.into()),
        _ => return Err(Errno::NODEV.into()),
    };
    let end = offset + length;
    if i64::try_from(end).is_err() {
        return Err(Errno::FBIG.into());
    }
    let size = file.size()?;
    let punches = mode & libc::FALLOC_FL_PUNCH_HOLE as u32 != 0;
    let frozen = description
        .seals()
        .intersects(Seals::WRITE | Seals::FUTURE_WRITE);
    if punches && frozen {
        return Err(Errno::PERM.into());
    }
    if mode & libc::FALLOC_FL_KEEP_SIZE as u32 == 0 {
        memfd::check_resize(description.seals(), size, end.max(size))?;
        check_growth(guest, size, end)?;
    }
    guest.task.mm.sync_shared(&**file);
    file.allocate(mode, offset, length)?;
    guest.task.mm.refresh_shared(&**file);
    Ok(0)
}

pub(super) fn fsync(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    sync_file(guest, arguments, false)
}

pub(super) fn fdatasync(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    sync_file(guest, arguments, true)
}

fn sync_file(guest: &mut Guest, arguments: &Arguments, data_only: bool) -> Result<u64> {
    match &guest.task.descriptors.usable(arguments.i32(0))?.object {
        Object::File(file) => {
            guest.task.mm.sync_shared(&**file);
            file.sync(data_only)?;
        }
        Object::Stream(stream) => stream.sync(data_only)?,
    }
    Ok(0)
}

/// `sync`: what the guest writes is in memory or already the host's.
pub(super) fn sync(_: &mut Guest, _: &Arguments) -> Result<u64> {
    Ok(0)
}

pub(super) fn syncfs(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    guest.task.descriptors.usable(arguments.i32(0))?;
    Ok(0)
}

pub(super) fn sync_file_range(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    let known = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    check_flags(arguments.i32(3), known as i32)?;
    let (offset, length) = (arguments.i64(1), arguments.i64(2));
    if offset < 0 || length < 0 || offset.checked_add(length).is_none() {
        return Err(Errno::INVAL.into());
    }
    match description.kind() {
        FileKind::Regular | FileKind::Directory | FileKind::BlockDevice => Ok(0),
        _ => Err(Errno::SPIPE.into()),
    }
}

/// Advice on access patterns, which the host needs none of.
pub(super) fn fadvise64(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    if description.kind() == FileKind::Fifo {
        return Err(Errno::SPIPE.into());
    }
    let known = libc::POSIX_FADV_NORMAL..=libc::POSIX_FADV_NOREUSE;
    if arguments.i64(2) < 0 || !known.contains(&arguments.i32(3)) {
        return Err(Errno::INVAL.into());
    }
    Ok(0)
}

pub(super) fn readahead(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    if !description.flags.get().reads() {
        return Err(Errno::BADF.into());
    }
    match description.kind() {
        FileKind::Regular => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}
