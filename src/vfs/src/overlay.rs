//! The tree of nodes that lies over the image.
//!
//! A [`Node`] is one file, directory, link or special file. Directories hold an [`Entry`] for
//! each name that was looked up or changed; what they do not hold is asked of the image below.
//! So the tree is the dentry cache and the writable layer at once:
//!
//! | entry            | `node` | `shadows` | kept                                        |
//! |------------------|--------|-----------|---------------------------------------------|
//! | cached positive  | clean  | yes       | until the cache is full and nobody holds it |
//! | cached negative  | none   | no        | until the cache is full                     |
//! | changed          | pinned | yes       | always                                      |
//! | created          | pinned | no        | always                                      |
//! | whiteout         | none   | yes       | always                                      |
//!
//! Invariants: a directory with entries is never evicted; a node's `lower` never changes (it names
//! the place in the image, wherever the node is moved); a directory without `lower`, or an
//! opaque one, has exactly the entries it holds; pinned nodes and whiteouts are charged.

mod attributes;
mod cache;
mod contents;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use rustix::io::Errno;

use crate::budget::{Budget, Charge};
use crate::host_io::Listing;
use crate::image::{Found, Image};
use crate::memory_file::MemoryFile;
use crate::{FileKind, NAME_MAX, Result, Stat, Timestamp};

/// Bytes charged for a pinned node: what it costs the host.
const NODE_COST: u64 = 512;
/// Bytes charged for a name or a whiteout, besides its length.
const ENTRY_COST: u64 = 128;
/// Set in the inode numbers of created nodes, and in no number of a local file system.
const CREATED_INO: u64 = 1 << 63;
/// Most names of one file (`EXT4_LINK_MAX`).
pub(crate) const MAX_LINKS: u32 = 65_000;
/// A name; shared between the directory and the node it names.
pub(crate) type Name = Rc<[u8]>;

/// What the nodes of one tree share.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) image: Option<Image>,
    /// Bytes of the writable layer.
    pub(crate) bytes: Rc<Budget>,
    /// Nodes of the writable layer.
    pub(crate) nodes: Rc<Budget>,
    /// Bytes of directory listings that are being read.
    pub(crate) listings: Rc<Budget>,
    /// `f_type` that statfs reports.
    pub(crate) magic: i64,
    /// Whether character devices in it can be opened: only in `/dev`.
    pub(crate) devices: bool,
    next_ino: Cell<u64>,
    cached: Cell<usize>,
    cache_bound: Cell<usize>,
    root: RefCell<Weak<Node>>,
}

/// How a tree is made.
pub(crate) struct TreeOptions {
    pub(crate) image: Option<Image>,
    pub(crate) bytes: Rc<Budget>,
    pub(crate) nodes: Rc<Budget>,
    pub(crate) listings: Rc<Budget>,
    pub(crate) magic: i64,
    pub(crate) devices: bool,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) tree: Rc<Tree>,
    pub(crate) attr: Cell<Stat>,
    /// The name under which it was found last; for a directory its only one.
    pub(crate) place: RefCell<Option<Place>>,
    /// Place in the image.
    lower: Option<Box<[u8]>>,
    /// A directory whose contents in the image do not show.
    opaque: Cell<bool>,
    /// A file that was made without a name and may be given one.
    pub(crate) linkable: Cell<bool>,
    pinned: Cell<bool>,
    /// Number of the mount that covers it.
    pub(crate) covered: Cell<Option<usize>>,
    pub(crate) body: Body,
    pub(crate) xattrs: RefCell<Xattrs>,
    charges: RefCell<Option<(Charge, Charge)>>,
}

/// Values of extended attributes, and what they are charged, by name.
pub(crate) type Xattrs = BTreeMap<Vec<u8>, (Vec<u8>, Charge)>;

#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) parent: Weak<Node>,
    pub(crate) name: Name,
}

#[derive(Debug)]
pub(crate) enum Body {
    Directory(RefCell<Entries>),
    Regular(RefCell<Contents>),
    Symlink(OnceCell<Vec<u8>>),
    Special,
}

pub(crate) type Entries = BTreeMap<Name, Entry>;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) node: Option<Rc<Node>>,
    /// The image's directory has this name, too.
    pub(crate) shadows: bool,
    /// What the name is charged, if it is a change.
    _charge: Option<Charge>,
}

#[derive(Debug)]
pub(crate) enum Contents {
    /// Those of the image.
    Lower,
    /// Changed: all of them are in memory.
    Memory(MemoryFile),
}

/// What is to be created.
pub(crate) enum NewNode<'a> {
    Directory,
    Regular,
    Symlink(&'a [u8]),
    /// FIFO, socket or device; `mode` says which.
    Special {
        rdev: u64,
    },
}

