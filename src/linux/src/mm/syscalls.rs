//! Decodes the memory syscalls.

use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vfs::FileKind;
use agentrt_vmm::Protection;
use rustix::io::Errno;
use syscalls::Sysno;

use std::ops::Range;
use std::rc::Rc;

use super::area::{Area, Backing};
use super::map::{Placement, user_range};
use super::page_ceil;
use super::shared::Identity;
use crate::arguments::Arguments;
use crate::dispatch::Handler;
use crate::file::memfd::Seals;
use crate::guest::Guest;
use crate::stop::Result;

/// The memory syscalls.
pub fn handler(number: Sysno) -> Option<Handler> {
    Some(match number {
        Sysno::mmap => mmap,
        Sysno::munmap => munmap,
        Sysno::mprotect => mprotect,
        Sysno::mremap => mremap,
        Sysno::brk => brk,
        Sysno::madvise => madvise,
        Sysno::msync => msync,
        Sysno::mincore => mincore,
        Sysno::mlock => mlock,
        Sysno::mlock2 => mlock2,
        Sysno::munlock => munlock,
        Sysno::mlockall | Sysno::munlockall => |_, _| Ok(0),
        Sysno::mbind | Sysno::set_mempolicy => set_policy,
        Sysno::get_mempolicy => get_policy,
        _ => return None,
    })
}

fn protection(bits: u32) -> std::result::Result<Protection, Errno> {
    /// Means the same as its absence (`asm-generic/mman-common.h`).
    const PROT_SEM: i32 = 8;
    // PROT_GROWSDOWN and PROT_GROWSUP are not offered: the stack has its whole size from the start.
    const KNOWN: i32 = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC | PROT_SEM;
    let bits = bits as i32;
    if bits & !KNOWN != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Protection {
        read: bits & libc::PROT_READ != 0,
        write: bits & libc::PROT_WRITE != 0,
        execute: bits & libc::PROT_EXEC != 0,
    })
}

/// The bits of mmap's flags that hold the kind of mapping (`linux/mman.h`).
const MAP_TYPE: i32 = 0x0f;

/// Number of /dev/zero (kernel doc admin-guide/devices.txt).
const DEV_ZERO: u64 = libc::makedev(1, 5);

fn mmap(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (address, length) = (arguments.address(0), arguments.u64(1));
    let protection = protection(arguments.u32(2))?;
    let flags = arguments.i32(3);
    let shared = match flags & MAP_TYPE {
        libc::MAP_PRIVATE => false,
        libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE => true,
        _ => return Err(Errno::INVAL.into()),
    };
    if length == 0 || !arguments.u64(5).is_multiple_of(PAGE_SIZE) {
        return Err(Errno::INVAL.into());
    }
    let area = if flags & libc::MAP_ANONYMOUS != 0 {
        if flags & MAP_TYPE == libc::MAP_SHARED_VALIDATE {
            return Err(Errno::INVAL.into());
        }
        let reserve = flags & libc::MAP_NORESERVE == 0 && protection.write;
        if flags & libc::MAP_HUGETLB != 0 || (reserve && !guest.task.mm.is_affordable(length)) {
            return Err(Errno::NOMEM.into());
        }
        Area::anonymous(0, protection, shared, "")
    } else {
        file_area(guest, arguments, protection, shared)?
    };
    let placement = if flags & libc::MAP_FIXED_NOREPLACE != 0 {
        Placement::Exactly(address)
    } else if flags & libc::MAP_FIXED != 0 {
        Placement::Replace(address)
    } else {
        Placement::Hint(address)
    };
    let start = guest.task.mm.map(placement, length, area)?;
    if flags & (libc::MAP_POPULATE | libc::MAP_LOCKED) != 0
        && let Some(range) = user_range(start, length)
    {
        // What does not come now comes when it is touched (mmap(2)).
        let _ = guest.task.mm.populate(range);
    }
    Ok(start)
}

fn file_area(
    guest: &Guest,
    arguments: &Arguments,
    protection: Protection,
    shared: bool,
) -> Result<Area> {
    let offset = arguments.u64(5);
    let length = page_ceil(arguments.u64(1)).ok_or(Errno::NOMEM)?;
    offset.checked_add(length).ok_or(Errno::OVERFLOW)?;
    let description = guest.task.descriptors.get(arguments.i32(4))?;
    let file = description.file(Errno::NODEV)?;
    let flags = description.flags.get();
    if flags.contains(agentrt_vfs::OpenFlags::PATH) {
        return Err(Errno::BADF.into());
    }
    if !flags.reads() || (shared && protection.write && !flags.writes()) {
        return Err(Errno::ACCESS.into());
    }
    match file.kind() {
        FileKind::Regular => {}
        // Zeros without a file behind them.
        FileKind::CharDevice if file.stat()?.rdev == DEV_ZERO => {
            return Ok(Area::anonymous(0, protection, shared, ""));
        }
        _ => return Err(Errno::NODEV.into()),
    }
    let sealed = description
        .seals()
        .intersects(Seals::WRITE | Seals::FUTURE_WRITE);
    if sealed && shared && protection.write {
        return Err(Errno::PERM.into());
    }
    let write_back = shared && flags.writes() && !sealed;
    let identity = if shared {
        Some(Identity::of(&file.stat()?))
    } else {
        None
    };
    let backing = Backing::File {
        file: Rc::clone(file),
        offset,
        identity,
        write_back,
        patches: Rc::default(),
    };
    Ok(Area {
        end: 0,
        protection,
        backing,
        shared,
        name: "",
    })
}

