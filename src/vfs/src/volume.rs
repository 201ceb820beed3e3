//! Host directories and files that the guest sees as they are.
//!
//! Others may change them at the same time, so nothing is remembered beyond one walk (`descent`).
//! A node is a path beneath the volume without symlinks; every access opens it (or its directory)
//! anew, beneath the volume and refusing symlinks, so that exchanging a directory for a link leads
//! nowhere.
//!
//! The guest runs as root. Nodes of the host user who runs this process show as root's, so that
//! what the guest creates is its own. It can neither give files to anybody else nor set set-id
//! bits nor make devices, FIFOs or sockets. The host's umask applies to what is created.
//!
//! A volume is one mount of the host. What the host has mounted below is no part of it: such a
//! mount point has a name and a type, so that another volume can cover it, and every use of it
//! is EXDEV. So `/proc` and its kind do not show through a volume that holds them, however the
//! guest renames what is around, and a volume of such a file system is refused when the tree is
//! made.

mod descent;

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use vm_memory::VolatileSlice;

pub(crate) use descent::Descent;

use crate::budget::Budget;
use crate::host_io::{self, HostDir, Listing, stat_from, statx_of};
use crate::mount::{Location, NodeRef};
use crate::tree_file::read_listing;
use crate::{DirEntry, File, FileKind, OpenFlags, Result, Stat, StatFs, TimeUpdate, Timestamp};

#[derive(Debug)]
pub(crate) struct VolumeRoot {
    pub(crate) dir: HostDir,
    pub(crate) listings: Rc<Budget>,
}

#[derive(Clone, Debug)]
pub(crate) struct VolumeNode {
    volume: Rc<VolumeRoot>,
    path: Rc<[u8]>,
    /// When it was looked up; every use of the node finds out for itself.
    kind: FileKind,
}

/// Permission bits that a guest may set on the host.
const SAFE_MODE: u32 = 0o1777;

fn last_name(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (
            path.get(..slash).unwrap_or_default(),
            path.get(slash + 1..).unwrap_or_default(),
        ),
        None => (b"", path),
    }
}

fn stat_of(fd: BorrowedFd<'_>) -> Result<Stat> {
    let mut stat = stat_from(&statx_of(fd)?);
    if stat.uid == rustix::process::geteuid().as_raw() {
        stat.uid = 0;
    }
    if stat.gid == rustix::process::getegid().as_raw() {
        stat.gid = 0;
    }
    Ok(stat)
}