impl Tree {
    /// Makes a tree and its root directory, which is that of the image if there is one.
    pub(crate) fn create(options: TreeOptions) -> Result<Rc<Node>> {
        let found = match &options.image {
            Some(image) => image.look(b"")?,
            None => Found {
                stat: new_attr(CREATED_INO, libc::S_IFDIR | 0o755),
                is_kernel: false,
            },
        };
        let lower = options.image.is_some().then(|| Box::from(&b""[..]));
        let tree = Rc::new(Tree {
            image: options.image,
            bytes: options.bytes,
            nodes: options.nodes,
            listings: options.listings,
            magic: options.magic,
            devices: options.devices,
            next_ino: Cell::new(CREATED_INO + 1),
            cached: Cell::new(0),
            cache_bound: Cell::new(cache::MAX_CACHED),
            root: RefCell::new(Weak::new()),
        });
        let root = Node::new(&tree, found.stat, lower);
        root.opaque.set(found.is_kernel);
        root.pinned.set(true);
        *tree.root.borrow_mut() = Rc::downgrade(&root);
        Ok(root)
    }

    fn new_ino(&self) -> u64 {
        let ino = self.next_ino.get();
        self.next_ino.set(ino.wrapping_add(1) | CREATED_INO);
        ino
    }
}

fn new_attr(ino: u64, mode: u32) -> Stat {
    let now = Timestamp::now();
    Stat {
        ino,
        mode,
        nlink: 1 + u32::from(mode & libc::S_IFMT == libc::S_IFDIR),
        blksize: 4096,
        atime: now,
        mtime: now,
        ctime: now,
        btime: now,
        ..Stat::default()
    }
}

impl Node {
    fn new(tree: &Rc<Tree>, attr: Stat, lower: Option<Box<[u8]>>) -> Rc<Node> {
        let body = match attr.kind() {
            FileKind::Directory => Body::Directory(RefCell::default()),
            FileKind::Symlink => Body::Symlink(OnceCell::new()),
            FileKind::Regular if lower.is_some() => Body::Regular(RefCell::new(Contents::Lower)),
            FileKind::Regular => {
                let file = MemoryFile::new(&tree.bytes);
                Body::Regular(RefCell::new(Contents::Memory(file)))
            }
            _ => Body::Special,
        };
        Rc::new(Node {
            tree: Rc::clone(tree),
            attr: Cell::new(attr),
            place: RefCell::new(None),
            lower,
            opaque: Cell::new(false),
            linkable: Cell::new(false),
            pinned: Cell::new(false),
            covered: Cell::new(None),
            body,
            xattrs: RefCell::default(),
            charges: RefCell::new(None),
        })
    }

    pub(crate) fn kind(&self) -> FileKind {
        self.attr.get().kind()
    }

