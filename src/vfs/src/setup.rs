//! What a tree is made of, and making it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use crate::budget::Budget;
use crate::host_io::{HostDir, is_on_kernel_file_system, statx_of};
use crate::image::Image;
use crate::mount::{Location, Mount, NodeRef};
use crate::overlay::{NewNode, Node, Tree, TreeOptions};
use crate::procfs::ProcNode;
use crate::volume::{Descent, VolumeNode, VolumeRoot};
use crate::{FileKind, devfs, proc_text, sysfs, walk};

/// Bytes of the writable layer unless configured otherwise.
pub const DEFAULT_OVERLAY_QUOTA: u64 = 256 << 20;

/// Bytes of quota per node that may be made; as ext4 has one inode per 16 KiB, but small files
/// are what agents write.
const BYTES_PER_NODE: u64 = 1024;
/// Bytes of directory listings that a guest may be reading at once.
const LISTING_BYTES: u64 = 64 << 20;
/// Bytes and nodes that setting up may take: `/dev`, `/sys`, mount points.
const SYSTEM_BYTES: u64 = 1 << 20;
const SYSTEM_NODES: u64 = 1024;
/// `OVERLAYFS_SUPER_MAGIC`, `TMPFS_MAGIC`, `SYSFS_MAGIC` of `linux/magic.h`.
const OVERLAYFS_MAGIC: i64 = 0x794c_7630;
const TMPFS_MAGIC: i64 = 0x0102_1994;
const SYSFS_MAGIC: i64 = 0x6265_6572;
/// Most symlinks on the way to a mount point, as in a guest's walk.
const MAX_SYMLINKS: u32 = 40;
/// Most volumes: the mounts are searched one by one.
const MAX_VOLUMES: usize = 256;

/// What the guest's tree is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// The image: a host directory, which must not change while the guest runs.
    pub root: PathBuf,
    /// Bytes of host memory that the guest's changes may take.
    pub overlay_quota: u64,
    /// Host directories and files that the guest sees as they are.
    pub volumes: Vec<Volume>,
    /// Absolute guest paths of directories whose contents in the image do not show. Paths that
    /// do not exist are ignored.
    pub hide: Vec<PathBuf>,
}

impl Config {
    /// The image `root` with the default quota, no volumes, nothing hidden.
    pub fn new(root: impl Into<PathBuf>) -> Config {
        Config {
            root: root.into(),
            overlay_quota: DEFAULT_OVERLAY_QUOTA,
            volumes: Vec::new(),
            hide: Vec::new(),
        }
    }
}

/// A host directory or regular file, mounted in the guest.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Where it is on the host; symlinks are followed. What the host has mounted below it is
    /// no part of it (EXDEV): that takes a volume of its own. `/proc`, `/sys` and their kind
    /// are refused.
    pub host: PathBuf,
    /// Where the guest sees it: an absolute path without `..`. What is missing there is made.
    pub guest: PathBuf,
    /// The guest cannot change it.
    pub read_only: bool,
}

