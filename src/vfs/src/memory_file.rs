//! Contents of a changed file: a sparse store of chunks, each accounted against the quota.
//!
//! A chunk that is absent reads as zeros. Bytes of a chunk beyond `size` are always zero, so
//! that a file that grows again shows none of what was cut off.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::Result;
use crate::budget::{Budget, Charge};

const CHUNK: usize = 4096;
const CHUNK_BYTES: u64 = CHUNK as u64;
/// What a chunk is charged: its bytes and its place in the map.
const CHUNK_COST: u64 = CHUNK_BYTES + 64;

/// Largest size of a file in bytes; beyond is EFBIG. That of ext4 with 4 KiB blocks.
pub(crate) const MAX_FILE_SIZE: u64 = 16 << 40;

type Chunk = [u8; CHUNK];

#[derive(Debug)]
pub(crate) struct MemoryFile {
    chunks: BTreeMap<u64, Box<Chunk>>,
    size: u64,
    charge: Charge,
}

/// Where the byte at `offset` lies: number of the chunk, and the place in it.
fn locate(offset: u64) -> (u64, usize) {
    (offset / CHUNK_BYTES, (offset % CHUNK_BYTES) as usize)
}

/// Copies out of a guest buffer; `at + to.len()` lies within it.
fn copy_from_guest(from: &VolatileSlice<'_>, at: usize, to: &mut [u8]) -> Result<()> {
    let part = from.subslice(at, to.len()).map_err(|_| Errno::FAULT)?;
    part.copy_to(to);
    Ok(())
}

/// Copies into a guest buffer; `at + from.len()` lies within it.
pub(crate) fn copy_to_guest(to: &VolatileSlice<'_>, at: usize, from: &[u8]) -> Result<()> {
    let part = to.subslice(at, from.len()).map_err(|_| Errno::FAULT)?;
    part.copy_from(from);
    Ok(())
}

