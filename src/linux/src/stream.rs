//! The host's streams that a program is given: its standard input, output and error.
//!
//! The open file descriptions behind them are shared with whoever started agentrt. So their
//! flags are never changed, O_NONBLOCK least of all, and the position of a redirected file is
//! the host's own: a command that runs next goes on where the guest stopped. Nothing here
//! blocks; what would is EAGAIN, and the caller waits.
//!
//! The process has to ignore SIGPIPE, as Rust's runtime makes it do.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use agentrt_vfs::{FileKind, OpenFlags, Stat, Timestamp};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::descriptor::{Description, Object};

/// Bytes that a pipe with room for anything takes without blocking (`linux/limits.h`).
const PIPE_BUF: usize = 4096;
/// Most buffers of one call (`UIO_MAXIOV`).
const BUFFERS_MAX: usize = 1024;
/// `st_dev` of streams: major 0 as all file systems without a device, and a minor below those
/// that the guest's mounts have.
const DEVICE: u64 = 13;
/// The device number of /dev/ptmx, which makes a new terminal every time it is opened.
const PTMX: u64 = libc::makedev(5, 2);
/// Names of the memory devices, by their minor of major 1 (`admin-guide/devices.txt`).
const MEMORY_DEVICES: [(u32, &str); 5] = [
    (3, "null"),
    (5, "zero"),
    (7, "full"),
    (8, "random"),
    (9, "urandom"),
];

/// How a stream is kept from blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocking {
    /// It cannot block: a regular file, say.
    Never,
    /// It is open on a description of our own, which has O_NONBLOCK.
    OwnDescription,
    /// Every call asks for it, or polls first.
    Asked,
}

/// One of the host's streams.
pub struct Stream {
    fd: OwnedFd,
    number: u64,
    kind: FileKind,
    rdev: u64,
    terminal: bool,
    blocking: Blocking,
    flags: OpenFlags,
    /// Bytes of the write that waits which have been written already.
    pub progress: Cell<usize>,
}

/// Descriptions of a program's standard input, output and error.
///
/// # Errors
/// EBADF and EIO, from asking the host what it handed over.
pub fn standard(fds: [Option<OwnedFd>; 3]) -> Result<[Option<Rc<Description>>; 3], Errno> {
    let mut descriptions = [const { None }; 3];
    // What is one file for the host is one for the guest: it has the number of the first.
    let mut seen = Vec::new();
    for (description, fd) in descriptions.iter_mut().zip(fds) {
        let Some(fd) = fd else { continue };
        let stat = rustix::fs::fstat(&fd)?;
        let identity = (stat.st_dev, stat.st_ino);
        seen.push(identity);
        let first = seen.iter().position(|seen| *seen == identity).unwrap_or(0);
        let stream = Stream::new(fd, first as u64 + 1)?;
        let flags = stream.flags();
        *description = Some(Description::new(Object::Stream(Rc::new(stream)), flags));
    }
    Ok(descriptions)
}

impl Stream {
    /// A stream of the host's; `number` is the inode number that the guest sees.
    ///
    /// # Errors
    /// EBADF and EIO, from asking the host what it is.
    pub fn new(fd: OwnedFd, number: u64) -> Result<Stream, Errno> {
        let stat = rustix::fs::fstat(&fd)?;
        let kind = FileKind::from_mode(stat.st_mode);
        let terminal = kind == FileKind::CharDevice && rustix::termios::isatty(&fd);
        let host_flags = rustix::fs::fcntl_getfl(&fd)?;
        let kept = OpenFlags::WRONLY | OpenFlags::RDWR | OpenFlags::APPEND | OpenFlags::LARGEFILE;
        let flags = OpenFlags::from_bits_retain(host_flags.bits()) & kept;
        let never = matches!(
            kind,
            FileKind::Regular | FileKind::Directory | FileKind::BlockDevice
        );
        let own = if kind == FileKind::Fifo || (terminal && stat.st_rdev != PTMX) {
            open_again(&fd, host_flags)
        } else {
            None
        };
        let blocking = match &own {
            _ if never => Blocking::Never,
            Some(_) => Blocking::OwnDescription,
            None => Blocking::Asked,
        };
        Ok(Stream {
            fd: own.unwrap_or(fd),
            number,
            kind,
            rdev: stat.st_rdev,
            terminal,
            blocking,
            flags,
            progress: Cell::new(0),
        })
    }

