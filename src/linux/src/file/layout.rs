//! Structures as the kernel lays them out for the program, byte by byte: what no field covers
//! is zero.

use std::mem::offset_of;

use agentrt_vfs::{DirEntry, Stat, StatFs, Timestamp};

/// `sizeof(struct stat)` on x86-64.
pub(super) const STAT_SIZE: usize = size_of::<libc::stat>();
/// `sizeof(struct statx)`.
pub(super) const STATX_SIZE: usize = size_of::<libc::statx>();
/// `sizeof(struct statfs)` on x86-64.
pub(super) const STATFS_SIZE: usize = size_of::<libc::statfs>();

/// A structure of `SIZE` bytes whose fields are set one by one.
struct Layout<const SIZE: usize>([u8; SIZE]);

impl<const SIZE: usize> Layout<SIZE> {
    fn new() -> Layout<SIZE> {
        Layout([0; SIZE])
    }

    /// Sets the field at `offset`, which comes from the structure itself.
    fn set<const WIDTH: usize>(&mut self, offset: usize, value: [u8; WIDTH]) {
        self.0[offset..offset + WIDTH].copy_from_slice(&value);
    }
}

/// `struct stat`.
pub(super) fn stat(stat: &Stat) -> [u8; STAT_SIZE] {
    let mut layout = Layout::new();
    layout.set(offset_of!(libc::stat, st_dev), stat.dev.to_ne_bytes());
    layout.set(offset_of!(libc::stat, st_ino), stat.ino.to_ne_bytes());
    layout.set(
        offset_of!(libc::stat, st_nlink),
        u64::from(stat.nlink).to_ne_bytes(),
    );
    layout.set(offset_of!(libc::stat, st_mode), stat.mode.to_ne_bytes());
    layout.set(offset_of!(libc::stat, st_uid), stat.uid.to_ne_bytes());
    layout.set(offset_of!(libc::stat, st_gid), stat.gid.to_ne_bytes());
    layout.set(offset_of!(libc::stat, st_rdev), stat.rdev.to_ne_bytes());
    layout.set(offset_of!(libc::stat, st_size), stat.size.to_ne_bytes());
    layout.set(
        offset_of!(libc::stat, st_blksize),
        u64::from(stat.blksize).to_ne_bytes(),
    );
    layout.set(offset_of!(libc::stat, st_blocks), stat.blocks.to_ne_bytes());
    for (offset, time) in [
        (offset_of!(libc::stat, st_atime), stat.atime),
        (offset_of!(libc::stat, st_mtime), stat.mtime),
        (offset_of!(libc::stat, st_ctime), stat.ctime),
    ] {
        layout.set(offset, time.seconds.to_ne_bytes());
        layout.set(offset + 8, u64::from(time.nanoseconds).to_ne_bytes());
    }
    layout.0
}

