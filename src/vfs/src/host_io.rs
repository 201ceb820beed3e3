//! Access to host files: directories whose nodes are reached without following a link, and
//! reads and writes straight between a host file and guest memory.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::budget::{Budget, Charge};
use crate::{FileKind, OpenFlags, Result, Stat, Timestamp};

/// `UIO_MAXIOV`: most buffers of one `preadv`.
const MAX_BUFFERS: usize = 1024;
/// Bytes of one `getdents64`.
const LISTING_BUFFER: usize = 32 << 10;

/// A host directory (or one file), whose nodes are named by paths relative to it.
///
/// The relative paths hold no symlink and no `..`; should somebody put a symlink in the way
/// meanwhile, the access fails with ELOOP instead of following it.
#[derive(Debug)]
pub(crate) struct HostDir {
    root: OwnedFd,
    is_file: bool,
    resolve: ResolveFlags,
}

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

impl HostDir {
    /// `root` is an `O_PATH` descriptor of a directory, and what the host has mounted below
    /// belongs to it.
    pub(crate) fn across_mounts(root: OwnedFd) -> HostDir {
        HostDir {
            root,
            is_file: false,
            resolve: RESOLVE,
        }
    }

    /// `root` is an `O_PATH` descriptor of a directory, or of a file if `is_file`. What the host
    /// has mounted below answers EXDEV.
    pub(crate) fn within_mount(root: OwnedFd, is_file: bool) -> HostDir {
        HostDir {
            root,
            is_file,
            resolve: RESOLVE | ResolveFlags::NO_XDEV,
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.is_file
    }

    /// Opens `path` beneath the root; the caller has made sure that this does not block.
    pub(crate) fn open_at(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if !self.is_file {
            let path = if path.is_empty() { b"." } else { path };
            return retry(|| rustix::fs::openat2(&self.root, path, flags, mode, self.resolve));
        }
        if !path.is_empty() {
            return Err(Errno::NOTDIR);
        }
        if flags.contains(OFlags::PATH) {
            return rustix::io::fcntl_dupfd_cloexec(&self.root, 0);
        }
        let name = format!("/proc/self/fd/{}", self.root.as_raw_fd());
        rustix::fs::open(name, flags - OFlags::NOFOLLOW - OFlags::CREATE, mode)
    }

    /// An `O_PATH` descriptor, whatever the type of the node.
    pub(crate) fn handle(&self, path: &[u8]) -> Result<OwnedFd> {
        self.open_at(path, OFlags::PATH, Mode::empty())
    }

    pub(crate) fn statx(&self, path: &[u8]) -> Result<Statx> {
        statx_of(self.handle(path)?.as_fd())
    }

    /// Type and permissions of `name` directly below the root, also if it is a mount point.
    pub(crate) fn mode_of(&self, name: &[u8]) -> Result<u32> {
        let found = match self.statx(name) {
            Err(Errno::XDEV) => {
                let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
                rustix::fs::statx(&self.root, name, flags, StatxFlags::TYPE)
            }
            found => found,
        };
        Ok(found?.stx_mode.into())
    }

    pub(crate) fn readlink(&self, path: &[u8]) -> Result<Vec<u8>> {
        let handle = self.handle(path)?;
        match rustix::fs::readlinkat(&handle, c"", Vec::new()) {
            Ok(target) => Ok(target.into_bytes()),
            // An O_PATH descriptor of anything else than a link answers ENOENT.
            Err(Errno::NOENT) => Err(Errno::INVAL),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file; anything else is refused before it is touched.
    pub(crate) fn open_regular(&self, path: &[u8], flags: OpenFlags) -> Result<OwnedFd> {
        refuse_special(self.statx(path)?.stx_mode.into())?;
        let fd = self.open_at(path, host_flags(flags), Mode::empty())?;
        // It may have been exchanged between the two; O_NONBLOCK kept that from blocking.
        refuse_special(statx_of(fd.as_fd())?.stx_mode.into())?;
        Ok(fd)
    }

    /// Lists a directory in the host's order, `.` and `..` included.
    pub(crate) fn list(&self, path: &[u8], budget: &Rc<Budget>) -> Result<Listing> {
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut buffer = vec![MaybeUninit::uninit(); LISTING_BUFFER];
        let mut entries = RawDir::new(fd, &mut buffer);
        let mut listing = Listing::new(budget);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let kind = FileKind::from_mode(entry.file_type().as_raw_mode());
            listing.push(entry.ino(), kind, entry.file_name().to_bytes())?;
        }
        Ok(listing)
    }
}

/// File systems through which the host's kernel is seen or steered, by their numbers in
/// `linux/magic.h`.
const KERNEL_FILE_SYSTEMS: &[u32] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6e73_6673, // nsfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0x6265_6570, // configfs
    0x6573_5543, // fusectl
    0x1cd1,      // devpts
];

/// Whether the node shows the host's kernel, not a file.
pub(crate) fn is_on_kernel_file_system(node: BorrowedFd<'_>) -> Result<bool> {
    // The field is a long, the numbers are 32 bits wide.
    let magic = rustix::fs::fstatfs(node)?.f_type as u32;
    Ok(KERNEL_FILE_SYSTEMS.contains(&magic))
}

fn refuse_special(mode: u32) -> Result<()> {
    match FileKind::from_mode(mode) {
        FileKind::Regular => Ok(()),
        FileKind::Directory => Err(Errno::ISDIR),
        FileKind::Symlink => Err(Errno::LOOP),
        FileKind::CharDevice | FileKind::BlockDevice => Err(Errno::ACCESS),
        FileKind::Fifo | FileKind::Socket | FileKind::Unknown => Err(Errno::NXIO),
    }
}

/// The flags with which the host's file is opened for the guest's.
pub(crate) fn host_flags(flags: OpenFlags) -> OFlags {
    let mut host = match (flags.reads(), flags.writes()) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    host.set(OFlags::DSYNC, flags.contains(OpenFlags::DSYNC));
    host.set(OFlags::SYNC, flags.contains(OpenFlags::SYNC));
    host.set(OFlags::TRUNC, flags.contains(OpenFlags::TRUNC));
    host | OFlags::NONBLOCK | OFlags::NOCTTY
}

pub(crate) fn statx_of(fd: BorrowedFd<'_>) -> Result<Statx> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, mask)
}

/// The fields of a host node that the guest sees, device and mount excepted.
pub(crate) fn stat_from(host: &Statx) -> Stat {
    let time = |at: rustix::fs::StatxTimestamp| Timestamp {
        seconds: at.tv_sec,
        nanoseconds: at.tv_nsec,
    };
    Stat {
        ino: host.stx_ino,
        mode: host.stx_mode.into(),
        nlink: host.stx_nlink,
        uid: host.stx_uid,
        gid: host.stx_gid,
        rdev: rustix::fs::makedev(host.stx_rdev_major, host.stx_rdev_minor),
        size: host.stx_size,
        blksize: host.stx_blksize,
        blocks: host.stx_blocks,
        atime: time(host.stx_atime),
        mtime: time(host.stx_mtime),
        ctime: time(host.stx_ctime),
        btime: time(host.stx_btime),
        ..Stat::default()
    }
}

/// Entries of a directory at one moment.
#[derive(Debug)]
pub(crate) struct Listing {
    names: Vec<u8>,
    entries: Vec<ListingEntry>,
    charge: Charge,
}

#[derive(Clone, Copy, Debug)]
struct ListingEntry {
    ino: u64,
    end: usize,
    kind: FileKind,
}

impl Listing {
    pub(crate) fn new(budget: &Rc<Budget>) -> Listing {
        Listing {
            names: Vec::new(),
            entries: Vec::new(),
            charge: Charge::empty(budget),
        }
    }

