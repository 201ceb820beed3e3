//! ioctl.
//!
//! Of what a terminal of the host's offers, only what is listed here reaches it: a program must
//! not push input into the terminal it was started from (`TIOCSTI`), or take it over.

use std::os::fd::RawFd;

use agentrt_vfs::{FileKind, OpenFlags};
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::descriptor::{Description, Object};
use crate::guest::Guest;
use crate::stop::Result;
use crate::stream::Stream;
use crate::task::FIRST_PID;

/// Requests of `asm-generic/ioctls.h` and `asm-generic/termbits.h` that libc lacks.
const TCGETS2: u32 = 0x802c_542a;
const TCSETS2: u32 = 0x402c_542b;
const TCSETSW2: u32 = 0x402c_542c;
const TCSETSF2: u32 = 0x402c_542d;
/// Those that libc has, as the kernel takes them.
const TCGETS: u32 = libc::TCGETS as u32;
const TCSETS: u32 = libc::TCSETS as u32;
const TCSETSW: u32 = libc::TCSETSW as u32;
const TCSETSF: u32 = libc::TCSETSF as u32;
const TCSBRK: u32 = libc::TCSBRK as u32;
const TCFLSH: u32 = libc::TCFLSH as u32;
const TIOCGPGRP: u32 = libc::TIOCGPGRP as u32;
const TIOCSPGRP: u32 = libc::TIOCSPGRP as u32;
const TIOCGSID: u32 = libc::TIOCGSID as u32;
const TIOCGWINSZ: u32 = libc::TIOCGWINSZ as u32;
const TIOCSWINSZ: u32 = libc::TIOCSWINSZ as u32;
const FIONREAD: u32 = libc::FIONREAD as u32;
const FIONBIO: u32 = libc::FIONBIO as u32;
const FIOCLEX: u32 = libc::FIOCLEX as u32;
const FIONCLEX: u32 = libc::FIONCLEX as u32;
const FICLONE: u32 = libc::FICLONE as u32;
const FICLONERANGE: u32 = libc::FICLONERANGE as u32;

/// Size of the kernel's `struct termios`; libc's has a larger one of its own.
const TERMIOS_SIZE: usize = 36;
/// Size of `struct termios2`.
const TERMIOS2_SIZE: usize = 44;
/// Size of `struct winsize`.
const WINSIZE_SIZE: usize = size_of::<libc::winsize>();
/// No structure of these is larger.
const STRUCTURE_MAX: usize = 64;

pub(super) fn ioctl(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let number = arguments.i32(0);
    let description = guest.task.descriptors.usable(number)?;
    let (request, argument) = (arguments.u32(1), arguments.u64(2));
    match request {
        FIOCLEX => guest.task.descriptors.set_close_on_exec(number, true)?,
        FIONCLEX => guest.task.descriptors.set_close_on_exec(number, false)?,
        FIONBIO => {
            let mut value = [0; 4];
            guest.task.mm.read(argument, &mut value)?;
            let mut flags = description.flags.get();
            flags.set(OpenFlags::NONBLOCK, value != [0; 4]);
            description.flags.set(flags);
        }
        FIONREAD => {
            let left = bytes_left(&description)?;
            guest.task.mm.write(argument, &left.to_ne_bytes())?;
        }
        FICLONE | FICLONERANGE => return Err(Errno::OPNOTSUPP.into()),
        _ => match &description.object {
            Object::Stream(stream) if stream.is_terminal() => {
                terminal(guest, stream, request, argument)?;
            }
            _ => return Err(Errno::NOTTY.into()),
        },
    }
    Ok(0)
}

/// `FIONREAD`: how much can be read.
fn bytes_left(description: &Description) -> std::result::Result<i32, Errno> {
    match &description.object {
        Object::Stream(stream) => {
            let bytes = get(stream.descriptor(), FIONREAD)?;
            let mut count = [0; 4];
            count.copy_from_slice(&bytes[..4]);
            Ok(i32::from_ne_bytes(count))
        }
        Object::File(file) if file.kind() == FileKind::Regular => {
            let left = file.size()?.saturating_sub(description.offset.get());
            Ok(i32::try_from(left).unwrap_or(i32::MAX))
        }
        Object::File(_) => Err(Errno::NOTTY),
    }
}

fn terminal(
    guest: &mut Guest,
    stream: &Stream,
    request: u32,
    argument: u64,
) -> std::result::Result<(), Errno> {
    let mm = &mut guest.task.mm;
    let fd = stream.descriptor();
    match request {
        TCGETS => mm.write(argument, &get(fd, request)?[..TERMIOS_SIZE]),
        TCGETS2 => mm.write(argument, &get(fd, request)?[..TERMIOS2_SIZE]),
        TIOCGWINSZ => mm.write(argument, &get(fd, request)?[..WINSIZE_SIZE]),
        // To wait until the output has left would block; its order is kept anyway.
        TCSETS | TCSETSW | TCSETSF => {
            let mut termios = [0; STRUCTURE_MAX];
            mm.read(argument, &mut termios[..TERMIOS_SIZE])?;
            set_modes(fd, TCSETS, &termios, request == TCSETSF)
        }
        TCSETS2 | TCSETSW2 | TCSETSF2 => {
            let mut termios = [0; STRUCTURE_MAX];
            mm.read(argument, &mut termios[..TERMIOS2_SIZE])?;
            set_modes(fd, TCSETS2, &termios, request == TCSETSF2)
        }
        TCFLSH => flush(fd, argument),
        // `tcdrain`, for the same reason.
        TCSBRK if argument != 0 => Ok(()),
        TIOCGPGRP | TIOCGSID => mm.write(argument, &FIRST_PID.to_ne_bytes()),
        TIOCSPGRP => {
            let mut group = [0; 4];
            mm.read(argument, &mut group)?;
            if i32::from_ne_bytes(group) == FIRST_PID {
                Ok(())
            } else {
                Err(Errno::SRCH)
            }
        }
        TIOCSWINSZ => Err(Errno::PERM),
        _ => Err(Errno::NOTTY),
    }
}

fn set_modes(
    fd: RawFd,
    request: u32,
    termios: &[u8; STRUCTURE_MAX],
    drop_input: bool,
) -> std::result::Result<(), Errno> {
    if drop_input {
        flush(fd, libc::TCIFLUSH as u64)?;
    }
    // SAFETY: both requests (`TCSETS`, `TCSETS2`) read a structure of less than the buffer's size
    // and keep no pointer to it.
    check(unsafe { libc::ioctl(fd, request.into(), termios.as_ptr()) })
}

/// Drops input, output or both.
fn flush(fd: RawFd, queue: u64) -> std::result::Result<(), Errno> {
    if queue > libc::TCIOFLUSH as u64 {
        return Err(Errno::INVAL);
    }
    // SAFETY: `TCFLSH` takes a number, no pointer.
    check(unsafe { libc::ioctl(fd, TCFLSH.into(), queue) })
}

/// What one of the requests that fill a structure answers; zeros behind it.
fn get(fd: RawFd, request: u32) -> std::result::Result<[u8; STRUCTURE_MAX], Errno> {
    let mut bytes = [0; STRUCTURE_MAX];
    if !matches!(request, TCGETS | TCGETS2 | TIOCGWINSZ | FIONREAD) {
        return Err(Errno::NOTTY);
    }
    // SAFETY: each of these requests writes a structure of less than the buffer's size and keeps
    // no pointer to it.
    check(unsafe { libc::ioctl(fd, request.into(), bytes.as_mut_ptr()) })?;
    Ok(bytes)
}

fn check(result: i32) -> std::result::Result<(), Errno> {
    if result >= 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
