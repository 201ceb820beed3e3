//! Descriptor numbers: close, dup and their like.

use agentrt_vfs::OpenFlags;
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::guest::Guest;
use crate::stop::Result;

pub(super) fn close(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    guest.task.descriptors.close(arguments.i32(0))?;
    Ok(0)
}

pub(super) fn close_range(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (first, last, flags) = (arguments.u32(0), arguments.u32(1), arguments.u32(2));
    if first > last || flags & !(libc::CLOSE_RANGE_UNSHARE | libc::CLOSE_RANGE_CLOEXEC) != 0 {
        return Err(Errno::INVAL.into());
    }
    let descriptors = &guest.task.descriptors;
    for number in descriptors.numbers() {
        if !(first..=last).contains(&(number as u32)) {
            continue;
        }
        if flags & libc::CLOSE_RANGE_CLOEXEC != 0 {
            descriptors.set_close_on_exec(number, true)?;
        } else {
            descriptors.close(number)?;
        }
    }
    Ok(0)
}

pub(super) fn dup(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let description = guest.task.descriptors.get(arguments.i32(0))?;
    Ok(guest.task.descriptors.open(description, false)? as u64)
}

pub(super) fn dup2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (old, new) = (arguments.i32(0), arguments.i32(1));
    let description = guest.task.descriptors.get(old)?;
    if old != new {
        guest.task.descriptors.open_at(new, description, false)?;
    }
    Ok(new as u64)
}

pub(super) fn dup3(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (old, new, flags) = (arguments.i32(0), arguments.i32(1), arguments.u32(2));
    if flags & !OpenFlags::CLOEXEC.bits() != 0 || old == new {
        return Err(Errno::INVAL.into());
    }
    let description = guest.task.descriptors.get(old)?;
    guest
        .task
        .descriptors
        .open_at(new, description, flags != 0)?;
    Ok(new as u64)
}