    /// Access mode and `O_APPEND` as the host has them. Whether the host uses the stream with
    /// `O_NONBLOCK` is no business of the guest's.
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// The type of the file.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The host's descriptor: to be polled, and asked about a terminal.
    pub fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Whether it may be not ready; if not, it need not be polled.
    pub fn can_wait(&self) -> bool {
        self.blocking != Blocking::Never
    }

    /// Attributes as the host has them, but for its identity and owner.
    ///
    /// # Errors
    /// The host's.
    pub fn stat(&self) -> Result<Stat, Errno> {
        let host = rustix::fs::fstat(&self.fd)?;
        let time = |seconds: i64, nanoseconds: u64| Timestamp {
            seconds,
            nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
        };
        Ok(Stat {
            dev: DEVICE,
            ino: self.number,
            mode: host.st_mode,
            nlink: 1,
            rdev: host.st_rdev,
            size: u64::try_from(host.st_size).unwrap_or(0),
            blksize: u32::try_from(host.st_blksize).unwrap_or(PIPE_BUF as u32),
            blocks: u64::try_from(host.st_blocks).unwrap_or(0),
            atime: time(host.st_atime, host.st_atime_nsec),
            mtime: time(host.st_mtime, host.st_mtime_nsec),
            ctime: time(host.st_ctime, host.st_ctime_nsec),
            ..Stat::default()
        })
    }

    /// The text of its link in `/proc/self/fd`, which names no path of the host's.
    pub fn link(&self) -> Vec<u8> {
        let memory_device = || {
            let minor = (libc::major(self.rdev) == 1).then(|| libc::minor(self.rdev))?;
            MEMORY_DEVICES.iter().find(|(known, _)| *known == minor)
        };
        let number = self.number;
        match (self.kind, memory_device()) {
            (FileKind::CharDevice, Some((_, name))) => format!("/dev/{name}"),
            (FileKind::CharDevice, None) if self.terminal => "/dev/tty".to_owned(),
            (FileKind::CharDevice, None) => format!("device:[{number}]"),
            (FileKind::Fifo, _) => format!("pipe:[{number}]"),
            (FileKind::Socket, _) => format!("socket:[{number}]"),
            _ => format!("file:[{number}]"),
        }
        .into_bytes()
    }