/// Why a tree cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The image cannot be opened.
    #[error("cannot open image {path:?} as a directory: {reason}; name an existing directory")]
    Root {
        /// The image.
        path: PathBuf,
        /// What the host said.
        reason: Errno,
    },
    /// A volume's host path cannot be opened.
    #[error("cannot open volume {host:?}: {reason}; create it or correct the path")]
    VolumeHost {
        /// The path on the host.
        host: PathBuf,
        /// What the host said.
        reason: Errno,
    },
    /// A volume is neither directory nor regular file.
    #[error("volume {host:?} is neither a directory nor a regular file; only those can be mounted")]
    VolumeKind {
        /// The path on the host.
        host: PathBuf,
    },
    /// A volume is on `/proc`, `/sys` or another file system that shows the host's kernel.
    #[error(
        "volume {host:?} is on a file system of the host's kernel (/proc, /sys or their kind), \
         which would show the host to the guest; mount files of the host instead"
    )]
    VolumeKernel {
        /// The path on the host.
        host: PathBuf,
    },
    /// A guest path is relative, has a `..`, or is `/` where that makes no sense.
    #[error("guest path {guest:?} is not usable; give an absolute path below / without ..")]
    GuestPath {
        /// The path in the guest.
        guest: PathBuf,
    },
    /// Two volumes, or a volume and `/proc`, `/dev` or `/sys`, have the same place.
    #[error("something is mounted at {guest:?} already; give each volume its own guest path")]
    Duplicate {
        /// The path in the guest.
        guest: PathBuf,
    },
    /// The place of a directory is a file, or the reverse.
    #[error(
        "cannot mount {host:?} at {guest:?}: one is a directory and the other is not; \
         mount a directory on a directory and a file on a file"
    )]
    KindMismatch {
        /// The path on the host.
        host: PathBuf,
        /// The path in the guest.
        guest: PathBuf,
    },
    /// The mount point does not exist and cannot be made.
    #[error(
        "cannot make mount point {guest:?}: {reason}; create it in the image or volume \
         that holds it, or choose another guest path"
    )]
    MountPoint {
        /// The path in the guest.
        guest: PathBuf,
        /// Why not.
        reason: Errno,
    },
    /// More volumes than a guest may have.
    #[error("{count} volumes are too many; mount at most {MAX_VOLUMES}")]
    TooManyVolumes {
        /// How many were given.
        count: usize,
    },
    /// The tree itself cannot be made.
    #[error("cannot set up {what}: {reason}")]
    Internal {
        /// The part.
        what: &'static str,
        /// Why not.
        reason: Errno,
    },
}

/// What `Vfs` consists of.
pub(crate) struct Parts {
    pub(crate) mounts: Vec<Rc<Mount>>,
    pub(crate) hidden: Vec<Location>,
    pub(crate) tree: Rc<Tree>,
    pub(crate) boot_id: String,
}

pub(crate) fn build(config: &Config) -> Result<Parts, SetupError> {
    let count = config.volumes.len();
    if count > MAX_VOLUMES {
        return Err(SetupError::TooManyVolumes { count });
    }
    let bytes = Budget::new(SYSTEM_BYTES);
    let nodes = Budget::new(SYSTEM_NODES);
    let listings = Budget::new(LISTING_BYTES);
    let root = overlay_root(config, [&bytes, &nodes, &listings])?;
    let tree = Rc::clone(&root.tree);
    let mut builder = Builder {
        mounts: vec![Rc::new(Mount {
            index: 0,
            read_only: false,
            covers: None,
            root: NodeRef::Tree(root),
            fs_type: "overlay",
            source: "overlay",
        })],
    };
    let hidden = builder.hide(&config.hide)?;
    builder.mount_system([&bytes, &nodes, &listings])?;
    let mut volumes: Vec<&Volume> = config.volumes.iter().collect();
    // A volume inside another needs the other first.
    volumes.sort_by_key(|volume| volume.guest.components().count());
    for volume in volumes {
        builder.mount_volume(volume, &listings)?;
    }
    // What the guest did not make is not on its account.
    bytes.allow_more(config.overlay_quota);
    nodes.allow_more(config.overlay_quota / BYTES_PER_NODE);
    let boot_id = proc_text::random_uuid().map_err(|reason| SetupError::Internal {
        what: "the boot identifier",
        reason,
    })?;
    Ok(Parts {
        mounts: builder.mounts,
        hidden,
        tree,
        boot_id,
    })
}