impl MemoryFile {
    pub(crate) fn new(budget: &Rc<Budget>) -> MemoryFile {
        MemoryFile {
            chunks: BTreeMap::new(),
            size: 0,
            charge: Charge::empty(budget),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Allocated blocks of 512 bytes.
    pub(crate) fn blocks(&self) -> u64 {
        self.chunks.len() as u64 * (CHUNK_BYTES / 512)
    }

    pub(crate) fn read_at(&self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        let mut done = 0usize;
        for buffer in buffers {
            let mut at = 0;
            while at < buffer.len() {
                let position = offset.saturating_add(done as u64);
                if position >= self.size {
                    return Ok(done);
                }
                let (index, start) = locate(position);
                let left = usize::try_from(self.size - position).unwrap_or(usize::MAX);
                let count = (CHUNK - start).min(buffer.len() - at).min(left);
                match self.chunks.get(&index) {
                    Some(chunk) => copy_to_guest(buffer, at, &chunk[start..start + count])?,
                    None => copy_to_guest(buffer, at, &[0; CHUNK][..count])?,
                }
                at += count;
                done += count;
            }
        }
        Ok(done)
    }

    /// Writes as much as size limit and quota allow; an error only if that is nothing.
    pub(crate) fn write_at(&mut self, offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        let mut done = 0usize;
        for buffer in buffers {
            let mut at = 0;
            while at < buffer.len() {
                let position = offset.saturating_add(done as u64);
                let step = self.room_at(position).and_then(|(chunk, start)| {
                    let count = (CHUNK - start).min(buffer.len() - at);
                    copy_from_guest(buffer, at, &mut chunk[start..start + count])?;
                    Ok(count)
                });
                match step {
                    Ok(count) => {
                        at += count;
                        done += count;
                        self.size = self.size.max(position + count as u64);
                    }
                    Err(_) if done > 0 => return Ok(done),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(done)
    }

    /// Writes bytes of the host's own; chunks of zeros stay holes.
    pub(crate) fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .filter(|end| *end <= MAX_FILE_SIZE)
            .ok_or(Errno::FBIG)?;
        let mut rest = bytes;
        let mut position = offset;
        while !rest.is_empty() {
            let (index, start) = locate(position);
            let (part, tail) = rest.split_at((CHUNK - start).min(rest.len()));
            if part.iter().any(|byte| *byte != 0) || self.chunks.contains_key(&index) {
                let (chunk, start) = self.room_at(position)?;
                chunk[start..start + part.len()].copy_from_slice(part);
            }
            position += part.len() as u64;
            rest = tail;
        }
        self.size = self.size.max(end);
        Ok(())
    }

    /// The chunk that holds `position`, made if it is a hole, and the place in it.
    fn room_at(&mut self, position: u64) -> Result<(&mut Chunk, usize)> {
        if position >= MAX_FILE_SIZE {
            return Err(Errno::FBIG);
        }
        let (index, start) = locate(position);
        if !self.chunks.contains_key(&index) {
            self.charge.grow(CHUNK_COST)?;
        }
        let chunk = self
            .chunks
            .entry(index)
            .or_insert_with(|| Box::new([0; CHUNK]));
        Ok((chunk, start))
    }

    pub(crate) fn truncate(&mut self, size: u64) -> Result<()> {
        if size > MAX_FILE_SIZE {
            return Err(Errno::FBIG);
        }
        if size < self.size {
            self.clear(size, self.size);
        }
        self.size = size;
        Ok(())
    }

    /// Makes `from..to` read as zeros, and gives back whole chunks.
    fn clear(&mut self, from: u64, to: u64) {
        let (first, start) = locate(from);
        let (last, end) = locate(to);
        if let Some(chunk) = self.chunks.get_mut(&first)
            && start > 0
        {
            let stop = if first == last { end } else { CHUNK };
            chunk[start..stop.max(start)].fill(0);
        }
        let reaches_end = to >= self.size;
        if (first != last || start == 0)
            && end > 0
            && !reaches_end
            && let Some(chunk) = self.chunks.get_mut(&last)
        {
            chunk[..end].fill(0);
        }
        let whole_from = if start == 0 { first } else { first + 1 };
        let whole_to = if reaches_end && end > 0 {
            last + 1
        } else {
            last
        };
        if whole_from >= whole_to {
            return;
        }
        let mut kept = self.chunks.split_off(&whole_from);
        let mut tail = kept.split_off(&whole_to);
        self.charge.shrink(kept.len() as u64 * CHUNK_COST);
        self.chunks.append(&mut tail);
    }

    pub(crate) fn seek_data(&self, offset: u64) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::NXIO);
        }
        let (index, _) = locate(offset);
        let (found, _) = self.chunks.range(index..).next().ok_or(Errno::NXIO)?;
        let start = (found * CHUNK_BYTES).max(offset);
        if start < self.size {
            Ok(start)
        } else {
            Err(Errno::NXIO)
        }
    }

    pub(crate) fn seek_hole(&self, offset: u64) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::NXIO);
        }
        let (mut index, _) = locate(offset);
        for (present, _) in self.chunks.range(index..) {
            if *present != index {
                break;
            }
            index += 1;
        }
        Ok((index * CHUNK_BYTES).max(offset).min(self.size))
    }

    /// `fallocate`.
    pub(crate) fn allocate(&mut self, mode: u32, offset: u64, length: u64) -> Result<()> {
        const KEEP_SIZE: u32 = libc::FALLOC_FL_KEEP_SIZE as u32;
        const PUNCH_HOLE: u32 = libc::FALLOC_FL_PUNCH_HOLE as u32;
        const ZERO_RANGE: u32 = libc::FALLOC_FL_ZERO_RANGE as u32;
        if length == 0 {
            return Err(Errno::INVAL);
        }
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= MAX_FILE_SIZE)
            .ok_or(Errno::FBIG)?;
        let keep_size = mode & KEEP_SIZE != 0;
        match mode & !KEEP_SIZE {
            PUNCH_HOLE if keep_size => self.clear(offset, end.min(self.size).max(offset)),
            ZERO_RANGE => {
                self.clear(offset, end.min(self.size).max(offset));
                self.reserve(offset, if keep_size { end.min(self.size) } else { end })?;
            }
            0 => self.reserve(offset, if keep_size { end.min(self.size) } else { end })?,
            _ => return Err(Errno::OPNOTSUPP),
        }
        if mode & PUNCH_HOLE == 0 && !keep_size {
            self.size = self.size.max(end);
        }
        Ok(())
    }

    /// Makes chunks for all of `from..to`, or none if they do not fit.
    fn reserve(&mut self, from: u64, to: u64) -> Result<()> {
        if from >= to {
            return Ok(());
        }
        let first = from / CHUNK_BYTES;
        let end = to.div_ceil(CHUNK_BYTES);
        let most = self.charge.budget().limit() / CHUNK_COST;
        if end - first > most {
            return Err(Errno::NOSPC);
        }
        let present = self.chunks.range(first..end).count() as u64;
        self.charge.grow((end - first - present) * CHUNK_COST)?;
        for index in first..end {
            self.chunks
                .entry(index)
                .or_insert_with(|| Box::new([0; CHUNK]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
