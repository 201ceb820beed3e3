//! Opening files.

use std::rc::Rc;

use rustix::io::Errno;

use crate::devfs::{Device, DeviceFile};
use crate::mount::{Location, NodeRef};
use crate::overlay::{NewNode, Node, Place};
use crate::path_handle::PathHandle;
use crate::proc_file::{ProcDirectory, ProcFile};
use crate::procfs::ProcNode;
use crate::tree_file::{TreeDirectory, TreeFile};
use crate::vfs::check_resolve;
use crate::volume::{VolumeDirectory, VolumeFile, VolumeNode};
use crate::walk::{Last, Resolved, Slash, Target, Walk};
use crate::{FileKind, OpenFlags, Opened, ProcView, ResolveFlags, Result, Vfs};

/// Attempts to open or create a file on a volume while others remove and create it.
const RACES: u32 = 16;

impl Vfs {
    /// `openat2`. The umask has been applied to `mode`, the permissions of a new file.
    pub fn open(
        &mut self,
        view: &dyn ProcView,
        base: &Location,
        path: &[u8],
        flags: OpenFlags,
        mode: u32,
        resolve: ResolveFlags,
    ) -> Result<Opened> {
        check_resolve(resolve)?;
        let flags = normalise(flags)?;
        let creates = flags.contains(OpenFlags::CREAT);
        let exclusive = creates && flags.contains(OpenFlags::EXCL);
        let walk = Walk {
            follow: !exclusive && !flags.contains(OpenFlags::NOFOLLOW),
            slash: if creates {
                Slash::Refused
            } else {
                Slash::Follows
            },
            resolve,
        };
        for _ in 0..RACES {
            let resolved = self.resolve(view, base, path, walk)?;
            match self.open_resolved(view, resolved, flags, mode) {
                Err(Errno::STALE) => {}
                opened => return opened,
            }
        }
        Err(Errno::BUSY)
    }

