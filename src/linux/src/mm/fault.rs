//! Brings pages in.
//!
//! A fault maps more than the one page: the neighbours that the area has not mapped yet, in an
//! aligned block. For zeros this costs nothing, because the host backs a page only when it is
//! touched; for files it reads ahead. When memory runs short blocks shrink, and what was mapped
//! ahead but never touched is taken back.

use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vmm::page_table::Owner;
use agentrt_vmm::{PhysicalRun, Protection};

use super::area::{Area, Backing};
use super::{Mm, USER, page_ceil, page_floor};

/// Pages in a block of zeros: what one page table maps.
const ANONYMOUS_BLOCK: u64 = 512;
/// Pages in a block of a file: reading a few too many costs less than one more fault.
const FILE_BLOCK: u64 = 64;

/// Why an access is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is mapped there (SEGV_MAPERR).
    NotMapped,
    /// The area does not allow it (SEGV_ACCERR).
    Denied,
    /// The file does not reach there, or cannot be read (BUS_ADRERR).
    Bus,
    /// There is no memory left.
    OutOfMemory,
}

impl Mm {
    /// Makes an access at `address` possible that needs the rights in `needed`.
    ///
    /// # Errors
    /// Why it is not possible.
    pub fn fault(&mut self, address: u64, needed: Protection) -> Result<(), Fault> {
        let (start, area) = self.areas.find(address).ok_or(Fault::NotMapped)?;
        if !allows(area.protection, needed) {
            return Err(Fault::Denied);
        }
        if let Some((_, mapped)) = self.space.translate(address) {
            if !allows(mapped, needed) {
                let protection = area.protection;
                self.space.protect(page_floor(address), 1, protection);
            }
            return Ok(());
        }
        self.faults += 1;
        let area = area.clone();
        let page = page_floor(address);
        match self.bring_in(start, &area, page) {
            Err(Fault::OutOfMemory) => {
                self.reclaim();
                self.bring_in(start, &area, page)?;
            }
            result => result?,
        }
        if needed.write && area.writes_back() {
            self.space.protect(page, 1, area.protection);
        }
        Ok(())
    }

    /// Maps what of an area that was just made is sure to be used, before the program faults on it:
    /// zeros, up to one block, which cost nothing; and the data of a program or library, which the
    /// dynamic linker relocates. What fails here comes when it is touched.
    pub(super) fn map_ahead(&mut self, start: u64) {
        let Some((area_start, area)) = self.areas.find(start) else {
            return;
        };
        let block = self.affordable(ANONYMOUS_BLOCK);
        if !area.protection.accessible() || block < ANONYMOUS_BLOCK {
            return;
        }
        let area = area.clone();
        let pages = (area.end - start) / PAGE_SIZE;
        match &area.backing {
            Backing::Anonymous => {
                let run = self.space.unmapped_run(start, pages.min(block));
                let _ = self.map_run(area_start, &area, start, run);
            }
            Backing::File { .. } => {
                if area.protection.write && !area.shared && pages <= FILE_BLOCK {
                    let _ = self.bring_in(area_start, &area, start);
                }
            }
        }
    }

    fn bring_in(&mut self, start: u64, area: &Area, page: u64) -> Result<(), Fault> {
        let block = match area.backing {
            Backing::Anonymous => self.affordable(ANONYMOUS_BLOCK),
            Backing::File { .. } => self.affordable(FILE_BLOCK),
        };
        let block_bytes = block * PAGE_SIZE;
        let mut position = (page - page % block_bytes).max(start);
        let last = (page - page % block_bytes + block_bytes).min(file_end(start, area)?);
        if page >= last {
            return Err(Fault::Bus);
        }
        while position < last {
            let run = self
                .space
                .unmapped_run(position, (last - position) / PAGE_SIZE);
            if let Err(fault) = self.map_run(start, area, position, run) {
                // The neighbours may fail to come, the page itself may not.
                return if self.space.translate(page).is_some() {
                    Ok(())
                } else {
                    Err(fault)
                };
            }
            position += run.max(1) * PAGE_SIZE;
        }
        Ok(())
    }

    /// Maps `pages` pages at `address` and fills them.
    fn map_run(&mut self, start: u64, area: &Area, address: u64, pages: u64) -> Result<(), Fault> {
        let mut done = 0;
        while done < pages {
            let position = address + done * PAGE_SIZE;
            let left = pages - done;
            let protection = area.clean_protection();
            let run = match area.backing {
                Backing::Anonymous => {
                    self.space
                        .map_new(position, left, protection, Owner::Program)
                }
                Backing::File { .. } => self.space.map_to_fill(position, left, protection),
            };
            let run = run.map_err(|_| Fault::OutOfMemory)?;
            if let Err(fault) = self.fill(start, area, position, run) {
                self.space.unmap(position, run.pages);
                return Err(fault);
            }
            done += run.pages;
        }
        Ok(())
    }

    fn fill(&self, start: u64, area: &Area, address: u64, run: PhysicalRun) -> Result<(), Fault> {
        let Backing::File {
            file,
            offset,
            patches,
            ..
        } = &area.backing
        else {
            return Ok(());
        };
        let memory = self.space.memory();
        let length = (run.pages * PAGE_SIZE) as usize;
        let mut slice = memory.slice(run.start, length).ok_or(Fault::Bus)?;
        let mut position = offset + (address - start);
        while !slice.is_empty() {
            let count = file.read_at(position, &[slice]).map_err(|_| Fault::Bus)?;
            if count == 0 {
                break;
            }
            position += count as u64;
            slice = slice
                .offset(count.min(slice.len()))
                .map_err(|_| Fault::Bus)?;
        }
        super::text::apply(
            patches,
            address,
            memory.slice(run.start, length).ok_or(Fault::Bus)?,
        );
        Ok(())
    }

    /// Fewer pages are mapped ahead the less memory is free.
    fn affordable(&self, block: u64) -> u64 {
        let memory = self.space.memory();
        let total = memory.free_pages() + memory.allocated_pages();
        match memory.free_pages() * 16 / total {
            0 => 1,
            1..4 => block / 4,
            _ => block,
        }
    }

    /// Takes back pages of zeros that were mapped ahead and never touched.
    fn reclaim(&mut self) {
        let ranges: Vec<(u64, u64)> = self
            .areas
            .iter()
            .filter(|(start, area)| {
                // The time page's place never changes.
                USER.contains(start) && matches!(area.backing, Backing::Anonymous)
            })
            .map(|(start, area)| (start, (area.end - start) / PAGE_SIZE))
            .collect();
        self.space.reclaim_untouched(&ranges);
    }
}

/// The end of the pages that can be brought in: of the area, or of what the file fills of it.
fn file_end(start: u64, area: &Area) -> Result<u64, Fault> {
    let Backing::File { file, offset, .. } = &area.backing else {
        return Ok(area.end);
    };
    let size = file.size().map_err(|_| Fault::Bus)?;
    let bytes = page_ceil(size.saturating_sub(*offset)).unwrap_or(u64::MAX);
    Ok(start.saturating_add(bytes).min(area.end))
}

fn allows(area: Protection, needed: Protection) -> bool {
    area.accessible() && (!needed.write || area.write) && (!needed.execute || area.execute)
}