fn overlay_root(config: &Config, budgets: [&Rc<Budget>; 3]) -> Result<Rc<Node>, SetupError> {
    let failed = |reason| SetupError::Root {
        path: config.root.clone(),
        reason,
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(&config.root, flags, Mode::empty()).map_err(failed)?;
    let image = Some(Image::new(root));
    make_tree(image, budgets, OVERLAYFS_MAGIC, false).map_err(failed)
}

fn make_tree(
    image: Option<Image>,
    [bytes, nodes, listings]: [&Rc<Budget>; 3],
    magic: i64,
    devices: bool,
) -> crate::Result<Rc<Node>> {
    Tree::create(TreeOptions {
        image,
        bytes: Rc::clone(bytes),
        nodes: Rc::clone(nodes),
        listings: Rc::clone(listings),
        magic,
        devices,
    })
}

struct Builder {
    mounts: Vec<Rc<Mount>>,
}

/// The components of an absolute guest path without `..`.
fn components(guest: &Path) -> Result<VecDeque<Vec<u8>>, SetupError> {
    let bytes = guest.as_os_str().as_bytes();
    let components: VecDeque<Vec<u8>> = split(bytes);
    let usable = bytes.first() == Some(&b'/')
        && !bytes.contains(&0)
        && !components.is_empty()
        && components.iter().all(|component| component != b"..");
    match usable {
        true => Ok(components),
        false => Err(SetupError::GuestPath {
            guest: guest.to_path_buf(),
        }),
    }
}

fn split(path: &[u8]) -> VecDeque<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/');
    parts
        .filter(|part| !part.is_empty() && part != b".")
        .map(<[u8]>::to_vec)
        .collect()
}

impl Builder {
    fn root(&self) -> crate::Result<Location> {
        self.mounts
            .first()
            .map(Location::root_of)
            .ok_or(Errno::NOENT)
    }

    /// Finds a node; makes what is missing if `missing` is the kind of the last component.
    fn reach(
        &self,
        mut pending: VecDeque<Vec<u8>>,
        missing: Option<FileKind>,
    ) -> crate::Result<Location> {
        let mut here = self.root()?;
        let mut links = 0;
        let mut descent = Descent::default();
        while let Some(name) = pending.pop_front() {
            if name == b".." {
                here = here.parent()?;
                continue;
            }
            let child = match child(&here, &name, &mut descent) {
                Err(Errno::NOENT) => match missing {
                    Some(last) if pending.is_empty() => make(&here, &name, last)?,
                    Some(_) => make(&here, &name, FileKind::Directory)?,
                    None => return Err(Errno::NOENT),
                },
                found => found?,
            };
            let target = match &child.node {
                NodeRef::Tree(node) if child.kind() == FileKind::Symlink => node.readlink()?,
                NodeRef::Volume(node) if child.kind() == FileKind::Symlink => node.readlink()?,
                _ => {
                    here = walk::cross(&self.mounts, child);
                    continue;
                }
            };
            links += 1;
            if links > MAX_SYMLINKS {
                return Err(Errno::LOOP);
            }
            if target.first() == Some(&b'/') {
                here = self.root()?;
            }
            for component in split(&target).into_iter().rev() {
                pending.push_front(component);
            }
        }
        Ok(here)
    }

    fn hide(&self, paths: &[PathBuf]) -> Result<Vec<Location>, SetupError> {
        let mut hidden = Vec::new();
        for path in paths {
            match self.reach(components(path)?, None) {
                Ok(place) => {
                    if let NodeRef::Tree(node) = &place.node
                        && node.kind() == FileKind::Directory
                    {
                        node.hide_contents();
                        hidden.push(place);
                    }
                }
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(reason) => {
                    return Err(SetupError::MountPoint {
                        guest: path.clone(),
                        reason,
                    });
                }
            }
        }
        Ok(hidden)
    }

    /// Mounts `/proc`, `/dev` and `/sys`.
    fn mount_system(&mut self, budgets: [&Rc<Budget>; 3]) -> Result<(), SetupError> {
        self.mount_at(
            Path::new("/proc"),
            NodeRef::Proc(ProcNode::ROOT),
            FileKind::Directory,
            ("proc", false),
        )?;
        let dev = make_tree(None, budgets, TMPFS_MAGIC, true)
            .and_then(|root| devfs::populate(&root).map(|()| root))
            .map_err(|reason| SetupError::Internal {
                what: "/dev",
                reason,
            })?;
        let (directory, node) = (FileKind::Directory, NodeRef::Tree(dev));
        self.mount_at(Path::new("/dev"), node, directory, ("tmpfs", false))?;
        let sys = make_tree(None, budgets, SYSFS_MAGIC, false)
            .and_then(|root| sysfs::populate(&root).map(|()| root))
            .map_err(|reason| SetupError::Internal {
                what: "/sys",
                reason,
            })?;
        self.mount_at(
            Path::new("/sys"),
            NodeRef::Tree(sys),
            directory,
            ("sysfs", true),
        )
    }

