//! What the tree reports about nodes and file systems.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::FileKind;

/// A point in time, as `struct timespec` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since the epoch.
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The host's wall clock.
    pub fn now() -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since.subsec_nanos(),
        }
    }
}

/// One of the two times that `utimensat` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUpdate {
    /// `UTIME_OMIT`: leave it.
    Omit,
    /// `UTIME_NOW`: the current time.
    Now,
    /// This time.
    At(Timestamp),
}

/// Every field of `struct statx` (and so of `struct stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Device that holds the node: a synthetic number per mount, encoded as `makedev`.
    pub dev: u64,
    /// Inode number, unique within `dev`.
    pub ino: u64,
    /// `S_IFMT` and permission bits.
    pub mode: u32,
    /// Number of names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device that a device node stands for, encoded as `makedev`.
    pub rdev: u64,
    /// Size in bytes.
    pub size: u64,
    /// Preferred I/O size in bytes.
    pub blksize: u32,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the contents.
    pub mtime: Timestamp,
    /// Last change of the node.
    pub ctime: Timestamp,
    /// Creation.
    pub btime: Timestamp,
    /// `STATX_ATTR_*` bits that are set.
    pub attributes: u64,
    /// `STATX_ATTR_*` bits that are known.
    pub attributes_mask: u64,
    /// Identifier of the mount, as in `/proc/self/mountinfo`.
    pub mount_id: u64,
}

impl Stat {
    /// The type in `mode`.
    pub fn kind(&self) -> FileKind {
        FileKind::from_mode(self.mode)
    }

    /// Permission bits with set-id and sticky bits: `mode & 0o7777`.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// What `statfs` reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFs {
    /// `f_type`: magic number of the file system (`linux/magic.h`).
    pub magic: i64,
    /// `f_bsize` and `f_frsize`: size of a block in bytes.
    pub block_size: i64,
    /// Blocks in all.
    pub blocks: u64,
    /// Free blocks (also those that are available to ordinary users).
    pub blocks_free: u64,
    /// Nodes in all.
    pub files: u64,
    /// Free nodes.
    pub files_free: u64,
    /// Identifier of the file system.
    pub fsid: u64,
    /// Longest name.
    pub name_max: i64,
    /// `ST_*` mount flags with `ST_VALID` (0x20), as the kernel reports them.
    pub flags: i64,
}