/// Only what changes nothing is allowed.
fn check_owner(stat: &Stat, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    if uid.is_none_or(|uid| uid == stat.uid) && gid.is_none_or(|gid| gid == stat.gid) {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

fn timestamps(atime: TimeUpdate, mtime: TimeUpdate) -> Timestamps {
    let time = |update| match update {
        TimeUpdate::Omit => Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        TimeUpdate::Now => Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        },
        TimeUpdate::At(Timestamp {
            seconds,
            nanoseconds,
        }) => Timespec {
            tv_sec: seconds,
            tv_nsec: i64::from(nanoseconds),
        },
    };
    Timestamps {
        last_access: time(atime),
        last_modification: time(mtime),
    }
}

/// The host's name of a descriptor, for calls that refuse `O_PATH` descriptors.
fn descriptor_path(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

impl VolumeNode {
    pub(crate) fn root(volume: &Rc<VolumeRoot>) -> VolumeNode {
        VolumeNode {
            volume: Rc::clone(volume),
            path: Rc::from(&b""[..]),
            kind: match volume.dir.is_file() {
                true => FileKind::Regular,
                false => FileKind::Directory,
            },
        }
    }

    /// Path beneath the volume; empty for its root.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    pub(crate) fn kind(&self) -> FileKind {
        self.kind
    }

    fn join(&self, name: &[u8]) -> Vec<u8> {
        match self.path() {
            b"" => name.to_vec(),
            path => [path, name].join(&b'/'),
        }
    }

    /// The node `name`, which is not `.` or `..`, as part of the walk of `descent`.
    pub(crate) fn child(&self, name: &[u8], descent: &mut Descent) -> Result<VolumeNode> {
        descent.child(self, name)
    }

    pub(crate) fn parent(&self) -> VolumeNode {
        VolumeNode {
            volume: Rc::clone(&self.volume),
            path: last_name(&self.path).0.into(),
            kind: FileKind::Directory,
        }
    }

    fn handle(&self) -> Result<OwnedFd> {
        self.volume.dir.handle(&self.path)
    }

    fn directory(&self) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        self.volume.dir.open_at(&self.path, flags, Mode::empty())
    }

    pub(crate) fn stat(&self) -> Result<Stat> {
        stat_of(self.handle()?.as_fd())
    }

    pub(crate) fn readlink(&self) -> Result<Vec<u8>> {
        self.volume.dir.readlink(&self.path)
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<()> {
        let handle = self.handle()?;
        if stat_of(handle.as_fd())?.kind() == FileKind::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        let mode = Mode::from_raw_mode(mode & SAFE_MODE);
        rustix::fs::chmod(descriptor_path(&handle), mode)
    }

    pub(crate) fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        check_owner(&self.stat()?, uid, gid)
    }

    pub(crate) fn set_times(&self, atime: TimeUpdate, mtime: TimeUpdate) -> Result<()> {
        let times = timestamps(atime, mtime);
        if self.path.is_empty() {
            let handle = self.handle()?;
            let path = descriptor_path(&handle);
            return rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::empty());
        }
        // Another mount on the way to the node, or on it, is noticed here only.
        self.handle()?;
        let (directory, name) = (self.parent().directory()?, last_name(&self.path).1);
        rustix::fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn truncate(&self, size: u64) -> Result<()> {
        let fd = self
            .volume
            .dir
            .open_regular(&self.path, OpenFlags::WRONLY)?;
        rustix::fs::ftruncate(fd, size)
    }

    pub(crate) fn statfs(&self) -> Result<StatFs> {
        let host = rustix::fs::fstatfs(self.handle()?)?;
        Ok(StatFs {
            magic: host.f_type,
            block_size: host.f_bsize,
            blocks: host.f_blocks,
            blocks_free: host.f_bavail,
            files: host.f_files,
            files_free: host.f_ffree,
            fsid: 0,
            name_max: host.f_namelen,
            flags: 0,
        })
    }

    pub(crate) fn mkdir(&self, name: &[u8], mode: u32) -> Result<()> {
        let mode = Mode::from_raw_mode(mode & SAFE_MODE);
        rustix::fs::mkdirat(self.directory()?, name, mode)
    }

    pub(crate) fn symlink(&self, name: &[u8], target: &[u8]) -> Result<()> {
        rustix::fs::symlinkat(target, self.directory()?, name)
    }

    pub(crate) fn unlink(&self, name: &[u8], directory: bool) -> Result<()> {
        let flags = match directory {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        rustix::fs::unlinkat(self.directory()?, name, flags)
    }

    /// Makes a hard link to `from`, which is of the same volume.
    pub(crate) fn link(&self, name: &[u8], from: &VolumeNode) -> Result<()> {
        let (source, source_name) = (from.parent().directory()?, last_name(&from.path).1);
        rustix::fs::linkat(
            source,
            source_name,
            self.directory()?,
            name,
            AtFlags::empty(),
        )
    }

    pub(crate) fn rename(
        &self,
        name: &[u8],
        to: &VolumeNode,
        to_name: &[u8],
        flags: u32,
    ) -> Result<()> {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags);
        rustix::fs::renameat_with(self.directory()?, name, to.directory()?, to_name, flags)
    }

    /// Creates a regular file; EEXIST if the name exists.
    pub(crate) fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(VolumeNode, OwnedFd)> {
        let path = self.join(name);
        let host = host_io::host_flags(flags) | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(mode & SAFE_MODE);
        let fd = self.volume.dir.open_at(&path, host, mode)?;
        let node = VolumeNode {
            volume: Rc::clone(&self.volume),
            path: path.into(),
            kind: FileKind::Regular,
        };
        Ok((node, fd))
    }

    pub(crate) fn open_regular(&self, flags: OpenFlags) -> Result<OwnedFd> {
        self.volume.dir.open_regular(&self.path, flags)
    }

    fn list(&self) -> Result<Listing> {
        self.volume.dir.list(&self.path, &self.volume.listings)
    }
}

