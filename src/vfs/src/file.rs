//! Open files, and the flags with which they are opened.

use std::os::fd::BorrowedFd;

use bitflags::bitflags;
use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::{Location, Result, Stat, TimeUpdate};

bitflags! {
    /// The flags of `open`, bit for bit those of Linux on x86-64.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// Write only. Neither this nor `RDWR`: read only.
        const WRONLY = libc::O_WRONLY as u32;
        /// Read and write.
        const RDWR = libc::O_RDWR as u32;
        /// Create the file if it does not exist.
        const CREAT = libc::O_CREAT as u32;
        /// Fail if it exists.
        const EXCL = libc::O_EXCL as u32;
        /// Do not make it the controlling terminal.
        const NOCTTY = libc::O_NOCTTY as u32;
        /// Truncate to length 0.
        const TRUNC = libc::O_TRUNC as u32;
        /// Every write goes to the end.
        const APPEND = libc::O_APPEND as u32;
        /// Do not block.
        const NONBLOCK = libc::O_NONBLOCK as u32;
        /// Data is on disk when a write returns.
        const DSYNC = libc::O_DSYNC as u32;
        /// Data and node are on disk when a write returns.
        const SYNC = libc::O_SYNC as u32;
        /// Bypass the page cache; accepted and ignored.
        const DIRECT = libc::O_DIRECT as u32;
        /// 64-bit offsets; always so. (The kernel's bit: libc's is 0 on x86-64.)
        const LARGEFILE = 0o100_000;
        /// Fail unless it is a directory.
        const DIRECTORY = libc::O_DIRECTORY as u32;
        /// Do not follow a symlink in the last component.
        const NOFOLLOW = libc::O_NOFOLLOW as u32;
        /// Leave the access time alone.
        const NOATIME = libc::O_NOATIME as u32;
        /// Close on exec; the caller's business.
        const CLOEXEC = libc::O_CLOEXEC as u32;
        /// Only a handle on the node.
        const PATH = libc::O_PATH as u32;
        /// A file without a name in the given directory (includes `DIRECTORY`).
        const TMPFILE = libc::O_TMPFILE as u32;
        const _ = !0;
    }
}

impl OpenFlags {
    /// Whether the file can be read: access mode `O_RDONLY` or `O_RDWR`.
    pub fn reads(self) -> bool {
        matches!(self.access_mode(), libc::O_RDONLY | libc::O_RDWR)
    }

    /// Whether the file can be written: access mode `O_WRONLY` or `O_RDWR`.
    pub fn writes(self) -> bool {
        matches!(self.access_mode(), libc::O_WRONLY | libc::O_RDWR)
    }

    /// Whether `O_TMPFILE` is asked for, which shares a bit with `O_DIRECTORY`.
    pub fn is_tmpfile(self) -> bool {
        self.contains(OpenFlags::TMPFILE)
    }

    fn access_mode(self) -> i32 {
        self.bits() as i32 & libc::O_ACCMODE
    }
}

bitflags! {
    /// The `resolve` bits of `openat2`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ResolveFlags: u64 {
        /// Do not cross mounts.
        const NO_XDEV = libc::RESOLVE_NO_XDEV;
        /// Do not follow magic links.
        const NO_MAGICLINKS = libc::RESOLVE_NO_MAGICLINKS;
        /// Do not follow symlinks.
        const NO_SYMLINKS = libc::RESOLVE_NO_SYMLINKS;
        /// Stay beneath the directory where the walk starts.
        const BENEATH = libc::RESOLVE_BENEATH;
        /// Take the directory where the walk starts for the root.
        const IN_ROOT = libc::RESOLVE_IN_ROOT;
        /// Only if no I/O is needed; answered with EAGAIN.
        const CACHED = 0x20;
        const _ = !0;
    }
}

bitflags! {
    /// The flags of `renameat2`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RenameFlags: u32 {
        /// Fail with EEXIST if the target exists.
        const NOREPLACE = libc::RENAME_NOREPLACE;
        /// Exchange source and target.
        const EXCHANGE = libc::RENAME_EXCHANGE;
        const _ = !0;
    }
}

/// The type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Character device.
    CharDevice,
    /// Block device.
    BlockDevice,
    /// FIFO.
    Fifo,
    /// Socket.
    Socket,
    /// What the host's file system does not say.
    Unknown,
}

impl FileKind {
    /// From the `S_IFMT` bits of a mode.
    pub fn from_mode(mode: u32) -> FileKind {
        match mode & libc::S_IFMT {
            libc::S_IFREG => FileKind::Regular,
            libc::S_IFDIR => FileKind::Directory,
            libc::S_IFLNK => FileKind::Symlink,
            libc::S_IFCHR => FileKind::CharDevice,
            libc::S_IFBLK => FileKind::BlockDevice,
            libc::S_IFIFO => FileKind::Fifo,
            libc::S_IFSOCK => FileKind::Socket,
            _ => FileKind::Unknown,
        }
    }

    /// The `DT_*` value of `struct linux_dirent64`.
    pub fn dirent_type(self) -> u8 {
        match self {
            FileKind::Regular => libc::DT_REG,
            FileKind::Directory => libc::DT_DIR,
            FileKind::Symlink => libc::DT_LNK,
            FileKind::CharDevice => libc::DT_CHR,
            FileKind::BlockDevice => libc::DT_BLK,
            FileKind::Fifo => libc::DT_FIFO,
            FileKind::Socket => libc::DT_SOCK,
            FileKind::Unknown => libc::DT_UNKNOWN,
        }
    }
}