    fn mount_volume(&mut self, volume: &Volume, listings: &Rc<Budget>) -> Result<(), SetupError> {
        let host = volume.host.clone();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let failed = |reason| SetupError::VolumeHost {
            host: host.clone(),
            reason,
        };
        let fd: OwnedFd = rustix::fs::open(&volume.host, flags, Mode::empty()).map_err(failed)?;
        let mode = statx_of(fd.as_fd()).map_err(failed)?.stx_mode;
        let kind = FileKind::from_mode(mode.into());
        if !matches!(kind, FileKind::Directory | FileKind::Regular) {
            return Err(SetupError::VolumeKind { host });
        }
        if is_on_kernel_file_system(fd.as_fd()).map_err(failed)? {
            return Err(SetupError::VolumeKernel { host });
        }
        let root = Rc::new(VolumeRoot {
            dir: HostDir::within_mount(fd, kind == FileKind::Regular),
            listings: Rc::clone(listings),
        });
        let node = NodeRef::Volume(VolumeNode::root(&root));
        self.mount_at(&volume.guest, node, kind, ("volume", volume.read_only))
            .map_err(|error| match error {
                SetupError::KindMismatch { guest, .. } => SetupError::KindMismatch { host, guest },
                error => error,
            })
    }

    fn mount_at(
        &mut self,
        guest: &Path,
        root: NodeRef,
        kind: FileKind,
        (fs_type, read_only): (&'static str, bool),
    ) -> Result<(), SetupError> {
        let place = self
            .reach(components(guest)?, Some(kind))
            .map_err(|reason| SetupError::MountPoint {
                guest: guest.to_path_buf(),
                reason,
            })?;
        if place.is_mount_root() {
            return Err(SetupError::Duplicate {
                guest: guest.to_path_buf(),
            });
        }
        if place.kind() != kind {
            return Err(SetupError::KindMismatch {
                host: PathBuf::new(),
                guest: guest.to_path_buf(),
            });
        }
        let index = self.mounts.len();
        if let NodeRef::Tree(node) = &place.node {
            node.covered.set(Some(index));
        }
        self.mounts.push(Rc::new(Mount {
            index,
            read_only,
            covers: Some(place),
            root,
            fs_type,
            source: fs_type,
        }));
        Ok(())
    }
}

fn child(directory: &Location, name: &[u8], descent: &mut Descent) -> crate::Result<Location> {
    let node = match &directory.node {
        NodeRef::Tree(node) => NodeRef::Tree(node.child(name)?),
        NodeRef::Volume(node) => NodeRef::Volume(node.child(name, descent)?),
        // What `/proc` holds depends on a process, and there is none yet.
        NodeRef::Proc(_) => return Err(Errno::PERM),
    };
    Ok(directory.with(node))
}

/// Makes a mount point, in memory only: volumes and `/sys` are left as they are.
fn make(directory: &Location, name: &[u8], kind: FileKind) -> crate::Result<Location> {
    directory.mount.check_writable()?;
    let NodeRef::Tree(parent) = &directory.node else {
        return Err(Errno::NOENT);
    };
    let node = match kind {
        FileKind::Directory => parent.create(name, libc::S_IFDIR | 0o755, &NewNode::Directory)?,
        _ => parent.create(name, libc::S_IFREG | 0o644, &NewNode::Regular)?,
    };
    Ok(directory.with(NodeRef::Tree(node)))
}

#[cfg(test)]
mod tests;
