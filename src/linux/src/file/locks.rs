//! Locks on files (flock(2), fcntl(2)).
//!
//! Locks that belong to a description are kept with it, and so end with it: whoever looks for a
//! conflict looks at the other descriptions. Locks that belong to the process never conflict
//! with one another, because it is the only one; nothing is kept of them.

use std::mem::offset_of;
use std::ops::Range;
use std::rc::Rc;

use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::{Result, Stop, Wait};
use crate::task::Task;

/// Most ranges that one description may have locked.
const RANGES_MAX: usize = 1024;
/// Behind the last byte of the largest file.
const END: u64 = 1 << 63;
/// Mandatory locks, which Linux dropped: asking for one does nothing.
const LOCK_MAND: i32 = 32;
/// `sizeof(struct flock)` on x86-64.
const FLOCK_SIZE: usize = size_of::<libc::flock>();

/// What a lock excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Exclusive ones.
    Shared,
    /// All others.
    Exclusive,
}

impl LockKind {
    fn excludes(self, other: LockKind) -> bool {
        self == LockKind::Exclusive || other == LockKind::Exclusive
    }
}

/// The locks of one description.
#[derive(Debug, Default)]
pub struct Locks {
    whole: Option<LockKind>,
    /// Disjoint, none empty.
    ranges: Vec<(Range<u64>, LockKind)>,
}

impl Locks {
    fn is_empty(&self) -> bool {
        self.whole.is_none() && self.ranges.is_empty()
    }

    /// The first range that keeps `kind` out of `range`.
    fn conflict(&self, range: &Range<u64>, kind: LockKind) -> Option<(Range<u64>, LockKind)> {
        let conflicts = |(held, held_kind): &&(Range<u64>, LockKind)| {
            held.start < range.end && range.start < held.end && held_kind.excludes(kind)
        };
        self.ranges
            .iter()
            .filter(conflicts)
            .min_by_key(|(held, _)| held.start)
            .cloned()
    }

    /// Locks `range`, or unlocks it if `kind` is None.
    fn set(&mut self, range: Range<u64>, kind: Option<LockKind>) -> std::result::Result<(), Errno> {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 2);
        for (held, held_kind) in &self.ranges {
            let before = held.start..held.end.min(range.start);
            let behind = held.start.max(range.end)..held.end;
            let left = [before, behind].into_iter().filter(|part| !part.is_empty());
            ranges.extend(left.map(|part| (part, *held_kind)));
        }
        ranges.extend(kind.map(|kind| (range, kind)));
        // Neighbours of a kind become one, so that locking piece by piece costs nothing.
        ranges.sort_by_key(|(range, _)| range.start);
        ranges.dedup_by(|(range, kind), (previous, previous_kind)| {
            let joins = kind == previous_kind && previous.end == range.start;
            if joins {
                previous.end = range.end;
            }
            joins
        });
        if ranges.len() > RANGES_MAX {
            return Err(Errno::NOLCK);
        }
        self.ranges = ranges;
        Ok(())
    }
}