    fn open_resolved(
        &mut self,
        view: &dyn ProcView,
        resolved: Resolved,
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Opened> {
        let creates = flags.contains(OpenFlags::CREAT);
        let exclusive = creates && flags.contains(OpenFlags::EXCL);
        let wants_directory = resolved.slash || flags.contains(OpenFlags::DIRECTORY);
        match resolved.target {
            Target::Missing if !creates => Err(Errno::NOENT),
            Target::Missing => match &resolved.last {
                Last::Name(name) => create(&resolved.parent, name, flags, mode),
                _ => Err(Errno::ISDIR),
            },
            Target::Node(_) | Target::Descriptor(_) if exclusive => Err(Errno::EXIST),
            Target::Descriptor(fd) if flags.contains(OpenFlags::PATH) => {
                let location = view.fd(fd).ok_or(Errno::NOENT)?.location;
                match location {
                    Some(place) => path_handle(view, place, wants_directory),
                    None => Ok(Opened::Descriptor(fd)),
                }
            }
            Target::Descriptor(fd) => Ok(Opened::Descriptor(fd)),
            Target::Node(place) if creates && place.kind() == FileKind::Directory => {
                Err(Errno::ISDIR)
            }
            Target::Node(place) => self.open_place(view, place, flags, mode, wants_directory),
        }
    }

    /// Opens a node again, as opening `/proc/self/fd/N` does.
    pub fn reopen(
        &mut self,
        view: &dyn ProcView,
        place: &Location,
        flags: OpenFlags,
    ) -> Result<Opened> {
        let flags = normalise(flags - OpenFlags::CREAT)?;
        let wants_directory = flags.contains(OpenFlags::DIRECTORY);
        self.open_place(view, place.clone(), flags, 0, wants_directory)
    }

    fn open_place(
        &mut self,
        view: &dyn ProcView,
        place: Location,
        flags: OpenFlags,
        mode: u32,
        wants_directory: bool,
    ) -> Result<Opened> {
        if flags.contains(OpenFlags::PATH) {
            return path_handle(view, place, wants_directory);
        }
        let kind = place.kind();
        match kind {
            FileKind::Symlink => {
                return Err(if wants_directory {
                    Errno::NOTDIR
                } else {
                    Errno::LOOP
                });
            }
            FileKind::Directory => {}
            _ if wants_directory => return Err(Errno::NOTDIR),
            _ => {}
        }
        if flags.is_tmpfile() {
            return temporary(&place, flags, mode);
        }
        let changes = flags.writes() || flags.contains(OpenFlags::TRUNC);
        if kind == FileKind::Directory && changes {
            return Err(Errno::ISDIR);
        }
        // Whatever the type: on a volume the node may be another one when it is opened.
        if changes {
            place.mount.check_writable()?;
        }
        match place.node.clone() {
            NodeRef::Tree(node) => open_node(place, node, flags),
            NodeRef::Volume(node) => open_on_volume(place, node, flags),
            NodeRef::Proc(node) => self.open_proc(view, place, node, flags),
        }
    }

    fn open_proc(
        &mut self,
        view: &dyn ProcView,
        location: Location,
        node: ProcNode,
        flags: OpenFlags,
    ) -> Result<Opened> {
        if let ProcNode::Directory(directory) = node {
            let listings = &self.tree.listings;
            let opened = ProcDirectory::open(location, directory, listings, view)?;
            return Ok(Opened::File(Box::new(opened)));
        }
        if flags.writes() {
            return Err(Errno::ACCESS);
        }
        let stat = location.stat(view)?;
        let text = node.text(&self.mounts, &self.boot_id, view)?;
        let opened = ProcFile::open(location, stat, text, &self.tree.listings)?;
        Ok(Opened::File(Box::new(opened)))
    }
}

/// Checks flags that exclude each other, and drops those that others make meaningless.
fn normalise(flags: OpenFlags) -> Result<OpenFlags> {
    if flags.contains(OpenFlags::PATH) {
        let kept = OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW;
        return Ok(flags & (kept | OpenFlags::CLOEXEC));
    }
    // `__O_TMPFILE` without O_DIRECTORY, or read-only, means nothing.
    let bare = OpenFlags::TMPFILE - OpenFlags::DIRECTORY;
    if flags.contains(bare) {
        let sound = flags.is_tmpfile() && flags.writes() && !flags.contains(OpenFlags::CREAT);
        if !sound {
            return Err(Errno::INVAL);
        }
    }
    // Since Linux 6.3 this combination is EINVAL; before, it created a regular file.
    if flags.contains(OpenFlags::CREAT | OpenFlags::DIRECTORY) {
        return Err(Errno::INVAL);
    }
    Ok(flags)
}

fn path_handle(view: &dyn ProcView, location: Location, directory: bool) -> Result<Opened> {
    let stat = location.stat(view)?;
    if directory && stat.kind() != FileKind::Directory {
        return Err(Errno::NOTDIR);
    }
    Ok(Opened::File(Box::new(PathHandle { location, stat })))
}

/// Creates the regular file `name`, found not to exist.
fn create(parent: &Location, name: &[u8], flags: OpenFlags, mode: u32) -> Result<Opened> {
    parent.mount.check_writable()?;
    match &parent.node {
        NodeRef::Tree(directory) => {
            let mode = libc::S_IFREG | mode & 0o7777;
            let node = directory.create(name, mode, &NewNode::Regular)?;
            let place = parent.with(NodeRef::Tree(Rc::clone(&node)));
            Ok(Opened::File(Box::new(TreeFile::open(place, node)?)))
        }
        NodeRef::Volume(directory) => match directory.create(name, flags, mode) {
            Ok((node, fd)) => {
                let location = parent.with(NodeRef::Volume(node));
                Ok(Opened::File(Box::new(VolumeFile { location, fd })))
            }
            // Somebody was quicker: look again, unless that is an error for the guest.
            Err(Errno::EXIST) if !flags.contains(OpenFlags::EXCL) => Err(Errno::STALE),
            Err(error) => Err(error),
        },
        NodeRef::Proc(_) => Err(Errno::NOENT),
    }
}

/// `O_TMPFILE`.
fn temporary(directory: &Location, flags: OpenFlags, mode: u32) -> Result<Opened> {
    directory.require_directory()?;
    directory.mount.check_writable()?;
    let NodeRef::Tree(parent) = &directory.node else {
        return Err(Errno::OPNOTSUPP);
    };
    let mode = libc::S_IFREG | mode & 0o7777;
    let node = Node::create_unlinked(&parent.tree, mode, &NewNode::Regular)?;
    node.linkable.set(!flags.contains(OpenFlags::EXCL));
    *node.place.borrow_mut() = Some(Place {
        parent: Rc::downgrade(parent),
        name: format!("#{}", node.attr.get().ino).into_bytes().into(),
    });
    let place = directory.with(NodeRef::Tree(Rc::clone(&node)));
    Ok(Opened::File(Box::new(TreeFile::open(place, node)?)))
}

fn open_node(place: Location, node: Rc<Node>, flags: OpenFlags) -> Result<Opened> {
    match node.kind() {
        FileKind::Directory => Ok(Opened::File(Box::new(TreeDirectory::open(place, node)))),
        FileKind::Regular => {
            if flags.contains(OpenFlags::TRUNC) {
                node.truncate(0)?;
            } else if flags.writes() {
                node.copy_up(false)?;
            }
            Ok(Opened::File(Box::new(TreeFile::open(place, node)?)))
        }
        FileKind::CharDevice if node.tree.devices => {
            match Device::from_number(node.attr.get().rdev) {
                Some(Device::Terminal) => Ok(Opened::Terminal),
                Some(device) => Ok(Opened::File(Box::new(DeviceFile {
                    location: place,
                    node,
                    device,
                }))),
                None => Err(Errno::NXIO),
            }
        }
        // As on a mount with `nodev`.
        FileKind::CharDevice | FileKind::BlockDevice => Err(Errno::ACCESS),
        _ => Err(Errno::NXIO),
    }
}

fn open_on_volume(location: Location, node: VolumeNode, flags: OpenFlags) -> Result<Opened> {
    if node.kind() == FileKind::Directory {
        let directory = VolumeDirectory::open(location, node)?;
        return Ok(Opened::File(Box::new(directory)));
    }
    match node.open_regular(flags) {
        Ok(fd) => Ok(Opened::File(Box::new(VolumeFile { location, fd }))),
        // It was removed since it was found.
        Err(Errno::NOENT) if flags.contains(OpenFlags::CREAT) => Err(Errno::STALE),
        Err(error) => Err(error),
    }
}