/// One entry of a directory listing.
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    /// Inode number.
    pub ino: u64,
    /// Type.
    pub kind: FileKind,
    /// Name, without NUL.
    pub name: &'a [u8],
    /// `d_off`: the cookie that continues after this entry; fits in an `i64`.
    pub next: u64,
}

/// The flag of `setxattr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrSet {
    /// Create or replace.
    Any,
    /// `XATTR_CREATE`: fail with EEXIST if it exists.
    Create,
    /// `XATTR_REPLACE`: fail with ENODATA if it does not.
    Replace,
}

/// What `open` found.
pub enum Opened {
    /// A file, a directory, or (`O_PATH`) a handle on any node.
    File(Box<dyn File>),
    /// `/proc/self/fd/N` and what leads there (`/dev/stdin`, `/dev/fd/N`): the caller reopens
    /// its own descriptor N, honouring the flags.
    Descriptor(i32),
    /// `/dev/tty`: the caller's controlling terminal (ENXIO if it has none).
    Terminal,
}

/// An open file. Offsets belong to the caller.
///
/// The caller checks access modes (EBADF), `O_PATH` and seals; implementations check
/// everything else. Methods take `&self`: several descriptors may share one file. Attributes are
/// those of the location unless the file has a way of its own.
pub trait File {
    /// The node that was opened; for directories the base of relative paths.
    fn location(&self) -> &Location;

    /// `fstat`.
    fn stat(&self) -> Result<Stat>;

    /// The type of the node.
    fn kind(&self) -> FileKind;

    /// Whether the file has no position (`/dev/zero`, `/dev/urandom`): offsets passed to
    /// `read_at` and `write_at` are ignored, lseek answers 0.
    fn is_stream(&self) -> bool {
        false
    }

    /// Size in bytes, for SEEK_END.
    fn size(&self) -> Result<u64> {
        Ok(self.stat()?.size)
    }

    /// Reads into `buffers`; 0 is the end of file. EISDIR for directories.
    fn read_at(&self, _offset: u64, _buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        Err(Errno::INVAL)
    }

    /// Writes from `buffers`. Short writes happen when the quota is reached midway.
    fn write_at(&self, _offset: u64, _buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        Err(Errno::INVAL)
    }

    /// Writes at the end of the file, as `O_APPEND` asks; returns the number of bytes written
    /// and the offset behind them.
    fn append(&self, buffers: &[VolatileSlice<'_>]) -> Result<(usize, u64)> {
        let end = if self.is_stream() { 0 } else { self.size()? };
        let count = self.write_at(end, buffers)?;
        Ok((count, end.saturating_add(count as u64)))
    }

    /// `ftruncate`.
    fn truncate(&self, _size: u64) -> Result<()> {
        Err(Errno::INVAL)
    }

    /// `SEEK_DATA`: the first offset ≥ `offset` that holds data; ENXIO beyond the end.
    fn seek_data(&self, offset: u64) -> Result<u64> {
        if offset < self.size()? {
            Ok(offset)
        } else {
            Err(Errno::NXIO)
        }
    }

    /// `SEEK_HOLE`: the first offset ≥ `offset` in a hole (the end counts as one).
    fn seek_hole(&self, offset: u64) -> Result<u64> {
        let size = self.size()?;
        if offset < size {
            Ok(size)
        } else {
            Err(Errno::NXIO)
        }
    }

    /// `fallocate` with its raw mode bits: 0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE;
    /// EOPNOTSUPP for others.
    fn allocate(&self, _mode: u32, _offset: u64, _length: u64) -> Result<()> {
        Err(Errno::NODEV)
    }

    /// `fsync`, or `fdatasync` if `data_only`.
    fn sync(&self, _data_only: bool) -> Result<()> {
        Err(Errno::INVAL)
    }

    /// Lists from `cookie` (0, or the `next` of an entry) until `sink` returns false, which
    /// means that it did not take the entry; `sink` must not use this file. ENOTDIR unless a
    /// directory.
    fn read_dir(&self, _cookie: u64, _sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        Err(Errno::NOTDIR)
    }

    /// `fchmod`; `mode` is masked with 0o7777.
    fn set_mode(&self, mode: u32) -> Result<()> {
        self.location().set_mode(mode)
    }

    /// `fchown`; `None` leaves an id alone.
    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.location().set_owner(uid, gid)
    }

    /// `futimens`: access and modification time.
    fn set_times(&self, atime: TimeUpdate, mtime: TimeUpdate) -> Result<()> {
        self.location().set_times(atime, mtime)
    }

    /// `fgetxattr`: the whole value. ENODATA if there is none.
    fn get_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.location().get_xattr(name)
    }

    /// `fsetxattr`.
    fn set_xattr(&self, name: &[u8], value: &[u8], how: XattrSet) -> Result<()> {
        self.location().set_xattr(name, value, how)
    }

    /// `flistxattr`: names, each followed by NUL.
    fn list_xattr(&self) -> Result<Vec<u8>> {
        self.location().list_xattr()
    }

    /// `fremovexattr`.
    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.location().remove_xattr(name)
    }

    /// The host's descriptor, when the contents are exactly those of a regular host file: for
    /// exec, mmap and hashing. Its own offset and flags mean nothing.
    fn host_file(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