/// `struct statx` with all that is known, whatever was asked for.
pub(super) fn statx(stat: &Stat) -> [u8; STATX_SIZE] {
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME | libc::STATX_MNT_ID;
    let mut layout = Layout::new();
    layout.set(offset_of!(libc::statx, stx_mask), mask.to_ne_bytes());
    layout.set(
        offset_of!(libc::statx, stx_blksize),
        stat.blksize.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statx, stx_attributes),
        stat.attributes.to_ne_bytes(),
    );
    layout.set(offset_of!(libc::statx, stx_nlink), stat.nlink.to_ne_bytes());
    layout.set(offset_of!(libc::statx, stx_uid), stat.uid.to_ne_bytes());
    layout.set(offset_of!(libc::statx, stx_gid), stat.gid.to_ne_bytes());
    layout.set(
        offset_of!(libc::statx, stx_mode),
        (stat.mode as u16).to_ne_bytes(),
    );
    layout.set(offset_of!(libc::statx, stx_ino), stat.ino.to_ne_bytes());
    layout.set(offset_of!(libc::statx, stx_size), stat.size.to_ne_bytes());
    layout.set(
        offset_of!(libc::statx, stx_blocks),
        stat.blocks.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statx, stx_attributes_mask),
        stat.attributes_mask.to_ne_bytes(),
    );
    for (offset, time) in [
        (offset_of!(libc::statx, stx_atime), stat.atime),
        (offset_of!(libc::statx, stx_btime), stat.btime),
        (offset_of!(libc::statx, stx_ctime), stat.ctime),
        (offset_of!(libc::statx, stx_mtime), stat.mtime),
    ] {
        let Timestamp {
            seconds,
            nanoseconds,
        } = time;
        layout.set(
            offset + offset_of!(libc::statx_timestamp, tv_sec),
            seconds.to_ne_bytes(),
        );
        layout.set(
            offset + offset_of!(libc::statx_timestamp, tv_nsec),
            nanoseconds.to_ne_bytes(),
        );
    }
    for (offset, device) in [
        (offset_of!(libc::statx, stx_rdev_major), stat.rdev),
        (offset_of!(libc::statx, stx_dev_major), stat.dev),
    ] {
        layout.set(offset, libc::major(device).to_ne_bytes());
        layout.set(offset + 4, libc::minor(device).to_ne_bytes());
    }
    layout.set(
        offset_of!(libc::statx, stx_mnt_id),
        stat.mount_id.to_ne_bytes(),
    );
    layout.0
}

/// `struct statfs`.
pub(super) fn statfs(statfs: &StatFs) -> [u8; STATFS_SIZE] {
    let mut layout = Layout::new();
    layout.set(offset_of!(libc::statfs, f_type), statfs.magic.to_ne_bytes());
    layout.set(
        offset_of!(libc::statfs, f_bsize),
        statfs.block_size.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statfs, f_blocks),
        statfs.blocks.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statfs, f_bfree),
        statfs.blocks_free.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statfs, f_bavail),
        statfs.blocks_free.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statfs, f_files),
        statfs.files.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statfs, f_ffree),
        statfs.files_free.to_ne_bytes(),
    );
    layout.set(offset_of!(libc::statfs, f_fsid), statfs.fsid.to_ne_bytes());
    layout.set(
        offset_of!(libc::statfs, f_namelen),
        statfs.name_max.to_ne_bytes(),
    );
    layout.set(
        offset_of!(libc::statfs, f_frsize),
        statfs.block_size.to_ne_bytes(),
    );
    // Behind f_frsize; libc's structure does not name it.
    layout.set(
        offset_of!(libc::statfs, f_frsize) + 8,
        statfs.flags.to_ne_bytes(),
    );
    layout.0
}

/// How `getdents` (1990s) and `getdents64` lay out an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirentFormat {
    /// `struct linux_dirent`: the type in the last byte.
    Old,
    /// `struct linux_dirent64`: the type before the name.
    New,
}

/// Bytes before the name of an old entry: inode number, offset, length.
const DIRENT_HEADER: usize = 18;

/// Appends an entry to `list` unless that would make it longer than `room`.
pub(super) fn push_dirent(
    list: &mut Vec<u8>,
    room: usize,
    format: DirentFormat,
    entry: &DirEntry<'_>,
) -> bool {
    // Header, name, and both NUL and type: aligned, so that the next entry is.
    let length = (DIRENT_HEADER + entry.name.len() + 2).next_multiple_of(8);
    let end = list.len() + length;
    let Ok(record_length) = u16::try_from(length) else {
        return false;
    };
    if end > room {
        return false;
    }
    let kind = entry.kind.dirent_type();
    list.extend_from_slice(&entry.ino.to_ne_bytes());
    list.extend_from_slice(&entry.next.to_ne_bytes());
    list.extend_from_slice(&record_length.to_ne_bytes());
    if format == DirentFormat::New {
        list.push(kind);
    }
    list.extend_from_slice(entry.name);
    list.resize(end, 0);
    if format == DirentFormat::Old {
        list[end - 1] = kind;
    }
    true
}

#[cfg(test)]
mod tests;
