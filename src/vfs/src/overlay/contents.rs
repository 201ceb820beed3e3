//! The contents of files and links: those of the image until they change.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::{Body, Contents, Node};
use crate::memory_file::MemoryFile;
use crate::{FileKind, Result};

/// Bytes of one read while a file is copied up.
const COPY_BUFFER: usize = 128 << 10;

impl Node {
    pub(crate) fn readlink(&self) -> Result<Vec<u8>> {
        let Body::Symlink(target) = &self.body else {
            return Err(Errno::INVAL);
        };
        if let Some(target) = target.get() {
            return Ok(target.clone());
        }
        let (image, lower) = self.lower_place().ok_or(Errno::IO)?;
        let text = image.readlink(lower)?;
        let _ = target.set(text.clone());
        Ok(text)
    }

    /// Opens the contents in the image; `None` if they are in memory.
    pub(crate) fn open_lower(&self) -> Result<Option<OwnedFd>> {
        match (&self.body, self.lower_place()) {
            (Body::Regular(contents), Some((image, lower))) => match &*contents.borrow() {
                Contents::Lower => Ok(Some(image.open_for_reading(lower)?)),
                Contents::Memory(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Brings a regular file's contents into memory, or makes them empty if `discard`.
    pub(crate) fn copy_up(&self, discard: bool) -> Result<()> {
        let Body::Regular(contents) = &self.body else {
            return Err(Errno::INVAL);
        };
        if matches!(&*contents.borrow(), Contents::Memory(_)) {
            return Ok(());
        }
        let mut file = MemoryFile::new(&self.tree.bytes);
        if !discard && let Some(from) = self.open_lower()? {
            // Refused before it is read, for what is too large would take long to find out.
            let stat = self.attr.get();
            if stat.size.min(stat.blocks.saturating_mul(512)) > self.tree.bytes.free() {
                return Err(Errno::NOSPC);
            }
            copy(&from, stat.size, &mut file)?;
        }
        self.pin()?;
        *contents.borrow_mut() = Contents::Memory(file);
        Ok(())
    }

    /// The changed contents of a regular file, copied up if need be, given to `operation`.
    pub(crate) fn with_memory<T>(
        &self,
        operation: impl FnOnce(&mut MemoryFile) -> Result<T>,
    ) -> Result<T> {
        self.copy_up(false)?;
        match &self.body {
            Body::Regular(contents) => match &mut *contents.borrow_mut() {
                Contents::Memory(file) => operation(file),
                Contents::Lower => Err(Errno::IO),
            },
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn truncate(&self, size: u64) -> Result<()> {
        match self.kind() {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        self.copy_up(size == 0)?;
        self.with_memory(|file| file.truncate(size))?;
        self.touch(|_| {});
        Ok(())
    }
}

/// Copies the first `size` bytes; holes stay holes.
fn copy(from: &OwnedFd, size: u64, to: &mut MemoryFile) -> Result<()> {
    to.truncate(size)?;
    let mut buffer = vec![0; COPY_BUFFER];
    let mut offset = 0;
    while offset < size {
        offset = match rustix::fs::seek(from, SeekFrom::Data(offset)) {
            Ok(data) => data,
            // Nothing but a hole up to the end.
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error),
        };
        let count = rustix::io::pread(from.as_fd(), &mut buffer[..], offset)?;
        if count == 0 {
            return Ok(());
        }
        to.write_bytes(offset, buffer.get(..count).unwrap_or_default())?;
        offset += count as u64;
    }
    Ok(())
}