    /// Reads into `buffers`, from the stream's own position unless `offset` is given.
    ///
    /// # Errors
    /// EAGAIN if it would block; ESPIPE for an offset where there is none; the host's.
    pub fn read(&self, buffers: &[VolatileSlice<'_>], offset: Option<u64>) -> Result<usize, Errno> {
        let offset = self.offset(offset)?;
        match self.blocking {
            Blocking::Never | Blocking::OwnDescription => self.read_with(buffers, offset, 0),
            Blocking::Asked => match self.read_with(buffers, offset, libc::RWF_NOWAIT) {
                Err(Errno::OPNOTSUPP) => {
                    self.check_ready(libc::POLLIN)?;
                    self.read_with(buffers, offset, 0)
                }
                result => result,
            },
        }
    }

    /// Writes from `buffers`, at the stream's own position unless `offset` is given, at the end
    /// if `append` is set. Short if it would block.
    ///
    /// # Errors
    /// EAGAIN if it would block; ESPIPE for an offset where there is none; the host's, among
    /// them EPIPE.
    pub fn write(
        &self,
        buffers: &[VolatileSlice<'_>],
        offset: Option<u64>,
        append: bool,
    ) -> Result<usize, Errno> {
        let offset = self.offset(offset)?;
        match self.blocking {
            Blocking::Never => {
                let flags = if append { libc::RWF_APPEND } else { 0 };
                self.write_with(buffers, offset, flags)
            }
            Blocking::OwnDescription => self.write_with(buffers, offset, 0),
            Blocking::Asked => match self.write_with(buffers, offset, libc::RWF_NOWAIT) {
                Err(Errno::OPNOTSUPP) => {
                    self.check_ready(libc::POLLOUT)?;
                    self.write_with(&shortened(buffers, PIPE_BUF), offset, 0)
                }
                result => result,
            },
        }
    }

    /// Bytes that a pipe holds.
    ///
    /// # Errors
    /// The host's; EBADF if it is no pipe.
    pub fn pipe_size(&self) -> Result<usize, Errno> {
        rustix::pipe::fcntl_getpipe_size(&self.fd)
    }

    /// Moves the stream's position.
    ///
    /// # Errors
    /// ESPIPE if it has none; the host's.
    pub fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        rustix::fs::seek(&self.fd, to)
    }

    /// Cuts or extends a regular file.
    ///
    /// # Errors
    /// The host's; EINVAL if it is something else.
    pub fn truncate(&self, size: u64) -> Result<(), Errno> {
        rustix::fs::ftruncate(&self.fd, size)
    }

    /// Brings a regular file to the host's disk.
    ///
    /// # Errors
    /// The host's; EINVAL if it is something else.
    pub fn sync(&self, data_only: bool) -> Result<(), Errno> {
        match (self.kind, data_only) {
            (FileKind::Regular, true) => rustix::fs::fdatasync(&self.fd),
            (FileKind::Regular, false) => rustix::fs::fsync(&self.fd),
            _ => Err(Errno::INVAL),
        }
    }

    fn check_ready(&self, events: i16) -> Result<(), Errno> {
        let mut poll = libc::pollfd {
            fd: self.descriptor(),
            events,
            revents: 0,
        };
        poll_now(std::slice::from_mut(&mut poll))?;
        if poll.revents == 0 {
            Err(Errno::AGAIN)
        } else {
            Ok(())
        }
    }

    /// The offset as `preadv2` takes it: -1 for the stream's own position.
    fn offset(&self, offset: Option<u64>) -> Result<i64, Errno> {
        match offset {
            None => Ok(-1),
            Some(_) if self.can_wait() => Err(Errno::SPIPE),
            Some(offset) => i64::try_from(offset).map_err(|_| Errno::INVAL),
        }
    }

    fn read_with(
        &self,
        buffers: &[VolatileSlice<'_>],
        offset: i64,
        flags: i32,
    ) -> Result<usize, Errno> {
        with_vectors(buffers, |vectors| {
            let count = vectors.len() as i32;
            // SAFETY: each vector describes memory that `with_vectors` keeps alive, and nobody
            // holds a reference to what lies in it.
            unsafe { libc::preadv2(self.descriptor(), vectors.as_ptr(), count, offset, flags) }
        })
    }

    fn write_with(
        &self,
        buffers: &[VolatileSlice<'_>],
        offset: i64,
        flags: i32,
    ) -> Result<usize, Errno> {
        with_vectors(buffers, |vectors| {
            let count = vectors.len() as i32;
            // SAFETY: each vector describes memory that `with_vectors` keeps alive; the kernel
            // only reads it.
            unsafe { libc::pwritev2(self.descriptor(), vectors.as_ptr(), count, offset, flags) }
        })
    }
}

/// Polls without waiting.
///
/// # Errors
/// The host's.
pub fn poll_now(polls: &mut [libc::pollfd]) -> Result<(), Errno> {
    // SAFETY: the pointer and the length are those of a slice that is borrowed for the call.
    let result = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, 0) };
    if result < 0 {
        Err(last_error())
    } else {
        Ok(())
    }
}

/// Opens the same pipe or terminal on a description of its own that does not block. None if
/// the host does not let us.
fn open_again(fd: &OwnedFd, flags: OFlags) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let wanted = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, (flags & OFlags::ACCMODE) | wanted, Mode::empty()).ok()
}

/// The first `length` bytes of `buffers`.
fn shortened<'a>(buffers: &[VolatileSlice<'a>], mut length: usize) -> Vec<VolatileSlice<'a>> {
    let mut kept = Vec::new();
    for buffer in buffers {
        let part = buffer.len().min(length);
        if part == 0 {
            break;
        }
        kept.extend(buffer.subslice(0, part));
        length -= part;
    }
    kept
}

fn with_vectors(
    buffers: &[VolatileSlice<'_>],
    call: impl FnOnce(&[libc::iovec]) -> isize,
) -> Result<usize, Errno> {
    let guards: Vec<_> = buffers
        .iter()
        .take(BUFFERS_MAX)
        .map(|slice| slice.ptr_guard_mut())
        .collect();
    let vectors: Vec<libc::iovec> = guards
        .iter()
        .map(|guard| libc::iovec {
            iov_base: guard.as_ptr().cast(),
            iov_len: guard.len(),
        })
        .collect();
    match usize::try_from(call(&vectors)) {
        Ok(count) => Ok(count),
        Err(_) => match last_error() {
            // A signal for the host came first: as good as not ready.
            Errno::INTR => Err(Errno::AGAIN),
            error => Err(error),
        },
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
