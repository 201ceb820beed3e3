//! Mounts, and the places in them.

use std::rc::Rc;

use rustix::io::Errno;

use crate::overlay::Node;
use crate::procfs::ProcNode;
use crate::volume::{Descent, VolumeNode};
use crate::{FileKind, PATH_MAX, ProcView, Result, Stat, TimeUpdate, XattrSet};

/// Device numbers that one mount may use.
pub(crate) const DEVICES_PER_MOUNT: u64 = 256;

#[derive(Debug)]
pub(crate) struct Mount {
    /// Place in the list of mounts; 0 is the root.
    pub(crate) index: usize,
    pub(crate) read_only: bool,
    /// The node that it covers; `None` for the root.
    pub(crate) covers: Option<Location>,
    pub(crate) root: NodeRef,
    /// File system type and source as `/proc/self/mountinfo` prints them.
    pub(crate) fs_type: &'static str,
    pub(crate) source: &'static str,
}

impl Mount {
    /// Identifier in mountinfo. Linux numbers from 1, the root of a namespace rarely lower.
    pub(crate) fn id(&self) -> u64 {
        self.index as u64 + 21
    }

    /// Device number of the mount's nodes: major 0, as all file systems without a device.
    pub(crate) fn device(&self, index: u64) -> u64 {
        let minor = (self.index as u64 + 1) * DEVICES_PER_MOUNT + index;
        // `makedev` with major 0: the minor's low 8 bits, the others 12 bits further up.
        minor & 0xff | (minor & !0xff) << 12
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            Err(Errno::ROFS)
        } else {
            Ok(())
        }
    }
}

/// A node of the guest's tree, and the mount through which it was reached. Cheap to clone.
///
/// It stays valid when the node is renamed or (outside volumes) unlinked.
#[derive(Clone, Debug)]
pub struct Location {
    pub(crate) mount: Rc<Mount>,
    pub(crate) node: NodeRef,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeRef {
    Tree(Rc<Node>),
    Volume(VolumeNode),
    Proc(ProcNode),
}

impl Location {
    pub(crate) fn root_of(mount: &Rc<Mount>) -> Location {
        Location {
            mount: Rc::clone(mount),
            node: mount.root.clone(),
        }
    }

    /// Another node of the same mount.
    pub(crate) fn with(&self, node: NodeRef) -> Location {
        Location {
            mount: Rc::clone(&self.mount),
            node,
        }
    }

    /// Whether both are the same node, reached through the same mount.
    pub fn is_same(&self, other: &Location) -> bool {
        self.mount.index == other.mount.index && self.node.is_same(&other.node)
    }

    /// Whether the mount it was reached through is read-only.
    pub fn is_read_only(&self) -> bool {
        self.mount.read_only
    }

    pub(crate) fn is_mount_root(&self) -> bool {
        self.node.is_same(&self.mount.root)
    }

    /// The type of the node, on a volume as it was when it was looked up.
    pub fn kind(&self) -> FileKind {
        match &self.node {
            NodeRef::Tree(node) => node.kind(),
            NodeRef::Volume(node) => node.kind(),
            NodeRef::Proc(node) => node.kind(),
        }
    }

