//! Extended attributes (xattr(7)).

use std::rc::Rc;

use agentrt_vfs::{File, Location, XattrSet};
use rustix::io::Errno;

use super::paths::PathAt;
use crate::arguments::Arguments;
use crate::guest::Guest;
use crate::stop::Result;

/// Longest name, without NUL (`XATTR_NAME_MAX` of `linux/limits.h`).
const NAME_MAX: usize = 255;
/// Longest value, and longest list of names (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const SIZE_MAX: u64 = 65_536;

/// What the attributes belong to.
enum Target {
    Place(Location),
    File(Rc<dyn File>),
}

/// How the first argument names it.
#[derive(Clone, Copy)]
enum By {
    Path,
    Link,
    Descriptor,
}

fn target(guest: &mut Guest, arguments: &Arguments, by: By) -> std::result::Result<Target, Errno> {
    let follow = match by {
        By::Path => true,
        By::Link => false,
        By::Descriptor => {
            let description = guest.task.descriptors.usable(arguments.i32(0))?;
            return Ok(Target::File(Rc::clone(description.file(Errno::OPNOTSUPP)?)));
        }
    };
    let at = PathAt::read(guest, libc::AT_FDCWD, arguments.address(0))?;
    Ok(Target::Place(guest.vfs.lookup(
        &guest.task,
        &at.base,
        &at.path,
        follow,
    )?))
}

fn name(guest: &mut Guest, arguments: &Arguments) -> std::result::Result<Vec<u8>, Errno> {
    match guest
        .task
        .mm
        .read_string(arguments.address(1), NAME_MAX + 1)
    {
        Ok(name) if name.is_empty() => Err(Errno::RANGE),
        Err(Errno::NAMETOOLONG) => Err(Errno::RANGE),
        result => result,
    }
}

pub(super) fn getxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    get(guest, arguments, By::Path)
}

pub(super) fn lgetxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    get(guest, arguments, By::Link)
}

pub(super) fn fgetxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    get(guest, arguments, By::Descriptor)
}

fn get(guest: &mut Guest, arguments: &Arguments, by: By) -> Result<u64> {
    let (target, name) = (target(guest, arguments, by)?, name(guest, arguments)?);
    let value = match target {
        Target::Place(place) => guest.vfs.get_xattr(&place, &name)?,
        Target::File(file) => file.get_xattr(&name)?,
    };
    answer(guest, &value, arguments.address(2), arguments.u64(3))
}

/// Gives the program a value, or its length if there is no room for anything.
fn answer(guest: &mut Guest, value: &[u8], address: u64, room: u64) -> Result<u64> {
    let length = value.len() as u64;
    if room != 0 {
        if length > room {
            return Err(Errno::RANGE.into());
        }
        guest.task.mm.write(address, value)?;
    }
    Ok(length)
}

pub(super) fn setxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    set(guest, arguments, By::Path)
}

pub(super) fn lsetxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    set(guest, arguments, By::Link)
}

pub(super) fn fsetxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    set(guest, arguments, By::Descriptor)
}

fn set(guest: &mut Guest, arguments: &Arguments, by: By) -> Result<u64> {
    let (size, flags) = (arguments.u64(3), arguments.i32(4));
    let how = match flags {
        0 => XattrSet::Any,
        libc::XATTR_CREATE => XattrSet::Create,
        libc::XATTR_REPLACE => XattrSet::Replace,
        _ => return Err(Errno::INVAL.into()),
    };
    let name = name(guest, arguments)?;
    if size > SIZE_MAX {
        return Err(Errno::TOOBIG.into());
    }
    let mut value = vec![0; size as usize];
    guest.task.mm.read(arguments.address(2), &mut value)?;
    match target(guest, arguments, by)? {
        Target::Place(place) => guest.vfs.set_xattr(&place, &name, &value, how)?,
        Target::File(file) => file.set_xattr(&name, &value, how)?,
    }
    Ok(0)
}

pub(super) fn listxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    list(guest, arguments, By::Path)
}

pub(super) fn llistxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    list(guest, arguments, By::Link)
}

pub(super) fn flistxattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    list(guest, arguments, By::Descriptor)
}

fn list(guest: &mut Guest, arguments: &Arguments, by: By) -> Result<u64> {
    let names = match target(guest, arguments, by)? {
        Target::Place(place) => guest.vfs.list_xattr(&place)?,
        Target::File(file) => file.list_xattr()?,
    };
    if names.len() as u64 > SIZE_MAX {
        return Err(Errno::TOOBIG.into());
    }
    answer(guest, &names, arguments.address(1), arguments.u64(2))
}

pub(super) fn removexattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    remove(guest, arguments, By::Path)
}

pub(super) fn lremovexattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    remove(guest, arguments, By::Link)
}

pub(super) fn fremovexattr(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    remove(guest, arguments, By::Descriptor)
}

fn remove(guest: &mut Guest, arguments: &Arguments, by: By) -> Result<u64> {
    let name = name(guest, arguments)?;
    match target(guest, arguments, by)? {
        Target::Place(place) => guest.vfs.remove_xattr(&place, &name)?,
        Target::File(file) => file.remove_xattr(&name)?,
    }
    Ok(0)
}
