//! open and its like.

use std::rc::Rc;

use agentrt_vfs::{File, FileKind, OpenFlags, Opened, ResolveFlags};
use rustix::io::Errno;

use super::memfd;
use super::paths::{self, PathAt};
use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::Result;
use crate::stream::Stream;

/// Flags that Linux knows (`VALID_OPEN_FLAGS` of `linux/fcntl.h`); open ignores others.
const KNOWN: OpenFlags = OpenFlags::WRONLY
    .union(OpenFlags::RDWR)
    .union(OpenFlags::CREAT)
    .union(OpenFlags::EXCL)
    .union(OpenFlags::NOCTTY)
    .union(OpenFlags::TRUNC)
    .union(OpenFlags::APPEND)
    .union(OpenFlags::NONBLOCK)
    .union(OpenFlags::SYNC)
    .union(OpenFlags::DSYNC)
    .union(OpenFlags::from_bits_retain(libc::O_ASYNC as u32))
    .union(OpenFlags::DIRECT)
    .union(OpenFlags::LARGEFILE)
    .union(OpenFlags::DIRECTORY)
    .union(OpenFlags::NOFOLLOW)
    .union(OpenFlags::NOATIME)
    .union(OpenFlags::CLOEXEC)
    .union(OpenFlags::PATH)
    .union(OpenFlags::TMPFILE);
/// Flags that mean something beside `O_PATH`.
const WITH_PATH: OpenFlags = OpenFlags::PATH
    .union(OpenFlags::DIRECTORY)
    .union(OpenFlags::NOFOLLOW)
    .union(OpenFlags::CLOEXEC);
/// Flags for the moment of opening, which the description does not keep.
const MOMENTARY: OpenFlags = OpenFlags::CREAT
    .union(OpenFlags::EXCL)
    .union(OpenFlags::NOCTTY)
    .union(OpenFlags::TRUNC)
    .union(OpenFlags::CLOEXEC);

/// `struct open_how` (openat2(2)): flags, mode, resolve.
const OPEN_HOW_SIZE: usize = 24;
/// Largest structure that openat2 takes: a page.
const OPEN_HOW_MAX: u64 = 4096;

pub(super) fn open(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    open_at(
        guest,
        libc::AT_FDCWD,
        arguments.address(0),
        arguments.u32(1),
        arguments.u32(2),
    )
}

pub(super) fn creat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = OpenFlags::CREAT | OpenFlags::WRONLY | OpenFlags::TRUNC;
    open_at(
        guest,
        libc::AT_FDCWD,
        arguments.address(0),
        flags.bits(),
        arguments.u32(1),
    )
}

pub(super) fn openat(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let directory = arguments.i32(0);
    open_at(
        guest,
        directory,
        arguments.address(1),
        arguments.u32(2),
        arguments.u32(3),
    )
}

fn open_at(guest: &mut Guest, directory: i32, path: u64, flags: u32, mode: u32) -> Result<u64> {
    let mut flags = OpenFlags::from_bits_retain(flags) & KNOWN;
    if flags.contains(OpenFlags::PATH) {
        flags &= WITH_PATH;
    }
    let at = PathAt::read(guest, directory, path)?;
    finish(guest, &at, flags, mode & 0o7777, ResolveFlags::empty())
}

pub(super) fn openat2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (flags, mode, resolve) = read_how(guest, arguments.address(2), arguments.u64(3))?;
    let path = paths::read_path(guest, arguments.address(1))?;
    if path.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let base = match path.first() {
        Some(b'/') if resolve.is_empty() => guest.task.cwd.clone(),
        _ => paths::base(&guest.task, arguments.i32(0))?,
    };
    finish(guest, &PathAt { base, path }, flags, mode, resolve)
}

fn read_how(guest: &mut Guest, address: u64, size: u64) -> Result<(OpenFlags, u32, ResolveFlags)> {
    if size > OPEN_HOW_MAX {
        return Err(Errno::TOOBIG.into());
    }
    if size < OPEN_HOW_SIZE as u64 {
        return Err(Errno::INVAL.into());
    }
    let mut bytes = vec![0; size as usize];
    guest.task.mm.read(address, &mut bytes)?;
    if bytes[OPEN_HOW_SIZE..].iter().any(|byte| *byte != 0) {
        return Err(Errno::TOOBIG.into());
    }
    let [flags, mode, resolve] = guest.task.mm.read_u64s(address)?;
    let flags = u32::try_from(flags).map_err(|_| Errno::INVAL)?;
    let flags = OpenFlags::from_bits_retain(flags);
    let creates = flags.contains(OpenFlags::CREAT) || flags.is_tmpfile();
    let handle = flags.contains(OpenFlags::PATH);
    if !KNOWN.contains(flags)
        || mode & !0o7777 != 0
        || (mode != 0 && !creates)
        || (handle && !WITH_PATH.contains(flags))
    {
        return Err(Errno::INVAL.into());
    }
    Ok((flags, mode as u32, ResolveFlags::from_bits_retain(resolve)))
}