fn munmap(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    guest
        .task
        .mm
        .unmap(arguments.address(0), arguments.u64(1))?;
    Ok(0)
}

fn mprotect(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let protection = protection(arguments.u32(2))?;
    guest
        .task
        .mm
        .protect(arguments.address(0), arguments.u64(1), protection)?;
    Ok(0)
}

fn mremap(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = arguments.i32(3);
    let (may_move, fixed) = (
        flags & libc::MREMAP_MAYMOVE != 0,
        flags & libc::MREMAP_FIXED != 0,
    );
    // MREMAP_DONTUNMAP is for userfaultfd, which is not offered.
    if flags & !(libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) != 0 || (fixed && !may_move) {
        return Err(Errno::INVAL.into());
    }
    let target = fixed.then(|| arguments.address(4));
    let (address, old, new) = (arguments.address(0), arguments.u64(1), arguments.u64(2));
    Ok(guest.task.mm.remap(address, old, new, may_move, target)?)
}

fn brk(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    Ok(guest.task.mm.set_brk(arguments.address(0)))
}

fn madvise(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let address = arguments.address(0);
    let range = user_range(address, arguments.u64(1)).ok_or(Errno::INVAL)?;
    match arguments.i32(2) {
        libc::MADV_DONTNEED => guest.task.mm.discard(range.clone()),
        libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => {
            guest.task.mm.populate(range.clone())?;
        }
        // Contents may go at any time or not at all: they stay until the memory is unmapped.
        libc::MADV_FREE
        | libc::MADV_NORMAL
        | libc::MADV_RANDOM
        | libc::MADV_SEQUENTIAL
        | libc::MADV_WILLNEED
        | libc::MADV_DONTFORK
        | libc::MADV_DOFORK
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | libc::MADV_DONTDUMP
        | libc::MADV_DODUMP
        | libc::MADV_COLD
        | libc::MADV_PAGEOUT => {}
        _ => return Err(Errno::INVAL.into()),
    }
    require_mapped(guest, range)
}

/// 0, the answer of calls that concern a range, if all of it is mapped; else ENOMEM.
fn require_mapped(guest: &Guest, range: Range<u64>) -> Result<u64> {
    if guest.task.mm.is_mapped(range) {
        Ok(0)
    } else {
        Err(Errno::NOMEM.into())
    }
}

fn msync(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let flags = arguments.i32(2);
    let both = libc::MS_ASYNC | libc::MS_SYNC;
    if flags & !(both | libc::MS_INVALIDATE) != 0 || flags & both == both {
        return Err(Errno::INVAL.into());
    }
    let range = user_range(arguments.address(0), arguments.u64(1)).ok_or(Errno::INVAL)?;
    guest.task.mm.write_back(range.clone());
    require_mapped(guest, range)
}

fn mincore(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // Bounded steps, so that a huge range costs the host no memory.
    const STEP: u64 = 1 << 30;
    let (address, length, vector) = (arguments.address(0), arguments.u64(1), arguments.address(2));
    let length = page_ceil(length).ok_or(Errno::NOMEM)?;
    for done in (0..length).step_by(STEP as usize) {
        let start = address.checked_add(done).ok_or(Errno::NOMEM)?;
        let resident = guest.task.mm.resident(start, STEP.min(length - done))?;
        guest
            .task
            .mm
            .write(vector.wrapping_add(done / PAGE_SIZE), &resident)?;
    }
    Ok(0)
}

fn mlock(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // Guest memory is never swapped out by the guest: to be there is to be locked.
    let range = locked_range(guest, arguments)?;
    guest.task.mm.populate(range)?;
    Ok(0)
}

fn mlock2(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    match arguments.u32(2) {
        0 | libc::MLOCK_ONFAULT => mlock(guest, arguments),
        _ => Err(Errno::INVAL.into()),
    }
}

fn munlock(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    locked_range(guest, arguments)?;
    Ok(0)
}

/// The mapped pages that a lock is for (mlock(2)); the address need not be aligned.
fn locked_range(guest: &Guest, arguments: &Arguments) -> Result<Range<u64>> {
    let start = super::page_floor(arguments.address(0));
    let end = arguments
        .address(0)
        .checked_add(arguments.u64(1))
        .ok_or(Errno::INVAL)?;
    let range = user_range(start, end - start).ok_or(Errno::NOMEM)?;
    require_mapped(guest, range.clone())?;
    Ok(range)
}

/// A guest has one memory node: every policy comes to the same.
fn set_policy(_: &mut Guest, _: &Arguments) -> Result<u64> {
    Ok(0)
}

fn get_policy(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    if arguments.address(0) != 0 {
        guest
            .task
            .mm
            .write(arguments.address(0), &libc::MPOL_DEFAULT.to_ne_bytes())?;
    }
    if arguments.address(1) != 0 {
        let words = (arguments.u64(2).div_ceil(64)).min(64) as usize;
        guest
            .task
            .mm
            .write(arguments.address(1), &vec![0; words * 8])?;
    }
    Ok(0)
}