/// Asks the other descriptions of the same file, until one has an answer.
fn ask_others<T>(
    task: &Task,
    description: &Rc<Description>,
    ask: impl Fn(&Locks) -> Option<T>,
) -> std::result::Result<Option<T>, Errno> {
    let own = description.stat()?;
    for other in task.descriptors.descriptions() {
        if Rc::ptr_eq(&other, description) || other.locks.borrow().is_empty() {
            continue;
        }
        let Ok(stat) = other.stat() else { continue };
        if (stat.dev, stat.ino) == (own.dev, own.ino)
            && let Some(answer) = ask(&other.locks.borrow())
        {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// A lock that a single thread waits for is one that it holds itself: for ever.
fn wait() -> Stop {
    Stop::Wait(Wait::default())
}

pub(super) fn flock(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let operation = arguments.i32(1);
    if operation & LOCK_MAND != 0 {
        return Ok(0);
    }
    let kind = match operation & !libc::LOCK_NB {
        libc::LOCK_SH => Some(LockKind::Shared),
        libc::LOCK_EX => Some(LockKind::Exclusive),
        libc::LOCK_UN => None,
        _ => return Err(Errno::INVAL.into()),
    };
    let description = guest.task.descriptors.usable(arguments.i32(0))?;
    // A lock that is converted is given up first, whatever comes of it.
    if description.locks.borrow().whole != kind {
        description.locks.borrow_mut().whole = None;
    }
    let Some(kind) = kind else { return Ok(0) };
    let conflict = ask_others(&guest.task, &description, |locks| {
        locks.whole.filter(|held| held.excludes(kind))
    })?;
    match conflict {
        None => {
            description.locks.borrow_mut().whole = Some(kind);
            Ok(0)
        }
        Some(_) if operation & libc::LOCK_NB != 0 => Err(Errno::WOULDBLOCK.into()),
        Some(_) => Err(wait()),
    }
}

/// A `struct flock`, checked.
struct Request {
    kind: Option<LockKind>,
    range: Range<u64>,
    pid: i32,
}

fn read_request(
    guest: &mut Guest,
    description: &Description,
    address: u64,
) -> std::result::Result<Request, Errno> {
    let mut bytes = [0; FLOCK_SIZE];
    guest.task.mm.read(address, &mut bytes)?;
    let kind = match i32::from(i16::from_ne_bytes(field(
        &bytes,
        offset_of!(libc::flock, l_type),
    ))) {
        libc::F_RDLCK => Some(LockKind::Shared),
        libc::F_WRLCK => Some(LockKind::Exclusive),
        libc::F_UNLCK => None,
        _ => return Err(Errno::INVAL),
    };
    let whence = i16::from_ne_bytes(field(&bytes, offset_of!(libc::flock, l_whence)));
    let base = match (i32::from(whence), &description.object) {
        (libc::SEEK_SET, _) => 0,
        (libc::SEEK_CUR, _) => description.offset.get(),
        (libc::SEEK_END, Object::File(file)) => file.size()?,
        (libc::SEEK_END, Object::Stream(stream)) => stream.stat()?.size,
        _ => return Err(Errno::INVAL),
    };
    let start = i64::from_ne_bytes(field(&bytes, offset_of!(libc::flock, l_start)));
    let length = i64::from_ne_bytes(field(&bytes, offset_of!(libc::flock, l_len)));
    let pid = i32::from_ne_bytes(field(&bytes, offset_of!(libc::flock, l_pid)));
    Ok(Request {
        kind,
        range: range(base, start, length)?,
        pid,
    })
}

/// The field of `WIDTH` bytes at `offset`, which comes from the structure itself.
fn field<const WIDTH: usize>(bytes: &[u8; FLOCK_SIZE], offset: usize) -> [u8; WIDTH] {
    let mut value = [0; WIDTH];
    value.copy_from_slice(&bytes[offset..offset + WIDTH]);
    value
}

/// The bytes that `start` and `length` mean, counted from `base`: a length of 0 reaches to the
/// end, a negative one backwards.
fn range(base: u64, start: i64, length: i64) -> std::result::Result<Range<u64>, Errno> {
    let base = i64::try_from(base).map_err(|_| Errno::OVERFLOW)?;
    let start = base.checked_add(start).ok_or(Errno::OVERFLOW)?;
    let first = u64::try_from(start).map_err(|_| Errno::INVAL)?;
    match length {
        0 => Ok(first..END),
        1.. => match first + length.unsigned_abs() {
            end if end <= END => Ok(first..end),
            _ => Err(Errno::OVERFLOW),
        },
        _ => match first.checked_sub(length.unsigned_abs()) {
            Some(before) => Ok(before..first),
            None => Err(Errno::INVAL),
        },
    }
}

/// Locks need the access that they keep others from.
fn check_access(description: &Description, kind: LockKind) -> std::result::Result<(), Errno> {
    let flags = description.flags.get();
    let allowed = match kind {
        LockKind::Shared => flags.reads(),
        LockKind::Exclusive => flags.writes(),
    };
    if allowed { Ok(()) } else { Err(Errno::BADF) }
}

/// `F_GETLK`, `F_SETLK`, `F_SETLKW`: locks of the process.
pub(super) fn process_lock(
    guest: &mut Guest,
    description: &Description,
    command: i32,
    address: u64,
) -> Result<u64> {
    let request = read_request(guest, description, address)?;
    match request.kind {
        None if command == libc::F_GETLK => return Err(Errno::INVAL.into()),
        Some(_) if command == libc::F_GETLK => answer(guest, address, None)?,
        Some(kind) => check_access(description, kind)?,
        None => {}
    }
    Ok(0)
}

/// `F_OFD_GETLK`, `F_OFD_SETLK`, `F_OFD_SETLKW`: locks of a description.
pub(super) fn description_lock(
    guest: &mut Guest,
    description: &Rc<Description>,
    command: i32,
    address: u64,
) -> Result<u64> {
    let Request { kind, range, pid } = read_request(guest, description, address)?;
    if pid != 0 {
        return Err(Errno::INVAL.into());
    }
    let conflict = match kind {
        Some(kind) => ask_others(&guest.task, description, |locks| {
            locks.conflict(&range, kind)
        })?,
        None => None,
    };
    if command == libc::F_OFD_GETLK {
        answer(guest, address, conflict)?;
        return Ok(0);
    }
    if let Some(kind) = kind {
        check_access(description, kind)?;
    }
    match conflict {
        None => description.locks.borrow_mut().set(range, kind)?,
        Some(_) if command == libc::F_OFD_SETLK => return Err(Errno::AGAIN.into()),
        Some(_) => return Err(wait()),
    }
    Ok(0)
}

/// Answers F_GETLK: with the conflict, or with nothing changed but the type.
fn answer(
    guest: &mut Guest,
    address: u64,
    conflict: Option<(Range<u64>, LockKind)>,
) -> std::result::Result<(), Errno> {
    let kind = match &conflict {
        None => libc::F_UNLCK,
        Some((_, LockKind::Shared)) => libc::F_RDLCK,
        Some((_, LockKind::Exclusive)) => libc::F_WRLCK,
    };
    let mm = &mut guest.task.mm;
    let at = |offset: usize| address.wrapping_add(offset as u64);
    mm.write(
        at(offset_of!(libc::flock, l_type)),
        &(kind as i16).to_ne_bytes(),
    )?;
    if let Some((range, _)) = conflict {
        let length = if range.end == END {
            0
        } else {
            range.end - range.start
        };
        let whence = libc::SEEK_SET as i16;
        mm.write(at(offset_of!(libc::flock, l_whence)), &whence.to_ne_bytes())?;
        mm.write(
            at(offset_of!(libc::flock, l_start)),
            &range.start.to_ne_bytes(),
        )?;
        mm.write(at(offset_of!(libc::flock, l_len)), &length.to_ne_bytes())?;
        mm.write(at(offset_of!(libc::flock, l_pid)), &(-1i32).to_ne_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
