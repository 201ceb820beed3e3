//! poll, select and their like.
//!
//! Files of the tree are always ready. For streams the host is asked, without waiting; if
//! nothing is ready the guest waits for all of them at once.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::descriptor::{Descriptors, Object};
use crate::guest::Guest;
use crate::mm::Mm;
use crate::stop::{Result, Stop, Wait};
use crate::stream;

/// What files without a state of their own always are (`DEFAULT_POLLMASK` of `linux/poll.h`).
const ALWAYS: i16 = libc::POLLIN | libc::POLLOUT | libc::POLLRDNORM | libc::POLLWRNORM;
/// What poll answers even if it is not asked for.
const UNASKED: i16 = libc::POLLERR | libc::POLLHUP;
/// What the three sets of select mean (`POLLIN_SET`, … of `fs/select.c`).
const SETS: [i16; 3] = [
    libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLIN | libc::POLLHUP | libc::POLLERR,
    libc::POLLWRBAND | libc::POLLWRNORM | libc::POLLOUT | libc::POLLERR,
    libc::POLLPRI,
];
/// Size of the kernel's signal sets.
const SIGSET_SIZE: u64 = 8;

/// One descriptor that is asked about.
#[derive(Clone, Copy, Debug)]
struct Interest {
    number: i32,
    /// The events that make it ready.
    events: i16,
    /// Those of them that have come.
    ready: i16,
}

/// Looks at all descriptors once; returns what is to be awaited if none is ready.
fn look(
    descriptors: &Descriptors,
    interests: &mut [Interest],
) -> std::result::Result<Vec<(RawFd, i16)>, Errno> {
    let mut polls: Vec<libc::pollfd> = Vec::new();
    let mut place_of = HashMap::new();
    // Index of the interest, and of what the host is asked for it.
    let mut asked = Vec::new();
    for (index, interest) in interests.iter_mut().enumerate() {
        let Ok(description) = descriptors.usable(interest.number) else {
            interest.ready = libc::POLLNVAL;
            continue;
        };
        let fd = match &description.object {
            Object::Stream(stream) if stream.can_wait() => stream.descriptor(),
            _ => {
                interest.ready = ALWAYS & interest.events;
                continue;
            }
        };
        let poll = *place_of.entry(fd).or_insert_with(|| {
            polls.push(libc::pollfd {
                fd,
                events: 0,
                revents: 0,
            });
            polls.len() - 1
        });
        polls[poll].events |= interest.events;
        asked.push((index, poll));
    }
    if !polls.is_empty() {
        stream::poll_now(&mut polls)?;
    }
    for (index, poll) in asked {
        interests[index].ready = polls[poll].revents & interests[index].events;
    }
    // A stream that has ended answers at once for ever: it is nothing to wait for.
    let quiet = polls.iter().filter(|poll| poll.revents == 0);
    Ok(quiet.map(|poll| (poll.fd, poll.events)).collect())
}

/// Looks, and waits if nothing is ready; returns what is left of the time.
fn serve(
    guest: &mut Guest,
    interests: &mut [Interest],
    timeout: Option<Duration>,
) -> Result<Duration> {
    let now = Instant::now();
    let started = guest.task.sleep.take();
    let deadline = started.or_else(|| now.checked_add(timeout?));
    let awaited = look(&guest.task.descriptors, interests)?;
    let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
    if interests.iter().any(|interest| interest.ready != 0) || left == Some(Duration::ZERO) {
        return Ok(left.unwrap_or_default());
    }
    guest.task.sleep = deadline;
    Err(Stop::Wait(Wait {
        descriptors: awaited,
        deadline,
    }))
}

/// Reads `struct timespec` or, with `unit` 1000, `struct timeval`. None for a null pointer.
fn read_timeout(
    mm: &mut Mm,
    address: u64,
    unit: u64,
) -> std::result::Result<Option<Duration>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, fraction] = mm.read_u64s(address)?;
    let sound = i64::try_from(seconds).is_ok() && i64::try_from(fraction).is_ok();
    let per_second = 1_000_000_000 / unit;
    // Linux takes more than a second of microseconds, but not of nanoseconds.
    if !sound || (unit == 1 && fraction >= per_second) {
        return Err(Errno::INVAL);
    }
    let (carry, fraction) = (fraction / per_second, fraction % per_second);
    let seconds = seconds.saturating_add(carry);
    Ok(Some(Duration::new(seconds, (fraction * unit) as u32)))
}

/// Tells the program how much of its timeout is left. That it cannot be told is no error.
fn write_timeout(mm: &mut Mm, address: u64, unit: u64, left: Duration) {
    if address != 0 {
        let fraction = u64::from(left.subsec_nanos()) / unit;
        let words = [left.as_secs().to_ne_bytes(), fraction.to_ne_bytes()].concat();
        let _ = mm.write(address, &words);
    }
}

