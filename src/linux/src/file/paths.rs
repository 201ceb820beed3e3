//! Path arguments: a string, and the directory that a relative one starts from.

use std::rc::Rc;

use agentrt_vfs::{FileKind, Location, PATH_MAX};
use rustix::io::Errno;

use crate::descriptor::Description;
use crate::guest::Guest;
use crate::task::Task;

/// A path with the directory that it starts from.
pub(super) struct PathAt {
    pub base: Location,
    pub path: Vec<u8>,
}

impl PathAt {
    /// Reads a path; `directory` is a descriptor or `AT_FDCWD`.
    pub fn read(guest: &mut Guest, directory: i32, address: u64) -> Result<PathAt, Errno> {
        let path = read_path(guest, address)?;
        PathAt::new(guest, directory, path)
    }

    fn new(guest: &Guest, directory: i32, path: Vec<u8>) -> Result<PathAt, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let base = match path.first() {
            // What an absolute path is said to start from is not even looked at.
            Some(b'/') => guest.task.cwd.clone(),
            _ => base(&guest.task, directory)?,
        };
        Ok(PathAt { base, path })
    }
}

/// What a path argument names where `AT_EMPTY_PATH` may be given.
pub(super) enum Named {
    /// A path.
    Path(PathAt),
    /// A descriptor by its number.
    Descriptor(i32, Rc<Description>),
    /// The current directory.
    CurrentDirectory,
}

impl Named {
    /// Reads a path, which may be empty if `flags` has `AT_EMPTY_PATH`.
    pub fn read(
        guest: &mut Guest,
        directory: i32,
        address: u64,
        flags: i32,
    ) -> Result<Named, Errno> {
        let path = read_path(guest, address)?;
        if !path.is_empty() || flags & libc::AT_EMPTY_PATH == 0 {
            return Ok(Named::Path(PathAt::new(guest, directory, path)?));
        }
        if directory == libc::AT_FDCWD {
            return Ok(Named::CurrentDirectory);
        }
        Ok(Named::Descriptor(
            directory,
            guest.task.descriptors.get(directory)?,
        ))
    }

    /// The node of the tree; a symlink in the last component is followed if `follow` is set.
    pub fn locate(&self, guest: &mut Guest, follow: bool) -> Result<Location, Errno> {
        match self {
            Named::Path(at) => guest.vfs.lookup(&guest.task, &at.base, &at.path, follow),
            Named::Descriptor(_, description) => {
                Ok(description.file(Errno::PERM)?.location().clone())
            }
            Named::CurrentDirectory => Ok(guest.task.cwd.clone()),
        }
    }
}

/// The directory that descriptor `directory` or `AT_FDCWD` stands for.
pub(super) fn base(task: &Task, directory: i32) -> Result<Location, Errno> {
    if directory == libc::AT_FDCWD {
        return Ok(task.cwd.clone());
    }
    let description = task.descriptors.get(directory)?;
    let file = description.file(Errno::NOTDIR)?;
    match file.kind() {
        FileKind::Directory => Ok(file.location().clone()),
        _ => Err(Errno::NOTDIR),
    }
}

/// Reads a path, which may be empty.
pub(super) fn read_path(guest: &mut Guest, address: u64) -> Result<Vec<u8>, Errno> {
    guest.task.mm.read_string(address, PATH_MAX)
}

/// Refuses flags that are not in `known`.
pub(super) fn check_flags(flags: i32, known: i32) -> Result<(), Errno> {
    if flags & !known == 0 {
        Ok(())
    } else {
        Err(Errno::INVAL)
    }
}