/// Opens the file, and a number for it.
fn finish(
    guest: &mut Guest,
    at: &PathAt,
    flags: OpenFlags,
    mode: u32,
    resolve: ResolveFlags,
) -> Result<u64> {
    // Before anything is created or cut.
    guest.task.descriptors.check_free()?;
    let mode = mode & !guest.task.umask;
    let cuts = flags.contains(OpenFlags::TRUNC);
    if cuts {
        guest.task.mm.sync_all_shared();
    }
    let opened = guest
        .vfs
        .open(&guest.task, &at.base, &at.path, flags, mode, resolve)?;
    let description = match opened {
        Opened::File(file) => of_file(file, flags),
        Opened::Descriptor(number) => open_again(guest, number, flags)?,
        Opened::Terminal => terminal(guest, flags)?,
    };
    if cuts {
        guest.task.mm.refresh_all_shared();
    }
    let close_on_exec = flags.contains(OpenFlags::CLOEXEC);
    Ok(guest.task.descriptors.open(description, close_on_exec)? as u64)
}

/// The flags that a description keeps of those it was opened with.
fn kept(flags: OpenFlags) -> OpenFlags {
    let large = match flags.contains(OpenFlags::PATH) {
        true => OpenFlags::empty(),
        false => OpenFlags::LARGEFILE,
    };
    (flags - MOMENTARY) | large
}

fn of_file(file: Box<dyn File>, flags: OpenFlags) -> Rc<Description> {
    Description::new(Object::File(Rc::from(file)), kept(flags))
}

/// Opens what a descriptor refers to, as opening its link in `/proc/self/fd` does.
fn open_again(
    guest: &mut Guest,
    number: i32,
    flags: OpenFlags,
) -> std::result::Result<Rc<Description>, Errno> {
    let old = guest
        .task
        .descriptors
        .get(number)
        .map_err(|_| Errno::NOENT)?;
    let file = match &old.object {
        Object::Stream(stream) => return of_stream(stream, flags),
        Object::File(file) => file,
    };
    let cuts = flags.contains(OpenFlags::TRUNC);
    if cuts && !old.seals().is_empty() {
        memfd::check_resize(old.seals(), file.size()?, 0)?;
    }
    let object = match guest.vfs.reopen(&guest.task, file.location(), flags) {
        Ok(Opened::File(file)) => Object::File(Rc::from(file)),
        Ok(Opened::Terminal) => return terminal(guest, flags),
        Ok(Opened::Descriptor(_)) => return Err(Errno::LOOP),
        // It has no name any more on a volume: only the open file leads to it.
        Err(Errno::NOENT) if !old.is_handle() => {
            check_access(old.flags.get(), flags)?;
            if cuts {
                file.truncate(0)?;
            }
            Object::File(Rc::clone(file))
        }
        Err(error) => return Err(error),
    };
    Ok(Description::with_seals(
        object,
        kept(flags),
        old.seals.clone(),
    ))
}

/// A stream on a description of its own. It has the position of the host's, and is not cut:
/// what was in a redirected file before the guest ran is not the guest's.
fn of_stream(stream: &Rc<Stream>, flags: OpenFlags) -> std::result::Result<Rc<Description>, Errno> {
    if flags.contains(OpenFlags::DIRECTORY) && stream.kind() != FileKind::Directory {
        return Err(Errno::NOTDIR);
    }
    let flags = if flags.contains(OpenFlags::PATH) {
        flags
    } else {
        check_access(stream.flags(), flags)?;
        flags | stream.flags() & OpenFlags::APPEND
    };
    Ok(Description::new(
        Object::Stream(Rc::clone(stream)),
        kept(flags),
    ))
}

/// Whether what is open with `had` may be opened again with `wanted`.
fn check_access(had: OpenFlags, wanted: OpenFlags) -> std::result::Result<(), Errno> {
    let reads = wanted.reads() && !had.reads();
    let writes = (wanted.writes() || wanted.contains(OpenFlags::TRUNC)) && !had.writes();
    if reads || writes {
        Err(Errno::ACCESS)
    } else {
        Ok(())
    }
}

/// `/dev/tty`: the first terminal among the streams that are open.
fn terminal(guest: &Guest, flags: OpenFlags) -> std::result::Result<Rc<Description>, Errno> {
    for description in guest.task.descriptors.descriptions() {
        if let Object::Stream(stream) = &description.object
            && stream.is_terminal()
        {
            return of_stream(stream, flags);
        }
    }
    Err(Errno::NXIO)
}
