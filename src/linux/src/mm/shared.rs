//! Shared mappings of files.
//!
//! A guest's pages are its own: a shared mapping holds copies of the file's. They are kept in step
//! at the points where a program can tell the difference: what the program stored goes to the file
//! before a syscall reads or changes the file, at msync, munmap and the end; what a syscall changed
//! is read anew when the program next looks.
//!
//! A page is dirty if, and only if, the program may write to it: pages come without that right,
//! and the fault of the first store gives it. So a page that is only read never overwrites the
//! file. Two mappings of one file see each other's stores from the next of those points on.

use std::ops::Range;

use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vfs::{File, Stat};
use agentrt_vmm::Protection;
use vm_memory::VolatileSlice;

use super::area::{Area, Backing};
use super::{Mm, USER};

/// Pages that are written to a file at once, at most.
const BATCH: usize = 256;

/// What makes two open files the same: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// The identity of the file that has `stat`.
    pub fn of(stat: &Stat) -> Identity {
        Identity(stat.dev, stat.ino)
    }
}

impl Area {
    /// Are stores to be written to a file?
    pub(super) fn writes_back(&self) -> bool {
        matches!(
            self.backing,
            Backing::File {
                write_back: true,
                ..
            }
        )
    }

    /// What the program may do with a page that it has not stored to.
    pub(super) fn clean_protection(&self) -> Protection {
        Protection {
            write: self.protection.write && !self.writes_back(),
            ..self.protection
        }
    }
}

impl Mm {
    /// Before a syscall reads or changes `file`: gives it what the program stored through shared
    /// mappings.
    pub fn sync_shared(&mut self, file: &dyn File) {
        for range in self.shared_ranges(file) {
            self.write_back(range);
        }
    }

    /// After a syscall changed `file`: shared mappings read it anew.
    pub fn refresh_shared(&mut self, file: &dyn File) {
        for range in self.shared_ranges(file) {
            let pages = (range.end - range.start) / PAGE_SIZE;
            self.space.unmap(range.start, pages);
        }
    }

    /// Gives the files what the program stored through any shared mapping.
    pub fn sync_all_shared(&mut self) {
        if self.shares_files {
            self.write_back(USER);
        }
    }

    /// Reads anew what shared mappings hold of any file. To be called after
    /// [`Mm::sync_all_shared`].
    pub fn refresh_all_shared(&mut self) {
        if self.shares_files {
            let shared = |area: &Area| area.shared && matches!(area.backing, Backing::File { .. });
            for range in self.ranges(shared) {
                let pages = (range.end - range.start) / PAGE_SIZE;
                self.space.unmap(range.start, pages);
            }
        }
    }

    fn shared_ranges(&self, file: &dyn File) -> Vec<Range<u64>> {
        if !self.shares_files {
            return Vec::new();
        }
        let Ok(stat) = file.stat() else {
            return Vec::new();
        };
        let wanted = Identity::of(&stat);
        self.ranges(|area| {
            matches!(area.backing, Backing::File { identity: Some(identity), .. } if identity == wanted)
        })
    }

    fn ranges(&self, wanted: impl Fn(&Area) -> bool) -> Vec<Range<u64>> {
        self.areas
            .iter()
            .filter(|(_, area)| wanted(area))
            .map(|(start, area)| start..area.end)
            .collect()
    }

    /// Writes what the program stored in shared mappings back to their files.
    pub fn write_back(&mut self, range: Range<u64>) {
        if !self.shares_files {
            return;
        }
        for (start, area) in self.areas.overlapping(range) {
            if area.writes_back() {
                self.write_area_back(start, &area);
            }
        }
    }

    fn write_area_back(&mut self, start: u64, area: &Area) {
        let Backing::File { file, offset, .. } = &area.backing else {
            return;
        };
        let size = file.size().unwrap_or(0);
        let pages = self
            .space
            .mapped_pages(start, (area.end - start) / PAGE_SIZE);
        let dirty: Vec<u64> = pages
            .into_iter()
            .filter(|&page| {
                self.space
                    .translate(page)
                    .is_some_and(|(_, mapped)| mapped.write)
            })
            .collect();
        for run in dirty.chunk_by(|page, next| page + PAGE_SIZE == *next) {
            for batch in run.chunks(BATCH) {
                let position = offset + (batch[0] - start);
                let length = size.saturating_sub(position);
                // The program has no way to learn of a failure here, as on Linux.
                let _ = file.write_at(position, &self.contents(batch, length));
                let count = batch.len() as u64;
                self.space.protect(batch[0], count, area.clean_protection());
            }
        }
    }

    /// The bytes of consecutive pages, at most `length`.
    fn contents(&self, pages: &[u64], mut length: u64) -> Vec<VolatileSlice<'_>> {
        let mut slices = Vec::new();
        for &page in pages {
            let part = length.min(PAGE_SIZE);
            length -= part;
            slices.extend(
                self.space
                    .slice(page, part as usize)
                    .filter(|slice| !slice.is_empty()),
            );
        }
        slices
    }
}