    /// ENOMEM if the listings of this guest have become too large.
    pub(crate) fn push(&mut self, ino: u64, kind: FileKind, name: &[u8]) -> Result<()> {
        // Vectors double: at the worst, half of what they hold is unused.
        let cost = 2 * (size_of::<ListingEntry>() + name.len());
        self.charge.grow(cost as u64).map_err(|_| Errno::NOMEM)?;
        self.names.extend_from_slice(name);
        self.entries.push(ListingEntry {
            ino,
            end: self.names.len(),
            kind,
        });
        Ok(())
    }

    /// Shows `ino` for `..`.
    pub(crate) fn set_parent(&mut self, ino: u64) {
        let index = self.iter().position(|(_, _, name)| name == b"..");
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.ino = ino;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, FileKind, &[u8])> {
        (0..self.entries.len()).filter_map(|index| self.get(index))
    }

    /// Inode number, type and name of entry `index`.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, FileKind, &[u8])> {
        let entry = self.entries.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.entries.get(before)?.end,
            None => 0,
        };
        Some((entry.ino, entry.kind, self.names.get(start..entry.end)?))
    }
}

fn retry<T>(mut operation: impl FnMut() -> Result<T>) -> Result<T> {
    // EAGAIN tells of a rename elsewhere during the walk, EINTR of a signal.
    for _ in 0..64 {
        match operation() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    operation()
}

/// Reads from a host file into guest memory.
pub(crate) fn read_at(
    fd: BorrowedFd<'_>,
    offset: u64,
    buffers: &[VolatileSlice<'_>],
) -> Result<usize> {
    transfer(offset, buffers, true, |offset, iov| {
        // SAFETY: each iovec describes guest memory whose guard `transfer` keeps alive.
        unsafe { libc::preadv(fd.as_raw_fd(), iov.as_ptr(), iov.len() as i32, offset) }
    })
}

/// Writes guest memory to a host file.
pub(crate) fn write_at(
    fd: BorrowedFd<'_>,
    offset: u64,
    buffers: &[VolatileSlice<'_>],
) -> Result<usize> {
    transfer(offset, buffers, false, |offset, iov| {
        // SAFETY: each iovec describes guest memory whose guard `transfer` keeps alive; the
        // kernel only reads it.
        unsafe { libc::pwritev(fd.as_raw_fd(), iov.as_ptr(), iov.len() as i32, offset) }
    })
}

/// Appends guest memory to a host file; returns the bytes written and the end behind them.
pub(crate) fn append(fd: BorrowedFd<'_>, buffers: &[VolatileSlice<'_>]) -> Result<(usize, u64)> {
    let count = transfer(0, buffers, false, |_, iov| {
        let (fd, count) = (fd.as_raw_fd(), iov.len() as i32);
        // Offset -1 makes the kernel advance the descriptor's own position, which tells where
        // the data went although others may append as well.
        // SAFETY: each iovec describes guest memory whose guard `transfer` keeps alive; the
        // kernel only reads it.
        unsafe { libc::pwritev2(fd, iov.as_ptr(), count, -1, libc::RWF_APPEND) }
    })?;
    let end = rustix::fs::seek(fd, rustix::fs::SeekFrom::Current(0))?;
    Ok((count, end))
}

/// Moves all buffers, at most `MAX_BUFFERS` a call, until a call comes back short.
fn transfer(
    offset: u64,
    buffers: &[VolatileSlice<'_>],
    into_guest: bool,
    mut call: impl FnMut(i64, &[libc::iovec]) -> isize,
) -> Result<usize> {
    let mut done = 0usize;
    for group in buffers.chunks(MAX_BUFFERS) {
        let position = offset.checked_add(done as u64).ok_or(Errno::INVAL)?;
        let position = i64::try_from(position).map_err(|_| Errno::INVAL)?;
        let guards: Vec<_> = group.iter().map(|slice| slice.ptr_guard_mut()).collect();
        let iov: Vec<libc::iovec> = guards
            .iter()
            .map(|guard| libc::iovec {
                iov_base: guard.as_ptr().cast(),
                iov_len: guard.len(),
            })
            .collect();
        let wanted: usize = group.iter().map(|slice| slice.len()).sum();
        let count = match usize::try_from(call(position, &iov)) {
            Ok(count) => count,
            Err(_) if done > 0 => return Ok(done),
            Err(_) => return Err(last_error()),
        };
        drop(guards);
        if into_guest {
            mark_dirty(group, count);
        }
        done += count;
        if count < wanted {
            break;
        }
    }
    Ok(done)
}

/// Guest memory that the kernel wrote behind vm-memory's back.
fn mark_dirty(group: &[VolatileSlice<'_>], mut count: usize) {
    use vm_memory::bitmap::Bitmap;
    for slice in group {
        let part = count.min(slice.len());
        slice.bitmap().mark_dirty(0, part);
        count -= part;
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