/// An open regular file.
pub(crate) struct VolumeFile {
    pub(crate) location: Location,
    pub(crate) fd: OwnedFd,
}

impl File for VolumeFile {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.location.localise(stat_of(self.fd.as_fd())?))
    }

    fn kind(&self) -> FileKind {
        FileKind::Regular
    }

    fn read_at(&self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        host_io::read_at(self.fd.as_fd(), offset, buffers)
    }

    fn write_at(&self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        host_io::write_at(self.fd.as_fd(), offset, buffers)
    }

    fn append(&self, buffers: &[VolatileSlice<'_>]) -> Result<(usize, u64)> {
        host_io::append(self.fd.as_fd(), buffers)
    }

    fn truncate(&self, size: u64) -> Result<()> {
        rustix::fs::ftruncate(&self.fd, size)
    }

    fn seek_data(&self, offset: u64) -> Result<u64> {
        rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::Data(offset))
    }

    fn seek_hole(&self, offset: u64) -> Result<u64> {
        rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::Hole(offset))
    }

    fn allocate(&self, mode: u32, offset: u64, length: u64) -> Result<()> {
        let known =
            libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !(known as u32) != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let mode = rustix::fs::FallocateFlags::from_bits_retain(mode);
        rustix::fs::fallocate(&self.fd, mode, offset, length)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        match data_only {
            true => rustix::fs::fdatasync(&self.fd),
            false => rustix::fs::fsync(&self.fd),
        }
    }

    fn set_mode(&self, mode: u32) -> Result<()> {
        self.location.mount.check_writable()?;
        rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(mode & SAFE_MODE))
    }

    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.location.mount.check_writable()?;
        check_owner(&stat_of(self.fd.as_fd())?, uid, gid)
    }

    fn set_times(&self, atime: TimeUpdate, mtime: TimeUpdate) -> Result<()> {
        self.location.mount.check_writable()?;
        rustix::fs::futimens(&self.fd, &timestamps(atime, mtime))
    }

    fn host_file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}

/// An open directory.
pub(crate) struct VolumeDirectory {
    location: Location,
    node: VolumeNode,
    listing: RefCell<Option<Listing>>,
}

impl VolumeDirectory {
    pub(crate) fn open(location: Location, node: VolumeNode) -> Result<VolumeDirectory> {
        node.directory()?;
        Ok(VolumeDirectory {
            location,
            node,
            listing: RefCell::new(None),
        })
    }
}

impl VolumeDirectory {
    /// Inode number of the guest's directory that holds the mount point.
    fn outer_ino(&self) -> Result<u64> {
        match self.location.parent()?.node {
            NodeRef::Tree(node) => Ok(node.attr.get().ino),
            NodeRef::Volume(node) => Ok(node.stat()?.ino),
            NodeRef::Proc(node) => Ok(node.ino()),
        }
    }
}

impl File for VolumeDirectory {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.location.localise(self.node.stat()?))
    }

    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn read_at(&self, _offset: u64, _buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        Err(Errno::ISDIR)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = self
            .node
            .volume
            .dir
            .open_at(&self.node.path, flags, Mode::empty())?;
        match data_only {
            true => rustix::fs::fdatasync(fd),
            false => rustix::fs::fsync(fd),
        }
    }

    fn read_dir(&self, cookie: u64, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        read_listing(&self.listing, cookie, sink, || {
            let mut listing = self.node.list()?;
            if self.location.is_mount_root() {
                listing.set_parent(self.outer_ino()?);
            }
            Ok(listing)
        })
    }
}

#[cfg(test)]
mod tests;
