//! Files, directories and descriptors.
//!
//! - [`open`]: open and its like; [`memfd`]: anonymous files and their seals
//! - [`io`]: reads and writes; [`seek`]: offsets; [`copy`]: between two files
//! - [`metadata`], [`attributes`]: attributes, read and set; [`xattr`]: extended ones
//! - [`names`]: what is in directories; [`directory`]: listings and the current directory
//! - [`space`]: sizes, holes, sync
//! - [`descriptors`]: close and dup; [`control`]: fcntl; [`ioctl`]; [`locks`]; [`poll`]
//! - [`paths`]: path arguments; [`layout`]: structures for the program

mod attributes;
mod control;
mod copy;
mod descriptors;
mod directory;
mod io;
mod ioctl;
mod layout;
pub mod locks;
pub mod memfd;
mod metadata;
mod names;
mod open;
mod paths;
mod pipe;
mod poll;
mod seek;
mod space;
mod xattr;

use syscalls::Sysno;

use crate::dispatch::Handler;

/// The file syscalls.
pub fn handler(number: Sysno) -> Option<Handler> {
    Some(match number {
        Sysno::open => open::open,
        Sysno::openat => open::openat,
        Sysno::openat2 => open::openat2,
        Sysno::creat => open::creat,
        Sysno::memfd_create => memfd::memfd_create,
        Sysno::name_to_handle_at => |_, _| Err(rustix::io::Errno::OPNOTSUPP.into()),

        Sysno::read => io::read,
        Sysno::pread64 => io::pread64,
        Sysno::readv => io::readv,
        Sysno::preadv => io::preadv,
        Sysno::preadv2 => io::preadv2,
        Sysno::write => io::write,
        Sysno::pwrite64 => io::pwrite64,
        Sysno::writev => io::writev,
        Sysno::pwritev => io::pwritev,
        Sysno::pwritev2 => io::pwritev2,
        Sysno::lseek => seek::lseek,
        Sysno::sendfile => copy::sendfile,
        Sysno::copy_file_range => copy::copy_file_range,

        Sysno::close => descriptors::close,
        Sysno::close_range => descriptors::close_range,
        Sysno::dup => descriptors::dup,
        Sysno::dup2 => descriptors::dup2,
        Sysno::dup3 => descriptors::dup3,
        Sysno::fcntl => control::fcntl,
        Sysno::flock => locks::flock,
        Sysno::ioctl => ioctl::ioctl,
        Sysno::pipe => pipe::pipe,
        Sysno::pipe2 => pipe::pipe2,
        Sysno::poll => poll::poll,
        Sysno::ppoll => poll::ppoll,
        Sysno::select => poll::select,
        Sysno::pselect6 => poll::pselect6,

        Sysno::stat => metadata::stat,
        Sysno::lstat => metadata::lstat,
        Sysno::fstat => metadata::fstat,
        Sysno::newfstatat => metadata::newfstatat,
        Sysno::statx => metadata::statx,
        Sysno::statfs => metadata::statfs,
        Sysno::fstatfs => metadata::fstatfs,
        Sysno::access => metadata::access,
        Sysno::faccessat => metadata::faccessat,
        Sysno::faccessat2 => metadata::faccessat2,

        Sysno::chmod => attributes::chmod,
        Sysno::fchmod => attributes::fchmod,
        Sysno::fchmodat => attributes::fchmodat,
        Sysno::fchmodat2 => attributes::fchmodat2,
        Sysno::chown => attributes::chown,
        Sysno::fchown => attributes::fchown,
        Sysno::lchown => attributes::lchown,
        Sysno::fchownat => attributes::fchownat,
        Sysno::utime => attributes::utime,
        Sysno::utimes => attributes::utimes,
        Sysno::futimesat => attributes::futimesat,
        Sysno::utimensat => attributes::utimensat,
        Sysno::umask => attributes::umask,

        Sysno::getxattr => xattr::getxattr,
        Sysno::lgetxattr => xattr::lgetxattr,
        Sysno::fgetxattr => xattr::fgetxattr,
        Sysno::setxattr => xattr::setxattr,
        Sysno::lsetxattr => xattr::lsetxattr,
        Sysno::fsetxattr => xattr::fsetxattr,
        Sysno::listxattr => xattr::listxattr,
        Sysno::llistxattr => xattr::llistxattr,
        Sysno::flistxattr => xattr::flistxattr,
        Sysno::removexattr => xattr::removexattr,
        Sysno::lremovexattr => xattr::lremovexattr,
        Sysno::fremovexattr => xattr::fremovexattr,

        Sysno::getdents => directory::getdents,
        Sysno::getdents64 => directory::getdents64,
        Sysno::chdir => directory::chdir,
        Sysno::fchdir => directory::fchdir,
        Sysno::getcwd => directory::getcwd,
        Sysno::chroot => directory::chroot,

        Sysno::mkdir => names::mkdir,
        Sysno::mkdirat => names::mkdirat,
        Sysno::mknod => names::mknod,
        Sysno::mknodat => names::mknodat,
        Sysno::unlink => names::unlink,
        Sysno::unlinkat => names::unlinkat,
        Sysno::rmdir => names::rmdir,
        Sysno::rename => names::rename,
        Sysno::renameat => names::renameat,
        Sysno::renameat2 => names::renameat2,
        Sysno::link => names::link,
        Sysno::linkat => names::linkat,
        Sysno::symlink => names::symlink,
        Sysno::symlinkat => names::symlinkat,
        Sysno::readlink => names::readlink,
        Sysno::readlinkat => names::readlinkat,

        Sysno::truncate => space::truncate,
        Sysno::ftruncate => space::ftruncate,
        Sysno::fallocate => space::fallocate,
        Sysno::fsync => space::fsync,
        Sysno::fdatasync => space::fdatasync,
        Sysno::sync => space::sync,
        Sysno::syncfs => space::syncfs,
        Sysno::sync_file_range => space::sync_file_range,
        Sysno::fadvise64 => space::fadvise64,
        Sysno::readahead => space::readahead,

        _ => return None,
    })
}
