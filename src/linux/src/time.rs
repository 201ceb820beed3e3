//! Clocks and sleeps.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use syscalls::Sysno;

use crate::arguments::Arguments;
use crate::dispatch::Handler;
use crate::guest::Guest;
use crate::stop::{Result, Stop, Wait};

/// What every clock but the coarse ones resolves, in nanoseconds.
const RESOLUTION: Duration = Duration::from_nanos(1);
/// Longest sleep; longer ones are this long. It keeps points in time representable.
const SLEEP_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// The syscalls of this module.
pub fn handler(number: Sysno) -> Option<Handler> {
    Some(match number {
        Sysno::clock_gettime => clock_gettime,
        Sysno::clock_getres => clock_getres,
        Sysno::gettimeofday => gettimeofday,
        Sysno::time => time,
        Sysno::nanosleep => nanosleep,
        Sysno::clock_nanosleep => clock_nanosleep,
        Sysno::clock_settime | Sysno::settimeofday => |_, _| Err(Errno::PERM.into()),
        _ => return None,
    })
}

/// The time on one of the guest's clocks; monotonic clocks count from the guest's boot.
fn now(guest: &Guest, clock: i32) -> std::result::Result<Duration, Errno> {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
            Ok(guest.task.clock.realtime())
        }
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => Ok(guest.task.uptime()),
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => {
            let used = guest.task.used_cpu_time();
            Ok(used.user + used.system)
        }
        _ => Err(Errno::INVAL),
    }
}

fn clock_gettime(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let time = now(guest, arguments.i32(0))?;
    write_timespec(guest, arguments.address(1), time)
}

fn clock_getres(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    now(guest, arguments.i32(0))?;
    match arguments.address(1) {
        0 => Ok(0),
        address => write_timespec(guest, address, RESOLUTION),
    }
}

fn gettimeofday(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let time = now(guest, libc::CLOCK_REALTIME)?;
    if arguments.address(0) != 0 {
        write_pair(
            guest,
            arguments.address(0),
            time.as_secs(),
            time.subsec_micros().into(),
        )?;
    }
    if arguments.address(1) != 0 {
        // struct timezone: UTC, no daylight saving time.
        guest.task.mm.write(arguments.address(1), &[0; 8])?;
    }
    Ok(0)
}

fn time(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let seconds = now(guest, libc::CLOCK_REALTIME)?.as_secs();
    if arguments.address(0) != 0 {
        guest
            .task
            .mm
            .write(arguments.address(0), &seconds.to_ne_bytes())?;
    }
    Ok(seconds)
}

fn nanosleep(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let wanted = read_timespec(guest, arguments.address(0))?;
    sleep(guest, wanted)
}

fn clock_nanosleep(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let clock = arguments.i32(0);
    if matches!(
        clock,
        libc::CLOCK_THREAD_CPUTIME_ID | libc::CLOCK_MONOTONIC_RAW
    ) {
        return Err(Errno::INVAL.into());
    }
    let present = now(guest, clock)?;
    let wanted = read_timespec(guest, arguments.address(2))?;
    let absolute = arguments.i32(1) & libc::TIMER_ABSTIME != 0;
    sleep(
        guest,
        if absolute {
            wanted.saturating_sub(present)
        } else {
            wanted
        },
    )
}

/// Answers when `duration` has passed since the call was first served.
fn sleep(guest: &mut Guest, duration: Duration) -> Result<u64> {
    let deadline = *guest
        .task
        .sleep
        .get_or_insert_with(|| Instant::now() + duration.min(SLEEP_MAX));
    if Instant::now() >= deadline {
        return Ok(0);
    }
    Err(Stop::Wait(Wait {
        deadline: Some(deadline),
        ..Wait::default()
    }))
}

/// Reads a `struct timespec`.
///
/// # Errors
/// EFAULT; EINVAL if a field is out of range.
pub fn read_timespec(guest: &mut Guest, address: u64) -> std::result::Result<Duration, Errno> {
    let [seconds, nanoseconds] = guest.task.mm.read_u64s(address)?;
    if seconds > i64::MAX as u64 || nanoseconds >= 1_000_000_000 {
        return Err(Errno::INVAL);
    }
    Ok(Duration::new(seconds, nanoseconds as u32))
}

fn write_timespec(guest: &mut Guest, address: u64, time: Duration) -> Result<u64> {
    write_pair(guest, address, time.as_secs(), time.subsec_nanos().into())
}

fn write_pair(guest: &mut Guest, address: u64, first: u64, second: u64) -> Result<u64> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_ne_bytes());
    bytes[8..].copy_from_slice(&second.to_ne_bytes());
    guest.task.mm.write(address, &bytes)?;
    Ok(0)
}
