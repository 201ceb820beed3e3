//! Maps, protects and unmaps guest-virtual pages: page table, memory and KVM kept in step.
//!
//! Page tables are written by the host. KVM reads an entry anew whenever it has none cached, so an
//! entry may gain rights in place; one that loses rights or moves needs KVM's cached translation
//! to be dropped, which [`GuestMemory::forget_translations`] and [`GuestMemory::release`] do.

use agentrt_shim_abi::PAGE_SIZE;
use vm_memory::VolatileSlice;

use crate::memory::{GuestMemory, OutOfMemory, PhysicalRun};
use crate::page_table::{Owner, PageTable, Protection};

/// The address space of one guest.
pub struct AddressSpace {
    memory: GuestMemory,
    table: PageTable,
}

impl AddressSpace {
    /// An address space in which nothing is mapped.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the memory has no page for the root table.
    pub fn new(mut memory: GuestMemory) -> Result<AddressSpace, OutOfMemory> {
        let table = PageTable::new(&mut memory)?;
        Ok(AddressSpace { memory, table })
    }

    /// The guest-physical memory.
    pub fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    /// Guest-physical address of the root page table.
    pub fn root(&self) -> u64 {
        self.table.root()
    }

    /// Maps new zeroed pages at `address`: at least one and at most `pages`, all consecutive in
    /// guest-physical memory. Nothing may be mapped there yet.
    ///
    /// # Errors
    /// [`OutOfMemory`] if no page is left.
    pub fn map_new(
        &mut self,
        address: u64,
        pages: u64,
        protection: Protection,
        owner: Owner,
    ) -> Result<PhysicalRun, OutOfMemory> {
        let run = self.memory.allocate(pages)?;
        self.map_run(address, run, protection, owner)
    }

    /// As [`AddressSpace::map_new`], for pages of the program's that the host is about to fill.
    ///
    /// # Errors
    /// [`OutOfMemory`] if no page is left.
    pub fn map_to_fill(
        &mut self,
        address: u64,
        pages: u64,
        protection: Protection,
    ) -> Result<PhysicalRun, OutOfMemory> {
        let run = self.memory.allocate_to_fill(pages)?;
        self.map_run(address, run, protection, Owner::Program)
    }

    /// Maps what of `run` there are page tables for, at least one page, and gives back the rest.
    fn map_run(
        &mut self,
        address: u64,
        run: PhysicalRun,
        protection: Protection,
        owner: Owner,
    ) -> Result<PhysicalRun, OutOfMemory> {
        let mapped = self
            .table
            .map(&mut self.memory, address, run, protection, owner);
        let Err((mapped, _)) = mapped else {
            return Ok(run);
        };
        self.memory.release(PhysicalRun {
            start: run.start + mapped * PAGE_SIZE,
            pages: run.pages - mapped,
        });
        match mapped {
            0 => Err(OutOfMemory),
            pages => Ok(PhysicalRun {
                start: run.start,
                pages,
            }),
        }
    }

    /// Where `address` is mapped to, and what may be done there.
    pub fn translate(&self, address: u64) -> Option<(u64, Protection)> {
        self.table.translate(&self.memory, address)
    }

    /// Length in pages of the run from `address` on, at most `pages`, in which nothing is mapped.
    pub fn unmapped_run(&self, address: u64, pages: u64) -> u64 {
        let mut first = None;
        self.table
            .for_each_page(&self.memory, address, pages, |virtual_address, _| {
                first.get_or_insert(virtual_address);
            });
        first.map_or(pages, |first| (first - address) / PAGE_SIZE)
    }

    /// The addresses of the pages that are mapped in `pages` pages from `address` on, ascending.
    /// Costs little where nothing is mapped, however large the range.
    pub fn mapped_pages(&self, address: u64, pages: u64) -> Vec<u64> {
        let mut mapped = Vec::new();
        self.table
            .for_each_page(&self.memory, address, pages, |virtual_address, _| {
                mapped.push(virtual_address);
            });
        mapped
    }

