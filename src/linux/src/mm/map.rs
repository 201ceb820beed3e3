//! Changes what is mapped: mmap, munmap, mprotect, mremap, brk, madvise, msync.

use std::ops::Range;

use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vmm::Protection;
use rustix::io::Errno;

use super::area::{Area, Backing};
use super::fault::Fault;
use super::{AREAS_MAX, MMAP_TOP, Mm, USER, page_ceil, page_floor};

/// Where an area shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Near this address if it is free there, else anywhere; 0 is no wish.
    Hint(u64),
    /// Exactly here, in place of what is there (MAP_FIXED).
    Replace(u64),
    /// Exactly here, if it is free (MAP_FIXED_NOREPLACE).
    Exactly(u64),
}

impl Mm {
    /// Maps `length` bytes of `area`, whose end is set by this function.
    ///
    /// # Errors
    /// As mmap(2): EINVAL, ENOMEM, EEXIST, EPERM.
    pub fn map(&mut self, placement: Placement, length: u64, area: Area) -> Result<u64, Errno> {
        let length = page_ceil(length)
            .filter(|&length| length != 0)
            .ok_or(Errno::NOMEM)?;
        let start = self.place(placement, length)?;
        self.check_room()?;
        self.clear(start..start + length);
        let end = start + length;
        let mut area = Area { end, ..area };
        if area.protection.execute {
            self.rewrite(start, &mut area);
        }
        self.shares_files |= area.shared && matches!(area.backing, Backing::File { .. });
        self.areas.insert(start, area);
        self.map_ahead(start);
        Ok(start)
    }

    fn place(&self, placement: Placement, length: u64) -> Result<u64, Errno> {
        let fixed = |address: u64| {
            if !address.is_multiple_of(PAGE_SIZE) {
                return Err(Errno::INVAL);
            }
            if address < USER.start {
                return Err(Errno::PERM);
            }
            let end = address.checked_add(length).ok_or(Errno::NOMEM)?;
            if end > USER.end {
                Err(Errno::NOMEM)
            } else {
                Ok(address..end)
            }
        };
        match placement {
            Placement::Replace(address) => Ok(fixed(address)?.start),
            Placement::Exactly(address) => {
                let range = fixed(address)?;
                let start = range.start;
                if self.areas.is_free(range) {
                    Ok(start)
                } else {
                    Err(Errno::EXIST)
                }
            }
            Placement::Hint(address) => {
                let wished = page_floor(address);
                match fixed(wished) {
                    Ok(range) if address != 0 && self.areas.is_free(range.clone()) => Ok(wished),
                    _ => self.find_gap(length),
                }
            }
        }
    }

    /// A free range of `length` bytes, as high as mmap would choose it.
    ///
    /// # Errors
    /// ENOMEM if there is none.
    pub fn find_gap(&self, length: u64) -> Result<u64, Errno> {
        self.areas
            .highest_gap(USER.start..MMAP_TOP, length)
            .or_else(|| self.areas.lowest_gap(MMAP_TOP..USER.end, length))
            .ok_or(Errno::NOMEM)
    }

    fn check_room(&self) -> Result<(), Errno> {
        // One new area, and up to two more when an old one is split.
        if self.areas.count() + 3 > AREAS_MAX {
            Err(Errno::NOMEM)
        } else {
            Ok(())
        }
    }

    /// Unmaps `length` bytes from `address` on.
    ///
    /// # Errors
    /// EINVAL if the range is not aligned, empty or outside the program's part of memory; ENOMEM if
    /// there are too many areas to split one.
    pub fn unmap(&mut self, address: u64, length: u64) -> Result<(), Errno> {
        let range = user_range(address, length).ok_or(Errno::INVAL)?;
        if range.is_empty() {
            return Err(Errno::INVAL);
        }
        // Only a hole in the middle of an area makes one more: a program that has too many must
        // still be able to give some up.
        let makes_hole = self
            .areas
            .find(range.start)
            .is_some_and(|(start, area)| start < range.start && range.end < area.end);
        if makes_hole {
            self.check_room()?;
        }
        self.clear(range);
        Ok(())
    }

    /// Takes everything out of `range`.
    pub(super) fn clear(&mut self, range: Range<u64>) {
        if range.is_empty() || self.areas.is_free(range.clone()) {
            return;
        }
        self.write_back(range.clone());
        for (start, area) in self.areas.remove(range.clone()) {
            self.space.unmap(start, (area.end - start) / PAGE_SIZE);
        }
        self.release_trampolines();
    }

    /// Takes everything out of memory, as a new program image demands.
    pub fn clear_all(&mut self) {
        self.clear(USER);
        self.brk = (0, 0);
        self.settled_sites.clear();
        self.shares_files = false;
    }

