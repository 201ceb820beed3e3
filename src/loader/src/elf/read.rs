//! Reading at offsets, and taking fields apart.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Something of known size that can be read at any offset.
pub trait ReadAt {
    /// Reads some bytes at `offset` and says how many; 0 at and past the end.
    ///
    /// # Errors
    ///
    /// Whatever the source reports. `Interrupted` is retried by the callers in this crate.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Bytes in the source, 0 if unknown.
    fn size(&self) -> u64;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..))
            .unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn size(&self) -> u64 {
        self.len() as u64
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        (**self).size()
    }
}

/// Fills `buffer` from `offset`; false if the source ends before.
pub(crate) fn read_exact(
    source: &(impl ReadAt + ?Sized),
    mut offset: u64,
    mut buffer: &mut [u8],
) -> io::Result<bool> {
    while !buffer.is_empty() {
        match source.read_at(offset, buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => {
                let count = count.min(buffer.len());
                buffer = &mut buffer[count..];
                let Some(next) = offset.checked_add(count as u64) else {
                    return Ok(buffer.is_empty());
                };
                offset = next;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Takes little-endian fields off the front of a record; a missing byte reads as zero.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(record: &'a [u8]) -> Self {
        Self { rest: record }
    }

    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        let (head, rest) = self.rest.split_at(N.min(self.rest.len()));
        field[..head.len()].copy_from_slice(head);
        self.rest = rest;
        field
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