    /// Unmaps what is mapped in `pages` pages from `address` on, and frees it.
    pub fn unmap(&mut self, address: u64, pages: u64) {
        let mut runs = Runs::default();
        self.table
            .unmap(&self.memory, address, pages, |_, physical| {
                runs.push(physical)
            });
        for run in runs.0 {
            self.memory.release(run);
        }
    }

    /// Changes what may be done with what is mapped in `pages` pages from `address` on.
    pub fn protect(&mut self, address: u64, pages: u64, protection: Protection) {
        let mut runs = Runs::default();
        self.table
            .protect(&self.memory, address, pages, protection, |page| {
                runs.push(page)
            });
        for run in runs.0 {
            self.memory.forget_translations(run);
        }
    }

    /// Moves what is mapped in `pages` pages from `from` on to `to`, where nothing may be mapped.
    ///
    /// # Errors
    /// [`OutOfMemory`] if a page table cannot be allocated; pages that found no place are freed.
    pub fn relocate(
        &mut self,
        from: u64,
        to: u64,
        pages: u64,
        protection: Protection,
    ) -> Result<(), OutOfMemory> {
        let mut moved = Vec::new();
        let mut runs = Runs::default();
        self.table
            .unmap(&self.memory, from, pages, |address, page| {
                moved.push((address, page));
                runs.push(page);
            });
        for run in runs.0 {
            self.memory.forget_translations(run);
        }
        let mut result = Ok(());
        for (address, page) in moved {
            let run = PhysicalRun {
                start: page,
                pages: 1,
            };
            let target = to + (address - from);
            let mapped = self
                .table
                .map(&mut self.memory, target, run, protection, Owner::Program);
            if let Err((_, error)) = mapped {
                self.memory.release(run);
                result = Err(error);
            }
        }
        result
    }

    /// Makes what is mapped in `pages` pages from `address` on read as zeros again.
    pub fn discard(&mut self, address: u64, pages: u64) {
        let mut runs = Runs::default();
        self.table
            .for_each_page(&self.memory, address, pages, |_, page| runs.push(page));
        for run in runs.0 {
            self.memory.discard(run);
        }
    }

    /// Unmaps pages of the given ranges that were mapped ahead but never touched, which loses
    /// nothing, and frees them. Ranges are (address, pages) of memory that is zero until written.
    pub fn reclaim_untouched(&mut self, ranges: &[(u64, u64)]) {
        let backed = self.memory.backed();
        let is_backed = |page: u64| backed.get((page / PAGE_SIZE) as usize) != Some(&false);
        for &(address, pages) in ranges {
            let mut untouched = Runs::default();
            self.table
                .for_each_page(&self.memory, address, pages, |virtual_address, page| {
                    if !is_backed(page) {
                        untouched.push(virtual_address);
                    }
                });
            for run in untouched.0 {
                self.unmap(run.start, run.pages);
            }
        }
    }

    /// The bytes at guest-virtual `address` up to the end of their page, at most `length`, whatever
    /// ring 3 may do with them. None where nothing is mapped.
    pub fn slice(&self, address: u64, length: usize) -> Option<VolatileSlice<'_>> {
        let (physical, _) = self.translate(address)?;
        let length = length.min((PAGE_SIZE - address % PAGE_SIZE) as usize);
        self.memory.slice(physical, length)
    }

    /// Pages of guest memory that the host backs, page tables included.
    pub fn resident_pages(&self) -> u64 {
        self.memory
            .backed()
            .into_iter()
            .filter(|&backed| backed)
            .count() as u64
    }
}

/// Pages gathered into consecutive runs, be they guest-physical or guest-virtual.
#[derive(Default)]
struct Runs(Vec<PhysicalRun>);

impl Runs {
    fn push(&mut self, page: u64) {
        match self.0.last_mut() {
            Some(run) if run.start + run.pages * PAGE_SIZE == page => run.pages += 1,
            _ => self.0.push(PhysicalRun {
                start: page,
                pages: 1,
            }),
        }
    }
}