    /// Changes what may be done with `length` bytes from `address` on.
    ///
    /// # Errors
    /// As mprotect(2): EINVAL if not aligned, ENOMEM where nothing is mapped, EACCES for writing to
    /// a shared mapping of a file that is not open for writing.
    pub fn protect(
        &mut self,
        address: u64,
        length: u64,
        protection: Protection,
    ) -> Result<(), Errno> {
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::INVAL);
        }
        let range = user_range(address, length).ok_or(Errno::NOMEM)?;
        if range.is_empty() {
            return Ok(());
        }
        self.check_room()?;
        let mut position = range.start;
        for (start, mut area) in self.areas.overlapping(range.clone()) {
            // As on Linux, what lies before a hole is changed and what lies behind it is not.
            if start != position {
                return Err(Errno::NOMEM);
            }
            position = area.end;
            if protection.write
                && area.shared
                && matches!(
                    area.backing,
                    Backing::File {
                        write_back: false,
                        ..
                    }
                )
            {
                return Err(Errno::ACCESS);
            }
            let becomes_code = protection.execute && !area.protection.execute;
            self.write_back(start..area.end);
            area.protection = protection;
            self.areas.remove(start..area.end);
            if becomes_code {
                self.rewrite(start, &mut area);
            }
            let pages = (area.end - start) / PAGE_SIZE;
            self.space.protect(start, pages, area.clean_protection());
            self.areas.insert(start, area);
        }
        if position < range.end {
            return Err(Errno::NOMEM);
        }
        Ok(())
    }

    /// Resizes the area of `old` bytes at `address` to `new` bytes, moving it to `target` (or, with
    /// `may_move`, to where there is room) if need be. Returns where it is then.
    ///
    /// # Errors
    /// As mremap(2): EINVAL, EFAULT, ENOMEM.
    pub fn remap(
        &mut self,
        address: u64,
        old: u64,
        new: u64,
        may_move: bool,
        target: Option<u64>,
    ) -> Result<u64, Errno> {
        let new = page_ceil(new).filter(|&new| new != 0).ok_or(Errno::INVAL)?;
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::INVAL);
        }
        let old = page_ceil(old).filter(|&old| old != 0).ok_or(Errno::INVAL)?;
        let old_range = user_range(address, old).ok_or(Errno::FAULT)?;
        let (_, area) = self.areas.find(address).ok_or(Errno::FAULT)?;
        if area.end < old_range.end {
            return Err(Errno::FAULT);
        }
        self.check_room()?;
        if let Some(target) = target {
            let target_range = user_range(target, new).ok_or(Errno::INVAL)?;
            if target_range.start < old_range.end && old_range.start < target_range.end {
                return Err(Errno::INVAL);
            }
            self.place(Placement::Replace(target), new)?;
            self.clear(target_range);
            if new < old {
                self.clear(address + new..old_range.end);
            }
            return self.move_area(address..address + old.min(new), target, new);
        }
        if new <= old {
            self.clear(address + new..old_range.end);
            return Ok(address);
        }
        let growth = old_range.end..address.checked_add(new).ok_or(Errno::NOMEM)?;
        if growth.end <= USER.end && self.areas.is_free(growth.clone()) {
            return self.grow(old_range, growth);
        }
        if !may_move {
            return Err(Errno::NOMEM);
        }
        let target = self.find_gap(new)?;
        self.move_area(old_range, target, new)
    }

    fn grow(&mut self, old: Range<u64>, growth: Range<u64>) -> Result<u64, Errno> {
        let (start, mut area) = self.overlapping_one(old.clone())?;
        self.areas.remove(start..area.end);
        area.end = growth.end;
        self.areas.insert(start, area);
        Ok(old.start)
    }

    /// Moves what is in `old` to `target` and makes it `length` bytes long. Nothing is at `target`.
    fn move_area(&mut self, old: Range<u64>, target: u64, length: u64) -> Result<u64, Errno> {
        self.write_back(old.clone());
        let (_, mut area) = self.overlapping_one(old.clone())?;
        let pages = (old.end - old.start) / PAGE_SIZE;
        let rewritten = match &mut area.backing {
            Backing::File { patches, .. } => !std::mem::take(patches).is_empty(),
            Backing::Anonymous => false,
        };
        if rewritten && !area.protection.write {
            // Jumps to trampolines are relative: read the code anew.
            self.clear(old);
        } else {
            let moved = self
                .space
                .relocate(old.start, target, pages, area.clean_protection());
            self.areas.remove(old);
            moved.map_err(|_| Errno::NOMEM)?;
        }
        area.end = target + length;
        self.areas.insert(target, area);
        self.release_trampolines();
        Ok(target)
    }

    fn overlapping_one(&self, range: Range<u64>) -> Result<(u64, Area), Errno> {
        self.areas
            .overlapping(range)
            .into_iter()
            .next()
            .ok_or(Errno::FAULT)
    }

    /// Makes the rest of a page zero, from `address` on, whatever the program may do with it.
    ///
    /// # Errors
    /// EFAULT if the page cannot be brought in.
    pub fn zero_rest_of_page(&mut self, address: u64) -> Result<(), Errno> {
        let length = (PAGE_SIZE - address % PAGE_SIZE) % PAGE_SIZE;
        if length > 0 {
            self.fault(address, Protection::NONE)
                .map_err(|_| Errno::FAULT)?;
            let slice = self
                .space
                .slice(address, length as usize)
                .ok_or(Errno::FAULT)?;
            slice.copy_from(&[0; PAGE_SIZE as usize][..length as usize]);
        }
        Ok(())
    }

    /// Sets where the heap starts, for a new program image.
    pub fn start_brk(&mut self, address: u64) {
        self.brk = (address, address);
    }

    /// Moves the end of the heap; returns where it is then, the old end if it cannot move.
    pub fn set_brk(&mut self, wanted: u64) -> u64 {
        let (start, end) = self.brk;
        let (Some(old_top), Some(new_top)) = (page_ceil(end), page_ceil(wanted)) else {
            return end;
        };
        if wanted < start || new_top > USER.end {
            return end;
        }
        if new_top < old_top {
            self.clear(new_top..old_top);
        } else if new_top > old_top {
            let growth = old_top..new_top;
            if !self.areas.is_free(growth.clone())
                || self.check_room().is_err()
                || !self.is_affordable(growth.end - growth.start)
            {
                return end;
            }
            let area = Area::anonymous(new_top, Protection::READ_WRITE, false, "[heap]");
            self.areas.insert(old_top, area);
            self.map_ahead(old_top);
        }
        self.brk = (start, wanted);
        wanted
    }

    /// Could `length` bytes of private memory ever be written? Linux's heuristic overcommit refuses
    /// what exceeds all memory there is (kernel doc mm/overcommit-accounting).
    pub fn is_affordable(&self, length: u64) -> bool {
        length <= self.space.memory().size()
    }

    /// Gives up the contents of private pages: zeros or the file's bytes come back.
    pub fn discard(&mut self, range: Range<u64>) {
        for (start, area) in self.areas.overlapping(range) {
            let pages = (area.end - start) / PAGE_SIZE;
            match area.backing {
                Backing::Anonymous if area.shared => {}
                Backing::Anonymous => self.space.discard(start, pages),
                Backing::File { .. } => {
                    self.write_back(start..area.end);
                    self.space.unmap(start, pages);
                }
            }
        }
    }

    /// Which of the pages from `address` on are there, one byte each (mincore(2)).
    ///
    /// # Errors
    /// EINVAL if not aligned, ENOMEM where nothing is mapped.
    pub fn resident(&self, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::INVAL);
        }
        let range = user_range(address, length).ok_or(Errno::NOMEM)?;
        if !self.areas.covers(range.clone()) || range.end - range.start > 1 << 36 {
            return Err(Errno::NOMEM);
        }
        let pages = (range.end - range.start) / PAGE_SIZE;
        let mut resident = vec![0; pages as usize];
        for page in self.space.mapped_pages(range.start, pages) {
            resident[((page - range.start) / PAGE_SIZE) as usize] = 1;
        }
        Ok(resident)
    }

    /// Is every byte of `range` mapped?
    pub fn is_mapped(&self, range: Range<u64>) -> bool {
        self.areas.covers(range)
    }

    /// Brings in the pages of `range` that can be.
    ///
    /// # Errors
    /// ENOMEM when memory runs out.
    pub fn populate(&mut self, range: Range<u64>) -> Result<(), Errno> {
        // Pages that were brought in and not touched may be taken back for later ones, so a range
        // larger than the memory would go on for ever.
        let mut left = self.space.memory().size() / PAGE_SIZE;
        for (start, area) in self.areas.overlapping(range) {
            for page in (start..area.end).step_by(PAGE_SIZE as usize) {
                left = left.checked_sub(1).ok_or(Errno::NOMEM)?;
                match self.fault(page, Protection::NONE) {
                    Err(Fault::OutOfMemory) => return Err(Errno::NOMEM),
                    Err(_) => break,
                    Ok(()) => {}
                }
            }
        }
        Ok(())
    }
}

/// The pages of `length` bytes from `address` on, if they are the program's.
pub(super) fn user_range(address: u64, length: u64) -> Option<Range<u64>> {
    let end = page_ceil(address.checked_add(length)?)?;
    let aligned = address.is_multiple_of(PAGE_SIZE);
    (aligned && end <= USER.end).then_some(address..end)
}