    pub(crate) fn require_directory(&self) -> Result<()> {
        match self.kind() {
            FileKind::Directory => Ok(()),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The node `name` in this directory, mounts left aside. Not for `.` and `..`.
    /// `descent` is that of the walk.
    pub(crate) fn child(
        &self,
        view: &dyn ProcView,
        name: &[u8],
        descent: &mut Descent,
    ) -> Result<Location> {
        let node = match &self.node {
            NodeRef::Tree(node) => NodeRef::Tree(node.child(name)?),
            NodeRef::Volume(node) => NodeRef::Volume(node.child(name, descent)?),
            NodeRef::Proc(node) => NodeRef::Proc(node.child(view, name)?),
        };
        Ok(self.with(node))
    }

    /// The directory above, on the far side of a mount point; the root is its own.
    pub(crate) fn parent(&self) -> Result<Location> {
        let mut place = self.clone();
        while place.is_mount_root() {
            match &place.mount.covers {
                Some(covers) => place = covers.clone(),
                None => return Ok(place),
            }
        }
        let node = match &place.node {
            NodeRef::Tree(node) => NodeRef::Tree(node.parent().ok_or(Errno::NOENT)?),
            NodeRef::Volume(node) => NodeRef::Volume(node.parent()),
            NodeRef::Proc(node) => NodeRef::Proc(node.parent()),
        };
        Ok(place.with(node))
    }

    pub(crate) fn stat(&self, view: &dyn ProcView) -> Result<Stat> {
        let stat = match &self.node {
            NodeRef::Tree(node) => node.stat(),
            NodeRef::Volume(node) => node.stat()?,
            NodeRef::Proc(node) => node.stat(view),
        };
        Ok(self.localise(stat))
    }

    /// Puts the mount into a node's attributes.
    pub(crate) fn localise(&self, mut stat: Stat) -> Stat {
        stat.dev = self.mount.device(stat.dev);
        stat.mount_id = self.mount.id();
        stat.attributes_mask |= libc::STATX_ATTR_MOUNT_ROOT as u64;
        if self.is_mount_root() {
            stat.attributes |= libc::STATX_ATTR_MOUNT_ROOT as u64;
        }
        stat
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<()> {
        self.mount.check_writable()?;
        match &self.node {
            NodeRef::Tree(node) => node.set_mode(mode),
            NodeRef::Volume(node) => node.set_mode(mode),
            NodeRef::Proc(_) => Err(Errno::PERM),
        }
    }

    pub(crate) fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.mount.check_writable()?;
        match &self.node {
            NodeRef::Tree(node) => node.set_owner(uid, gid),
            NodeRef::Volume(node) => node.set_owner(uid, gid),
            NodeRef::Proc(_) => Err(Errno::PERM),
        }
    }

    pub(crate) fn set_times(&self, atime: TimeUpdate, mtime: TimeUpdate) -> Result<()> {
        self.mount.check_writable()?;
        match &self.node {
            NodeRef::Tree(node) => node.set_times(atime, mtime),
            NodeRef::Volume(node) => node.set_times(atime, mtime),
            NodeRef::Proc(_) => Err(Errno::PERM),
        }
    }

    pub(crate) fn get_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        match &self.node {
            NodeRef::Tree(node) => node.get_xattr(name),
            NodeRef::Volume(_) | NodeRef::Proc(_) => Err(Errno::OPNOTSUPP),
        }
    }

    pub(crate) fn set_xattr(&self, name: &[u8], value: &[u8], how: XattrSet) -> Result<()> {
        self.mount.check_writable()?;
        match &self.node {
            NodeRef::Tree(node) => node.set_xattr(name, value, how),
            NodeRef::Volume(_) | NodeRef::Proc(_) => Err(Errno::OPNOTSUPP),
        }
    }

    pub(crate) fn list_xattr(&self) -> Result<Vec<u8>> {
        match &self.node {
            NodeRef::Tree(node) => Ok(node.list_xattr()),
            NodeRef::Volume(_) | NodeRef::Proc(_) => Ok(Vec::new()),
        }
    }

    pub(crate) fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.mount.check_writable()?;
        match &self.node {
            NodeRef::Tree(node) => node.remove_xattr(name),
            NodeRef::Volume(_) | NodeRef::Proc(_) => Err(Errno::OPNOTSUPP),
        }
    }

    /// Absolute path in the guest, `" (deleted)"` behind it if the node has no name any more.
    /// Of a path that is too long for the guest to use, `(too long)` and its end.
    pub fn path(&self) -> Vec<u8> {
        let (path, whole) = self.end_of_path();
        match whole {
            true => path,
            false => [b"(too long)", &path[..]].concat(),
        }
    }

    /// The same; ENAMETOOLONG if it does not fit `PATH_MAX`, as `d_path` of the kernel has it.
    pub(crate) fn whole_path(&self) -> Result<Vec<u8>> {
        match self.end_of_path() {
            (path, true) => Ok(path),
            (_, false) => Err(Errno::NAMETOOLONG),
        }
    }

    /// The path, or enough of its end to see that it is too long, and whether it is whole. A
    /// guest can nest directories as deep as its quota goes: no caller pays for all of them.
    fn end_of_path(&self) -> (Vec<u8>, bool) {
        // Written from the leaf upwards, backwards.
        let mut reversed = Vec::new();
        let mut deleted = false;
        let mut place = self.clone();
        while reversed.len() < PATH_MAX {
            if place.is_mount_root() {
                match &place.mount.covers {
                    Some(covers) => place = covers.clone(),
                    None => break,
                }
                continue;
            }
            let above = match &place.node {
                NodeRef::Tree(node) => {
                    deleted |= node.is_removed();
                    if let Some(place) = node.place.borrow().as_ref() {
                        reversed.extend(place.name.iter().rev());
                    }
                    node.parent().map(NodeRef::Tree)
                }
                NodeRef::Volume(node) => {
                    reversed.extend(node.path().iter().rev());
                    Some(place.mount.root.clone())
                }
                NodeRef::Proc(node) => {
                    reversed.extend(node.name().iter().rev());
                    Some(NodeRef::Proc(node.parent()))
                }
            };
            reversed.push(b'/');
            match above {
                Some(node) => place = place.with(node),
                None => break,
            }
        }
        if reversed.is_empty() {
            reversed.push(b'/');
        }
        let whole = reversed.len() < PATH_MAX;
        reversed.reverse();
        if deleted {
            reversed.extend_from_slice(b" (deleted)");
        }
        (reversed, whole)
    }
}

impl NodeRef {
    pub(crate) fn is_same(&self, other: &NodeRef) -> bool {
        match (self, other) {
            (NodeRef::Tree(a), NodeRef::Tree(b)) => Rc::ptr_eq(a, b),
            (NodeRef::Volume(a), NodeRef::Volume(b)) => a.path() == b.path(),
            (NodeRef::Proc(a), NodeRef::Proc(b)) => a == b,
            _ => false,
        }
    }
}
