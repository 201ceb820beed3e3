//! The operations on the tree, by path.

use std::rc::Rc;

use rustix::io::Errno;

use crate::mount::{Location, Mount, NodeRef};
use crate::overlay::{NewNode, Node, Tree};
use crate::rename::{self, Slot};
use crate::setup::{self, Config, SetupError};
use crate::tree_file::TreeFile;
use crate::walk::{self, Last, Resolved, Target, Walk};
use crate::{
    File, FileKind, PATH_MAX, ProcView, RenameFlags, ResolveFlags, Result, Stat, StatFs,
    TimeUpdate, XattrSet,
};

/// `PROC_SUPER_MAGIC` of `linux/magic.h`.
const PROC_MAGIC: i64 = 0x9fa0;
/// `ST_VALID | ST_RELATIME` of `linux/statfs.h`, and `ST_RDONLY`.
const STATFS_FLAGS: i64 = 0x0020 | 0x1000;
const STATFS_READ_ONLY: i64 = 0x0001;
/// Unit in which free space is reported, in bytes.
const STATFS_BLOCK: u64 = 4096;

/// The file tree of one guest.
///
/// Paths are what the guest passed, without NUL; `base` is where relative ones begin. Every
/// error is the errno that Linux gives for the same.
pub struct Vfs {
    pub(crate) mounts: Vec<Rc<Mount>>,
    pub(crate) tree: Rc<Tree>,
    pub(crate) boot_id: String,
    /// Held so that they are never looked up anew, which would show what is in them.
    _hidden: Vec<Location>,
    root: Location,
}

impl Vfs {
    /// Opens image and volumes. Nothing of them is read yet.
    pub fn new(config: Config) -> std::result::Result<Vfs, SetupError> {
        let parts = setup::build(&config)?;
        let root = match parts.mounts.first() {
            Some(mount) => Location::root_of(mount),
            None => {
                return Err(SetupError::Internal {
                    what: "the root",
                    reason: Errno::NOENT,
                });
            }
        };
        Ok(Vfs {
            mounts: parts.mounts,
            tree: parts.tree,
            boot_id: parts.boot_id,
            _hidden: parts.hidden,
            root,
        })
    }

    /// The guest's root directory.
    pub fn root(&self) -> Location {
        self.root.clone()
    }

    /// Absolute guest path of `place`; ends in ` (deleted)` if it has no name any more, and
    /// begins with `(too long)`, not with a slash, if it does not fit `PATH_MAX`.
    pub fn path_of(&self, place: &Location) -> Vec<u8> {
        place.path()
    }

    pub(crate) fn resolve(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        walk: Walk,
    ) -> Result<Resolved> {
        walk::resolve(&self.mounts, view, base, path, walk)
    }

    /// Finds the node that a path names. A descriptor reached through `/proc/self/fd` that is
    /// no node of the tree (a pipe, say) is EACCES.
    pub fn lookup(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        follow: bool,
    ) -> Result<Location> {
        let resolved = self.resolve(view, base, path, Walk::find(follow))?;
        let slash = resolved.slash;
        match resolved.target {
            Target::Node(place) => {
                if slash {
                    place.require_directory()?;
                }
                Ok(place)
            }
            Target::Descriptor(fd) => {
                let fd = view.fd(fd).ok_or(Errno::NOENT)?;
                fd.location.ok_or(Errno::ACCESS)
            }
            Target::Missing => Err(Errno::NOENT),
        }
    }

    /// Attributes of the node that a path names.
    pub fn stat(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        follow: bool,
    ) -> Result<Stat> {
        let resolved = self.resolve(view, base, path, Walk::find(follow))?;
        let slash = resolved.slash;
        let stat = match resolved.target {
            Target::Node(place) => place.stat(view)?,
            Target::Descriptor(fd) => return view.fd_stat(fd),
            Target::Missing => return Err(Errno::NOENT),
        };
        if slash && stat.kind() != FileKind::Directory {
            return Err(Errno::NOTDIR);
        }
        Ok(stat)
    }

