//! The guest's file tree: image, writable layer, volumes, /proc, /dev, /sys.
//!
//! One [`Vfs`] is the whole file tree of one guest. Its owner is single-threaded.
//!
//! Rooms, from the API down:
//!
//! - `vfs`, `open`: the operations of [`Vfs`], by path or by [`Location`];
//! - `setup`: [`Config`], the mounts, and what can be wrong with them;
//! - `walk`: resolves guest paths, component by component;
//! - `mount`: what a [`Location`] is, and how mounts hang together;
//! - `overlay`: the tree of nodes that lies over the image and holds every change
//!   (also the dentry cache of the image); `rename` moves its nodes;
//! - `memory_file`, `budget`: contents of changed files, and the quota;
//! - `image`: the host directory below the overlay, read-only;
//! - `volume`: host directories and files that are mounted as they are;
//! - `procfs`, `proc_text`, `proc_file`, `devfs`, `sysfs`: what is synthesised;
//! - `tree_file`, `path_handle`, `xattr`: open nodes of trees, and their extended attributes;
//! - `host_io`: how host files are reached, read and written;
//! - `file`, `stat`, `view`: the types of the interface.
//!
//! What never happens here: a host symlink is followed, a host device, socket or FIFO is
//! opened, host memory grows beyond the configured quota plus bounded caches, guest memory
//! is borrowed as a Rust slice, and `/proc`, `/dev` or `/sys` of the host show through.

mod budget;
mod devfs;
mod file;
mod host_io;
mod image;
mod memory_file;
mod mount;
mod open;
mod overlay;
mod path_handle;
mod proc_file;
mod proc_text;
mod procfs;
mod rename;
mod setup;
mod stat;
mod sysfs;
#[cfg(test)]
mod testing;
mod tree_file;
mod vfs;
mod view;
mod volume;
mod walk;
mod xattr;

pub use file::{DirEntry, File, FileKind, OpenFlags, Opened, RenameFlags, ResolveFlags, XattrSet};
pub use mount::Location;
pub use setup::{Config, DEFAULT_OVERLAY_QUOTA, SetupError, Volume};
pub use stat::{Stat, StatFs, TimeUpdate, Timestamp};
pub use vfs::Vfs;
pub use view::{CpuTime, FdView, Limit, MemoryUsage, ProcView};

/// The result of an operation on the tree; the error is what the guest gets to see.
pub type Result<T> = std::result::Result<T, rustix::io::Errno>;

/// `uname` sysname, also `/proc/sys/kernel/ostype`.
pub const KERNEL_NAME: &str = "Linux";
/// `uname` release, also `/proc/sys/kernel/osrelease`. glibc refuses kernels older than 3.2.
pub const KERNEL_RELEASE: &str = "6.1.0-agentrt";
/// `uname` version, also `/proc/sys/kernel/version`.
pub const KERNEL_VERSION: &str = "#1 SMP PREEMPT_DYNAMIC agentrt";
/// `uname` nodename, also `/proc/sys/kernel/hostname`.
pub const HOSTNAME: &str = "agentrt";
/// `uname` machine.
pub const MACHINE: &str = "x86_64";
/// `uname` domainname as Linux reports it when none is set.
pub const DOMAINNAME: &str = "(none)";

/// Longest path a guest may pass, the terminating NUL included (`PATH_MAX` of `linux/limits.h`).
pub const PATH_MAX: usize = 4096;
/// Longest name of one directory entry (`NAME_MAX` of `linux/limits.h`).
pub const NAME_MAX: usize = 255;
