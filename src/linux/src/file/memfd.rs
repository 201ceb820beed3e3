//! Anonymous files, and their seals (memfd_create(2), fcntl(2)).

use std::cell::Cell;
use std::rc::Rc;

use agentrt_vfs::OpenFlags;
use bitflags::bitflags;
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::Result;

/// Longest name, without NUL: what `memfd:` leaves of a file name.
const NAME_MAX: usize = 249;
/// `MFD_EXEC` of `linux/memfd.h`.
const MFD_EXEC: u32 = 0x10;

bitflags! {
    /// What can be forbidden for an anonymous file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Seals: u32 {
        /// To add seals.
        const SEAL = libc::F_SEAL_SEAL as u32;
        /// To make it smaller.
        const SHRINK = libc::F_SEAL_SHRINK as u32;
        /// To make it larger.
        const GROW = libc::F_SEAL_GROW as u32;
        /// To change its contents.
        const WRITE = libc::F_SEAL_WRITE as u32;
        /// To change its contents but through mappings that exist.
        const FUTURE_WRITE = libc::F_SEAL_FUTURE_WRITE as u32;
        /// To change whether it can be executed.
        const EXEC = libc::F_SEAL_EXEC as u32;
    }
}

pub(super) fn memfd_create(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = arguments.u32(1);
    let no_exec = flags & libc::MFD_NOEXEC_SEAL != 0;
    let known = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | libc::MFD_NOEXEC_SEAL | MFD_EXEC;
    if flags & !known != 0 || (no_exec && flags & MFD_EXEC != 0) {
        return Err(Errno::INVAL.into());
    }
    let name = guest
        .task
        .mm
        .read_string(arguments.address(0), NAME_MAX + 1);
    let name = name.map_err(|error| match error {
        Errno::NAMETOOLONG => Errno::INVAL,
        error => error,
    })?;
    guest.task.descriptors.check_free()?;
    let file = guest.vfs.memfd(&name)?;
    let seals = if no_exec {
        file.set_mode(0o666)?;
        Seals::EXEC
    } else if flags & libc::MFD_ALLOW_SEALING != 0 {
        Seals::empty()
    } else {
        Seals::SEAL
    };
    let flags_kept = OpenFlags::RDWR | OpenFlags::LARGEFILE;
    let seals = Some(Rc::new(Cell::new(seals)));
    let description = Description::with_seals(Object::File(Rc::from(file)), flags_kept, seals);
    let close_on_exec = flags & libc::MFD_CLOEXEC != 0;
    Ok(guest.task.descriptors.open(description, close_on_exec)? as u64)
}

/// `F_GET_SEALS`.
pub(super) fn get(description: &Description) -> std::result::Result<u64, Errno> {
    let seals = description.seals.as_ref().ok_or(Errno::INVAL)?;
    Ok(seals.get().bits().into())
}

/// `F_ADD_SEALS`.
pub(super) fn add(description: &Description, added: u32) -> std::result::Result<(), Errno> {
    let seals = description.seals.as_ref().ok_or(Errno::INVAL)?;
    if !description.flags.get().writes() {
        return Err(Errno::PERM);
    }
    let added = Seals::from_bits(added).ok_or(Errno::INVAL)?;
    if seals.get().contains(Seals::SEAL) {
        return Err(Errno::PERM);
    }
    seals.set(seals.get() | added);
    Ok(())
}

/// Whether the seals let a file of `size` bytes be written up to `end`.
pub(super) fn check_write(seals: Seals, size: u64, end: u64) -> std::result::Result<(), Errno> {
    let frozen = seals.intersects(Seals::WRITE | Seals::FUTURE_WRITE);
    if frozen || (seals.contains(Seals::GROW) && end > size) {
        return Err(Errno::PERM);
    }
    Ok(())
}

/// Whether the seals let the file, now of `old` bytes, be resized to `new`.
pub(super) fn check_resize(seals: Seals, old: u64, new: u64) -> std::result::Result<(), Errno> {
    let shrinks = new < old && seals.contains(Seals::SHRINK);
    let grows = new > old && seals.contains(Seals::GROW);
    if shrinks || grows {
        Err(Errno::PERM)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