    /// Attributes of a node.
    pub fn stat_of(&mut self, view: &dyn ProcView, place: &Location) -> Result<Stat> {
        place.stat(view)
    }

    /// `access` for root: everything can be read and written that is not on a read-only mount,
    /// and executed what somebody may execute. `mode` has the bits of `R_OK`, `W_OK`, `X_OK`.
    pub fn access(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        mode: u32,
        follow: bool,
    ) -> Result<()> {
        if mode & !(libc::R_OK | libc::W_OK | libc::X_OK) as u32 != 0 {
            return Err(Errno::INVAL);
        }
        let stat = self.stat(view, base, path, follow)?;
        let mount = self.mounts.iter().find(|mount| mount.id() == stat.mount_id);
        let read_only = mount.is_some_and(|mount| mount.read_only);
        let kind = stat.kind();
        let writes = mode & libc::W_OK as u32 != 0;
        let stored = matches!(
            kind,
            FileKind::Regular | FileKind::Directory | FileKind::Symlink
        );
        if writes && read_only && stored {
            return Err(Errno::ROFS);
        }
        let executes = mode & libc::X_OK as u32 != 0;
        if executes && kind != FileKind::Directory && stat.mode & 0o111 == 0 {
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// The text of a symlink; EINVAL for anything else.
    pub fn readlink(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
    ) -> Result<Vec<u8>> {
        let place = self.lookup(view, base, path, false)?;
        self.readlink_of(view, &place)
    }

    /// The text of a symlink that is at hand.
    pub fn readlink_of(&mut self, view: &dyn ProcView, place: &Location) -> Result<Vec<u8>> {
        walk::readlink(&self.mounts, view, place)
    }

    /// The file system that holds a node.
    pub fn statfs(&mut self, place: &Location) -> Result<StatFs> {
        let mut statfs = match &place.node {
            NodeRef::Tree(node) => tree_statfs(&node.tree),
            NodeRef::Volume(node) => node.statfs()?,
            NodeRef::Proc(_) => StatFs {
                magic: PROC_MAGIC,
                block_size: STATFS_BLOCK as i64,
                name_max: crate::NAME_MAX as i64,
                ..StatFs::default()
            },
        };
        statfs.fsid = place.mount.device(0);
        statfs.flags = STATFS_FLAGS;
        if place.mount.read_only {
            statfs.flags |= STATFS_READ_ONLY;
        }
        Ok(statfs)
    }

    /// Finds where to make the last component of `path`; EEXIST if it exists.
    fn vacancy(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        directory: bool,
    ) -> Result<(Location, Vec<u8>)> {
        let resolved = self.resolve(view, base, path, Walk::edit())?;
        if !matches!(resolved.target, Target::Missing) {
            return Err(Errno::EXIST);
        }
        if resolved.slash && !directory {
            return Err(Errno::NOENT);
        }
        let name = resolved.name(Errno::EXIST)?.to_vec();
        resolved.parent.mount.check_writable()?;
        Ok((resolved.parent, name))
    }

    /// `mkdir`; the umask has been applied to `mode`.
    pub fn mkdir(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        mode: u32,
    ) -> Result<()> {
        let (parent, name) = self.vacancy(view, base, path, true)?;
        match &parent.node {
            NodeRef::Tree(node) => {
                let mode = libc::S_IFDIR | mode & 0o1777;
                node.create(&name, mode, &NewNode::Directory).map(drop)
            }
            NodeRef::Volume(node) => node.mkdir(&name, mode),
            NodeRef::Proc(_) => Err(Errno::NOENT),
        }
    }

    /// `mknod` of a regular file, FIFO or socket; the umask has been applied to `mode`. Devices
    /// are EPERM, as they are for root of a user namespace.
    pub fn mknod(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        mode: u32,
    ) -> Result<()> {
        let kind = match mode & libc::S_IFMT {
            0 => FileKind::Regular,
            _ => FileKind::from_mode(mode),
        };
        match kind {
            FileKind::Regular | FileKind::Fifo | FileKind::Socket => {}
            FileKind::Directory | FileKind::CharDevice | FileKind::BlockDevice => {
                return Err(Errno::PERM);
            }
            FileKind::Symlink | FileKind::Unknown => return Err(Errno::INVAL),
        }
        let (parent, name) = self.vacancy(view, base, path, false)?;
        match (&parent.node, kind) {
            (NodeRef::Tree(node), FileKind::Regular) => {
                let mode = libc::S_IFREG | mode & 0o7777;
                node.create(&name, mode, &NewNode::Regular).map(drop)
            }
            (NodeRef::Tree(node), _) => {
                let mode = mode & (libc::S_IFMT | 0o7777);
                node.create(&name, mode, &NewNode::Special { rdev: 0 })
                    .map(drop)
            }
            (NodeRef::Volume(node), FileKind::Regular) => {
                node.create(&name, crate::OpenFlags::WRONLY, mode).map(drop)
            }
            (NodeRef::Volume(_), _) => Err(Errno::PERM),
            (NodeRef::Proc(_), _) => Err(Errno::NOENT),
        }
    }

    /// `symlink`.
    pub fn symlink(
        &mut self,
        view: &dyn ProcView,
        target: &[u8],
        base: &Location,
        path: &[u8],
    ) -> Result<()> {
        if target.is_empty() {
            return Err(Errno::NOENT);
        }
        if target.len() >= PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let (parent, name) = self.vacancy(view, base, path, false)?;
        match &parent.node {
            NodeRef::Tree(node) => {
                let mode = libc::S_IFLNK | 0o777;
                node.create(&name, mode, &NewNode::Symlink(target))
                    .map(drop)
            }
            NodeRef::Volume(node) => node.symlink(&name, target),
            NodeRef::Proc(_) => Err(Errno::NOENT),
        }
    }

    /// `link`: gives the node `from` (found with `lookup`, or the location of an open file)
    /// another name.
    pub fn link(
        &mut self,
        view: &dyn ProcView,
        from: &Location,
        base: &Location,
        path: &[u8],
    ) -> Result<()> {
        let (parent, name) = self.vacancy(view, base, path, false)?;
        if parent.mount.index != from.mount.index {
            return Err(Errno::XDEV);
        }
        match (&parent.node, &from.node) {
            (NodeRef::Tree(directory), NodeRef::Tree(node)) => link_node(directory, &name, node),
            (NodeRef::Volume(directory), NodeRef::Volume(node)) => directory.link(&name, node),
            _ => Err(Errno::PERM),
        }
    }

    /// `unlink`.
    pub fn unlink(&mut self, view: &dyn ProcView, base: &Location, path: &[u8]) -> Result<()> {
        let resolved = self.resolve(view, base, path, Walk::edit())?;
        let name = resolved.name(Errno::ISDIR)?;
        let Target::Node(place) = &resolved.target else {
            return Err(Errno::NOENT);
        };
        let directory = place.kind() == FileKind::Directory;
        if resolved.slash && !directory {
            return Err(Errno::NOTDIR);
        }
        resolved.parent.mount.check_writable()?;
        if directory {
            return Err(Errno::ISDIR);
        }
        if place.is_mount_root() {
            return Err(Errno::BUSY);
        }
        match &resolved.parent.node {
            NodeRef::Tree(node) => node.unlink(name),
            NodeRef::Volume(node) => node.unlink(name, false),
            NodeRef::Proc(_) => Err(Errno::PERM),
        }
    }

    /// `rmdir`.
    pub fn rmdir(&mut self, view: &dyn ProcView, base: &Location, path: &[u8]) -> Result<()> {
        let resolved = self.resolve(view, base, path, Walk::edit())?;
        let name = match &resolved.last {
            Last::Name(name) => name,
            Last::Dot => return Err(Errno::INVAL),
            Last::DotDot => return Err(Errno::NOTEMPTY),
            Last::Root => return Err(Errno::BUSY),
        };
        let Target::Node(place) = &resolved.target else {
            return Err(Errno::NOENT);
        };
        resolved.parent.mount.check_writable()?;
        place.require_directory()?;
        if place.is_mount_root() || self.has_mount_below(place) {
            return Err(Errno::BUSY);
        }
        match (&resolved.parent.node, &place.node) {
            (NodeRef::Tree(parent), NodeRef::Tree(node)) => {
                if !node.is_empty()? {
                    return Err(Errno::NOTEMPTY);
                }
                parent.unlink(name)
            }
            (NodeRef::Volume(parent), _) => parent.unlink(name, true),
            _ => Err(Errno::PERM),
        }
    }

    /// Whether something is mounted on a volume's node or below it: mounts know their place
    /// there by its path, which must not change.
    fn has_mount_below(&self, place: &Location) -> bool {
        let NodeRef::Volume(node) = &place.node else {
            return false;
        };
        self.mounts
            .iter()
            .filter_map(|mount| mount.covers.as_ref())
            .any(|covers| match &covers.node {
                NodeRef::Volume(covered) => {
                    let below = covered.path().strip_prefix(node.path());
                    covers.mount.index == place.mount.index
                        && below.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
                }
                _ => false,
            })
    }

    /// `renameat2`.
    pub fn rename(
        &mut self,
        view: &dyn ProcView,
        from: (&Location, &[u8]),
        to: (&Location, &[u8]),
        flags: RenameFlags,
    ) -> Result<()> {
        let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
        if known.complement().intersects(flags) || flags.contains(known) {
            return Err(Errno::INVAL);
        }
        let source = self.resolve(view, from.0, from.1, Walk::edit())?;
        let target = self.resolve(view, to.0, to.1, Walk::edit())?;
        if source.parent.mount.index != target.parent.mount.index {
            return Err(Errno::XDEV);
        }
        let special = match flags.contains(RenameFlags::NOREPLACE) {
            true => Errno::EXIST,
            false => Errno::BUSY,
        };
        let (source_name, target_name) = (source.name(Errno::BUSY)?, target.name(special)?);
        source.parent.mount.check_writable()?;
        for end in [&source, &target] {
            if let Target::Node(place) = &end.target
                && (place.is_mount_root() || self.has_mount_below(place))
            {
                return Err(Errno::BUSY);
            }
        }
        match (&source.parent.node, &target.parent.node) {
            (NodeRef::Tree(a), NodeRef::Tree(b)) => {
                let from = Slot {
                    directory: a,
                    name: source_name,
                    slash: source.slash,
                };
                let to = Slot {
                    directory: b,
                    name: target_name,
                    slash: target.slash,
                };
                rename::rename(from, to, flags)
            }
            (NodeRef::Volume(a), NodeRef::Volume(b)) => {
                check_slashes(&source, &target)?;
                a.rename(source_name, b, target_name, flags.bits())
            }
            _ => Err(Errno::PERM),
        }
    }

    /// `truncate`.
    pub fn truncate(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        size: u64,
    ) -> Result<()> {
        let place = self.lookup(view, base, path, true)?;
        match place.kind() {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        place.mount.check_writable()?;
        match &place.node {
            NodeRef::Tree(node) => node.truncate(size),
            NodeRef::Volume(node) => node.truncate(size),
            NodeRef::Proc(_) => Err(Errno::PERM),
        }
    }

    /// `chmod`; `mode` is masked with 0o7777. EOPNOTSUPP for symlinks.
    pub fn set_mode(&mut self, place: &Location, mode: u32) -> Result<()> {
        place.set_mode(mode)
    }

    /// `chown`; `None` leaves an id alone.
    pub fn set_owner(
        &mut self,
        place: &Location,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<()> {
        place.set_owner(uid, gid)
    }

    /// `utimensat`.
    pub fn set_times(
        &mut self,
        place: &Location,
        atime: TimeUpdate,
        mtime: TimeUpdate,
    ) -> Result<()> {
        place.set_times(atime, mtime)
    }

    /// `getxattr`: the whole value. ENODATA if there is none.
    pub fn get_xattr(&mut self, place: &Location, name: &[u8]) -> Result<Vec<u8>> {
        place.get_xattr(name)
    }

    /// `setxattr`.
    pub fn set_xattr(
        &mut self,
        place: &Location,
        name: &[u8],
        value: &[u8],
        how: XattrSet,
    ) -> Result<()> {
        place.set_xattr(name, value, how)
    }

    /// `listxattr`: names, each followed by NUL.
    pub fn list_xattr(&mut self, place: &Location) -> Result<Vec<u8>> {
        place.list_xattr()
    }

    /// `removexattr`.
    pub fn remove_xattr(&mut self, place: &Location, name: &[u8]) -> Result<()> {
        place.remove_xattr(name)
    }

    /// A file without a place in the tree (`memfd_create`), counted against the quota. Its
    /// path is `/memfd:NAME (deleted)`.
    pub fn memfd(&mut self, name: &[u8]) -> Result<Box<dyn File>> {
        // The kernel leaves 249 bytes for the name, the prefix and NUL taken off NAME_MAX.
        if name.len() > 249 || name.contains(&0) {
            return Err(Errno::INVAL);
        }
        let mode = libc::S_IFREG | 0o777;
        let node = Node::create_unlinked(&self.tree, mode, &NewNode::Regular)?;
        *node.place.borrow_mut() = Some(crate::overlay::Place {
            parent: std::rc::Weak::new(),
            name: [b"memfd:", name].concat().into(),
        });
        let place = self.root.with(NodeRef::Tree(Rc::clone(&node)));
        Ok(Box::new(TreeFile::open(place, node)?))
    }
}

fn tree_statfs(tree: &Tree) -> StatFs {
    StatFs {
        magic: tree.magic,
        block_size: STATFS_BLOCK as i64,
        blocks: tree.bytes.limit() / STATFS_BLOCK,
        blocks_free: tree.bytes.free() / STATFS_BLOCK,
        files: tree.nodes.limit(),
        files_free: tree.nodes.free(),
        name_max: crate::NAME_MAX as i64,
        ..StatFs::default()
    }
}

fn link_node(directory: &Rc<Node>, name: &[u8], node: &Rc<Node>) -> Result<()> {
    if node.kind() == FileKind::Directory {
        return Err(Errno::PERM);
    }
    if directory.is_removed() || (node.is_removed() && !node.linkable.get()) {
        return Err(Errno::NOENT);
    }
    if node.attr.get().nlink >= crate::overlay::MAX_LINKS {
        return Err(Errno::MLINK);
    }
    let charge = directory.charge_name(name)?;
    node.pin()?;
    node.linkable.set(false);
    directory.attach(name, node, charge)?;
    node.update(|attr| attr.ctime = crate::Timestamp::now());
    Ok(())
}

/// The host gets bare names: that a slash asks for a directory is checked here.
fn check_slashes(source: &Resolved, target: &Resolved) -> Result<()> {
    if let Target::Node(place) = &source.target
        && (source.slash || target.slash)
    {
        place.require_directory()?;
    }
    Ok(())
}

/// Whether a walk of `open` takes the flags of `openat2`.
pub(crate) fn check_resolve(resolve: ResolveFlags) -> Result<()> {
    let held = ResolveFlags::BENEATH | ResolveFlags::IN_ROOT;
    let known = held
        | ResolveFlags::NO_XDEV
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::CACHED;
    if known.complement().intersects(resolve) || resolve.contains(held) {
        return Err(Errno::INVAL);
    }
    if resolve.contains(ResolveFlags::CACHED) {
        return Err(Errno::AGAIN);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