    pub(crate) fn entries(&self) -> Option<&RefCell<Entries>> {
        match &self.body {
            Body::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    /// The image and the place in it where the contents of this node come from.
    fn lower_place(&self) -> Option<(&Image, &[u8])> {
        match &self.lower {
            Some(lower) if !self.opaque.get() => Some((self.tree.image.as_ref()?, lower)),
            _ => None,
        }
    }

    /// Shows a directory of the image as an empty one.
    pub(crate) fn hide_contents(&self) {
        self.opaque.set(true);
        self.update(|attr| attr.nlink = attr.nlink.min(2));
    }

    /// Looks up `name`, which is not `.` or `..`.
    pub(crate) fn child(self: &Rc<Node>, name: &[u8]) -> Result<Rc<Node>> {
        let entries = self.entries().ok_or(Errno::NOTDIR)?;
        if name.len() > NAME_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        if let Some(entry) = entries.borrow().get(name) {
            let node = entry.node.clone().ok_or(Errno::NOENT)?;
            node.set_place(self, name);
            return Ok(node);
        }
        let Some((image, lower)) = self.lower_place() else {
            return Err(Errno::NOENT);
        };
        let path = join(lower, name);
        match image.look(&path) {
            Ok(found) => {
                let node = Node::new(&self.tree, found.stat, Some(path.into()));
                node.opaque.set(found.is_kernel);
                self.remember(name, Some(Rc::clone(&node)), true);
                node.set_place(self, name);
                Ok(node)
            }
            Err(Errno::NOENT) => {
                self.remember(name, None, false);
                Err(Errno::NOENT)
            }
            Err(error) => Err(error),
        }
    }

    fn remember(&self, name: &[u8], node: Option<Rc<Node>>, shadows: bool) {
        self.tree.count_cached();
        if let Some(entries) = self.entries() {
            let entry = Entry {
                node,
                shadows,
                _charge: None,
            };
            entries.borrow_mut().insert(Name::from(name), entry);
        }
    }

    /// Notes where the node was found, unless it is noted already.
    pub(crate) fn set_place(&self, parent: &Rc<Node>, name: &[u8]) {
        let mut place = self.place.borrow_mut();
        let known = place.as_ref().is_some_and(|place| {
            *place.name == *name && std::ptr::eq(place.parent.as_ptr(), Rc::as_ptr(parent))
        });
        if !known {
            *place = Some(Place {
                parent: Rc::downgrade(parent),
                name: Name::from(name),
            });
        }
    }

    pub(crate) fn parent(&self) -> Option<Rc<Node>> {
        self.place.borrow().as_ref()?.parent.upgrade()
    }

    /// Makes the node part of the writable layer. The directories above stay in memory because
    /// they hold an entry that cannot be evicted.
    pub(crate) fn pin(&self) -> Result<()> {
        if self.pinned.get() {
            return Ok(());
        }
        self.charge()?;
        self.pinned.set(true);
        self.uncount_cached();
        Ok(())
    }

    fn charge(&self) -> Result<()> {
        let link = match &self.body {
            Body::Symlink(target) => target.get().map_or(0, Vec::len),
            _ => 0,
        };
        let bytes = NODE_COST + link as u64;
        let charges = (
            Charge::of(&self.tree.nodes, 1)?,
            Charge::of(&self.tree.bytes, bytes)?,
        );
        *self.charges.borrow_mut() = Some(charges);
        Ok(())
    }

    /// Whether the directory (or file) has been removed from the tree.
    pub(crate) fn is_removed(&self) -> bool {
        self.attr.get().nlink == 0
    }

    /// Makes a node without a name.
    pub(crate) fn create_unlinked(
        tree: &Rc<Tree>,
        mode: u32,
        new: &NewNode<'_>,
    ) -> Result<Rc<Node>> {
        let attr = new_attr(tree.new_ino(), mode);
        let node = Node::new(tree, attr, None);
        match (new, &node.body) {
            (NewNode::Symlink(target), Body::Symlink(cell)) => {
                let _ = cell.set(target.to_vec());
                node.update(|attr| attr.size = target.len() as u64);
            }
            (NewNode::Special { rdev }, _) => node.update(|attr| attr.rdev = *rdev),
            (NewNode::Directory, _) => node.update(|attr| {
                attr.size = 4096;
                attr.blocks = 8;
            }),
            _ => {}
        }
        node.charge()?;
        node.pinned.set(true);
        node.update(|attr| attr.nlink = 0);
        Ok(node)
    }

    /// Creates `name`, which the caller has found not to exist.
    pub(crate) fn create(
        self: &Rc<Node>,
        name: &[u8],
        mode: u32,
        new: &NewNode<'_>,
    ) -> Result<Rc<Node>> {
        if self.is_removed() {
            return Err(Errno::NOENT);
        }
        let charge = self.charge_name(name)?;
        let directory = matches!(new, NewNode::Directory);
        let parent = self.attr.get();
        let inherit = parent.mode & libc::S_ISGID;
        let mode = if directory { mode | inherit } else { mode };
        let node = Node::create_unlinked(&self.tree, mode, new)?;
        node.update(|attr| {
            attr.dev = parent.dev;
            if inherit != 0 {
                attr.gid = parent.gid;
            }
            attr.nlink = u32::from(directory);
        });
        self.attach(name, &node, charge)?;
        Ok(node)
    }

    /// Adds a name for `node`, which is pinned; a node that has the name loses it. Cannot fail
    /// if this directory is pinned.
    pub(crate) fn attach(
        self: &Rc<Node>,
        name: &[u8],
        node: &Rc<Node>,
        charge: Charge,
    ) -> Result<()> {
        let entries = self.entries().ok_or(Errno::NOTDIR)?;
        self.pin()?;
        let key = Name::from(name);
        let old = entries.borrow_mut().remove(&key);
        let shadows = old.as_ref().is_some_and(|entry| entry.shadows);
        if old.is_some_and(|entry| entry.is_clean()) {
            self.uncount_cached();
        }
        let entry = Entry {
            node: Some(Rc::clone(node)),
            shadows,
            _charge: Some(charge),
        };
        entries.borrow_mut().insert(Rc::clone(&key), entry);
        *node.place.borrow_mut() = Some(Place {
            parent: Rc::downgrade(self),
            name: key,
        });
        let is_directory = node.kind() == FileKind::Directory;
        node.update(|attr| attr.nlink = attr.nlink.saturating_add(1));
        self.touch(|attr| {
            if is_directory && attr.nlink >= 2 {
                attr.nlink = attr.nlink.saturating_add(1);
            }
        });
        Ok(())
    }

    /// Takes the name away; returns the node, whose link count the caller adjusts. Nothing has
    /// changed if that fails.
    pub(crate) fn detach(self: &Rc<Node>, name: &[u8]) -> Result<Rc<Node>> {
        let entries = self.entries().ok_or(Errno::NOTDIR)?;
        let node = self.child(name)?;
        self.pin()?;
        let shadows = entries.borrow().get(name).is_some_and(|e| e.shadows);
        let whiteout = match shadows {
            true => Some(Entry {
                node: None,
                shadows,
                _charge: Some(self.charge_name(name)?),
            }),
            false => None,
        };
        let mut entries = entries.borrow_mut();
        let old = match whiteout {
            Some(entry) => entries.insert(Name::from(name), entry),
            None => entries.remove(name),
        };
        if old.is_some_and(|entry| entry.is_clean()) {
            self.uncount_cached();
        }
        drop(entries);
        self.leave(&node);
        Ok(node)
    }

    /// What a name, or its absence, costs the writable layer.
    pub(crate) fn charge_name(&self, name: &[u8]) -> Result<Charge> {
        Charge::of(&self.tree.bytes, ENTRY_COST + name.len() as u64)
    }

    /// Notes that `node` is no longer in this directory.
    pub(crate) fn leave(&self, node: &Node) {
        let is_directory = node.kind() == FileKind::Directory;
        self.touch(|attr| {
            if is_directory && attr.nlink > 2 {
                attr.nlink -= 1;
            }
        });
    }

    /// Removes a name and, with the last one, the node.
    pub(crate) fn unlink(self: &Rc<Node>, name: &[u8]) -> Result<()> {
        self.detach(name)?.drop_link();
        Ok(())
    }

    /// One name less.
    pub(crate) fn drop_link(&self) {
        let is_directory = self.kind() == FileKind::Directory;
        self.update(|attr| {
            attr.nlink = match is_directory {
                true => 0,
                false => attr.nlink.saturating_sub(1),
            };
            attr.ctime = Timestamp::now();
        });
    }

    /// Whether a directory has no entries but `.` and `..`.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        let entries = self.entries().ok_or(Errno::NOTDIR)?.borrow();
        if entries.values().any(|entry| entry.node.is_some()) {
            return Ok(false);
        }
        let Some((image, lower)) = self.lower_place() else {
            return Ok(true);
        };
        let listing = image.list(lower, &self.tree.listings)?;
        Ok(listing
            .iter()
            .all(|(_, _, name)| name == b"." || name == b".." || entries.contains_key(name)))
    }

    /// The entries: those of the image in its order, then the others.
    pub(crate) fn list(&self, parent_ino: u64) -> Result<Listing> {
        let entries = self.entries().ok_or(Errno::NOTDIR)?.borrow();
        let mut listing = Listing::new(&self.tree.listings);
        let own = self.attr.get().ino;
        let below = match self.lower_place() {
            Some((image, lower)) => Some(image.list(lower, &self.tree.listings)?),
            None => None,
        };
        match &below {
            Some(below) => {
                for (ino, kind, name) in below.iter() {
                    match (name, entries.get(name)) {
                        (b".", _) => listing.push(own, kind, name)?,
                        (b"..", _) => listing.push(parent_ino, kind, name)?,
                        (_, Some(entry)) => {
                            if let Some(node) = &entry.node {
                                listing.push(node.attr.get().ino, node.kind(), name)?;
                            }
                        }
                        (_, None) => listing.push(ino, kind, name)?,
                    }
                }
            }
            None => {
                listing.push(own, FileKind::Directory, b".")?;
                listing.push(parent_ino, FileKind::Directory, b"..")?;
            }
        }
        for (name, entry) in entries.iter() {
            if let (Some(node), false) = (&entry.node, entry.shadows && below.is_some()) {
                listing.push(node.attr.get().ino, node.kind(), name)?;
            }
        }
        Ok(listing)
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

impl Drop for Node {
    /// A guest can nest directories deeper than the host's stack goes: unwinds them in a loop.
    fn drop(&mut self) {
        let Body::Directory(entries) = &mut self.body else {
            return;
        };
        let mut pending = vec![std::mem::take(entries.get_mut())];
        while let Some(entries) = pending.pop() {
            for node in entries.into_values().filter_map(|entry| entry.node) {
                if let Some(mut node) = Rc::into_inner(node)
                    && let Body::Directory(entries) = &mut node.body
                {
                    pending.push(std::mem::take(entries.get_mut()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