pub(super) fn poll(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let timeout = u64::try_from(arguments.i32(2))
        .ok()
        .map(Duration::from_millis);
    let (count, _) = poll_array(guest, arguments, timeout)?;
    Ok(count)
}

pub(super) fn ppoll(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let timeout = read_timeout(&mut guest.task.mm, arguments.address(2), 1)?;
    if arguments.address(3) != 0 && arguments.u64(4) != SIGSET_SIZE {
        return Err(Errno::INVAL.into());
    }
    let (count, left) = poll_array(guest, arguments, timeout)?;
    write_timeout(&mut guest.task.mm, arguments.address(2), 1, left);
    Ok(count)
}

/// Serves an array of `struct pollfd`; returns the number of those that are ready.
fn poll_array(
    guest: &mut Guest,
    arguments: &Arguments,
    timeout: Option<Duration>,
) -> Result<(u64, Duration)> {
    const SIZE: usize = size_of::<libc::pollfd>();
    let (address, count) = (arguments.address(0), u64::from(arguments.u32(1)));
    if count > guest.task.descriptors.limit.get() {
        return Err(Errno::INVAL.into());
    }
    let mut array = vec![0; count as usize * SIZE];
    guest.task.mm.read(address, &mut array)?;
    let mut places = Vec::new();
    let mut interests = Vec::new();
    for (place, entry) in array.chunks_exact(SIZE).enumerate() {
        let number = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        let events = i16::from_ne_bytes([entry[4], entry[5]]) | UNASKED;
        // Negative numbers are places left out.
        if number >= 0 {
            places.push(place);
            interests.push(Interest {
                number,
                events,
                ready: 0,
            });
        }
    }
    let left = serve(guest, &mut interests, timeout)?;
    for entry in array.chunks_exact_mut(SIZE) {
        entry[6..].fill(0);
    }
    for (place, interest) in places.iter().zip(&interests) {
        let at = place * SIZE + 6;
        array[at..at + 2].copy_from_slice(&interest.ready.to_ne_bytes());
    }
    guest.task.mm.write(address, &array)?;
    let ready = interests
        .iter()
        .filter(|interest| interest.ready != 0)
        .count();
    Ok((ready as u64, left))
}

pub(super) fn select(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // `struct timeval`.
    select_sets(guest, arguments, 1000)
}

pub(super) fn pselect6(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    if arguments.address(5) != 0 {
        let [mask, size] = guest.task.mm.read_u64s(arguments.address(5))?;
        if mask != 0 && size != SIGSET_SIZE {
            return Err(Errno::INVAL.into());
        }
    }
    select_sets(guest, arguments, 1)
}

fn select_sets(guest: &mut Guest, arguments: &Arguments, unit: u64) -> Result<u64> {
    let timeout = read_timeout(&mut guest.task.mm, arguments.address(4), unit)?;
    let count = usize::try_from(arguments.i32(0)).map_err(|_| Errno::INVAL)?;
    let open = guest.task.descriptors.numbers();
    // No descriptor beyond the table is looked at.
    let count = count.min(open.last().map_or(0, |last| *last as usize + 1).max(64));
    let size = count.div_ceil(64) * 8;
    let mut sets = [vec![0; size], vec![0; size], vec![0; size]];
    for (index, set) in sets.iter_mut().enumerate() {
        let address = arguments.address(1 + index);
        if address != 0 {
            guest.task.mm.read(address, set)?;
        }
    }
    let mut interests = Vec::new();
    for number in 0..count {
        let wanted = (0..3).filter(|index| has_bit(&sets[*index], number));
        let events = wanted.fold(0, |events, index| events | SETS[index]);
        if events != 0 {
            let number = number as i32;
            guest.task.descriptors.usable(number)?;
            interests.push(Interest {
                number,
                events,
                ready: 0,
            });
        }
    }
    let left = serve(guest, &mut interests, timeout)?;
    let mut answers = [vec![0; size], vec![0; size], vec![0; size]];
    let mut ready = 0;
    for interest in &interests {
        let number = interest.number as usize;
        for index in 0..3 {
            if has_bit(&sets[index], number) && interest.ready & SETS[index] != 0 {
                answers[index][number / 8] |= 1 << (number % 8);
                ready += 1;
            }
        }
    }
    for (index, answer) in answers.iter().enumerate() {
        let address = arguments.address(1 + index);
        if address != 0 {
            guest.task.mm.write(address, answer)?;
        }
    }
    write_timeout(&mut guest.task.mm, arguments.address(4), unit, left);
    Ok(ready)
}

/// Whether a set of `select` has `number`, which lies within it.
fn has_bit(set: &[u8], number: usize) -> bool {
    set[number / 8] & 1 << (number % 8) != 0
}

#[cfg(test)]
mod tests;
