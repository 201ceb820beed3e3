//! Open files and directories of `/proc`: they show what was there when they were opened.

use std::rc::Rc;

use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::budget::{Budget, Charge};
use crate::host_io::Listing;
use crate::memory_file::copy_to_guest;
use crate::mount::Location;
use crate::procfs::{Directory, ProcNode};
use crate::tree_file::feed;
use crate::{DirEntry, File, FileKind, ProcView, Result, Stat};

/// An open file of `/proc`: its contents when it was opened.
pub(crate) struct ProcFile {
    location: Location,
    stat: Stat,
    text: Box<[u8]>,
    /// What the text takes of the budget of listings.
    _charge: Charge,
}

impl ProcFile {
    /// ENOMEM if this guest holds too much of `/proc` and of listings open.
    pub(crate) fn open(
        location: Location,
        stat: Stat,
        text: Vec<u8>,
        listings: &Rc<Budget>,
    ) -> Result<ProcFile> {
        let charge = Charge::of(listings, text.len() as u64).map_err(|_| Errno::NOMEM)?;
        Ok(ProcFile {
            location,
            stat,
            // Without what the vector has to spare.
            text: text.into_boxed_slice(),
            _charge: charge,
        })
    }
}

impl File for ProcFile {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.stat)
    }

    fn kind(&self) -> FileKind {
        FileKind::Regular
    }

    fn read_at(&self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = self.text.get(start..).unwrap_or_default();
        let before = rest.len();
        for buffer in buffers {
            let (part, tail) = rest.split_at(rest.len().min(buffer.len()));
            copy_to_guest(buffer, 0, part)?;
            rest = tail;
        }
        Ok(before - rest.len())
    }
}

/// An open directory of `/proc`: its names when it was opened.
pub(crate) struct ProcDirectory {
    location: Location,
    stat: Stat,
    listing: Listing,
}

impl ProcDirectory {
    pub(crate) fn open(
        location: Location,
        directory: Directory,
        listings: &Rc<Budget>,
        view: &dyn ProcView,
    ) -> Result<ProcDirectory> {
        let stat = location.stat(view)?;
        let mut listing = Listing::new(listings);
        listing.push(stat.ino, FileKind::Directory, b".")?;
        let above = ProcNode::Directory(directory.parent());
        listing.push(above.ino(), FileKind::Directory, b"..")?;
        for name in directory.names(view) {
            if let Some(node) = directory.child(view, &name) {
                listing.push(node.ino(), node.kind(), &name)?;
            }
        }
        Ok(ProcDirectory {
            location,
            stat,
            listing,
        })
    }
}

impl File for ProcDirectory {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.stat)
    }

    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn read_at(&self, _offset: u64, _buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        Err(Errno::ISDIR)
    }

    fn read_dir(&self, cookie: u64, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        // The view is out of reach here: a rewound directory shows the same once more.
        feed(&self.listing, cookie, sink);
        Ok(())
    }
}
