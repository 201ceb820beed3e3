//! Open files and directories of a tree of nodes.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::host_io::{self, Listing};
use crate::mount::Location;
use crate::overlay::{Body, Contents, Node};
use crate::{DirEntry, File, FileKind, Result, Stat};

/// A regular file.
pub(crate) struct TreeFile {
    location: Location,
    node: Rc<Node>,
    /// The image's file; of use as long as the contents have not changed.
    lower: Option<OwnedFd>,
}

impl TreeFile {
    /// The contents are in memory already if the file is to be written.
    pub(crate) fn open(location: Location, node: Rc<Node>) -> Result<TreeFile> {
        let lower = node.open_lower()?;
        Ok(TreeFile {
            location,
            node,
            lower,
        })
    }

    fn contents(&self) -> Result<&RefCell<Contents>> {
        match &self.node.body {
            Body::Regular(contents) => Ok(contents),
            _ => Err(Errno::INVAL),
        }
    }

    /// The image's file, unless the contents have changed.
    fn unchanged(&self) -> Option<BorrowedFd<'_>> {
        match &*self.contents().ok()?.borrow() {
            Contents::Lower => self.lower.as_ref().map(AsFd::as_fd),
            Contents::Memory(_) => None,
        }
    }
}

impl File for TreeFile {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.location.localise(self.node.stat()))
    }

    fn kind(&self) -> FileKind {
        self.node.kind()
    }

    fn size(&self) -> Result<u64> {
        Ok(self.node.stat().size)
    }

    fn read_at(&self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        if i64::try_from(offset).is_err() {
            return Err(Errno::INVAL);
        }
        match &*self.contents()?.borrow() {
            Contents::Memory(file) => file.read_at(offset, buffers),
            Contents::Lower => {
                let lower = self.lower.as_ref().ok_or(Errno::IO)?;
                host_io::read_at(lower.as_fd(), offset, buffers)
            }
        }
    }

    fn write_at(&self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        let count = self
            .node
            .with_memory(|file| file.write_at(offset, buffers))?;
        if count > 0 {
            self.node.touch(|_| {});
        }
        Ok(count)
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.node.truncate(size)
    }

    fn seek_data(&self, offset: u64) -> Result<u64> {
        match &*self.contents()?.borrow() {
            Contents::Memory(file) => file.seek_data(offset),
            Contents::Lower => {
                let lower = self.lower.as_ref().ok_or(Errno::IO)?;
                rustix::fs::seek(lower, rustix::fs::SeekFrom::Data(offset))
            }
        }
    }

    fn seek_hole(&self, offset: u64) -> Result<u64> {
        match &*self.contents()?.borrow() {
            Contents::Memory(file) => file.seek_hole(offset),
            Contents::Lower => {
                let lower = self.lower.as_ref().ok_or(Errno::IO)?;
                rustix::fs::seek(lower, rustix::fs::SeekFrom::Hole(offset))
            }
        }
    }

    fn allocate(&self, mode: u32, offset: u64, length: u64) -> Result<()> {
        self.node
            .with_memory(|file| file.allocate(mode, offset, length))?;
        self.node.touch(|_| {});
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn host_file(&self) -> Option<BorrowedFd<'_>> {
        self.unchanged()
    }
}

/// A directory, which lists what it held when it was read from its beginning.
pub(crate) struct TreeDirectory {
    location: Location,
    node: Rc<Node>,
    listing: RefCell<Option<Listing>>,
}

impl TreeDirectory {
    pub(crate) fn open(location: Location, node: Rc<Node>) -> TreeDirectory {
        TreeDirectory {
            location,
            node,
            listing: RefCell::new(None),
        }
    }

    fn parent_ino(&self) -> u64 {
        match self.location.parent().map(|parent| parent.node) {
            Ok(crate::mount::NodeRef::Tree(node)) => node.attr.get().ino,
            _ => self.node.attr.get().ino,
        }
    }
}

impl File for TreeDirectory {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.location.localise(self.node.stat()))
    }

    fn kind(&self) -> FileKind {
        self.node.kind()
    }

    fn read_at(&self, _offset: u64, _buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        Err(Errno::ISDIR)
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn read_dir(&self, cookie: u64, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        if self.node.is_removed() {
            return Err(Errno::NOENT);
        }
        read_listing(&self.listing, cookie, sink, || {
            self.node.list(self.parent_ino())
        })
    }
}

/// Serves `read_dir` from a listing that is made anew whenever the directory is rewound. A
/// cookie is the number of entries before it.
pub(crate) fn read_listing(
    kept: &RefCell<Option<Listing>>,
    cookie: u64,
    sink: &mut dyn FnMut(DirEntry<'_>) -> bool,
    list: impl FnOnce() -> Result<Listing>,
) -> Result<()> {
    let mut kept = kept.borrow_mut();
    if cookie == 0 || kept.is_none() {
        // The old one first gives back what it holds of the budget.
        *kept = None;
        *kept = Some(list()?);
    }
    if let Some(listing) = kept.as_ref() {
        feed(listing, cookie, sink);
    }
    Ok(())
}

/// Gives the entries after the first `cookie` ones to `sink` until it refuses one.
pub(crate) fn feed(listing: &Listing, cookie: u64, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) {
    let Ok(mut index) = usize::try_from(cookie) else {
        return;
    };
    while let Some((ino, kind, name)) = listing.get(index) {
        index += 1;
        let entry = DirEntry {
            ino,
            kind,
            name,
            next: index as u64,
        };
        if !sink(entry) {
            return;
        }
    }
}
