//! Guest-physical memory: one private, unreserved mapping of the host, given to KVM piece by piece.
//!
//! Guest-physical address = offset into the mapping. Pages that no guest touches cost nothing.
//! Memslots are registered as allocation reaches them, because KVM allocates 8 bytes for each page
//! of a memslot when shadow paging is in use.

use std::fs::File;
use std::os::unix::fs::FileExt;

use agentrt_shim_abi::PAGE_SIZE;
use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;
use vm_memory::{MmapRegion, VolatileMemory, VolatileSlice};

use crate::vm::VmError;

/// First memslot's size in bytes; each further one doubles what is registered.
const FIRST_SLOT: u64 = 32 << 20;

/// Pages of 4 KiB in a huge page (SDM vol. 3A, 4.5: 2-MByte pages).
const HUGE_PAGE: u64 = 512;

/// A guest that has fewer free huge pages than this gets small ones.
const HUGE_PAGES_SPARED: u64 = 16;

/// Smallest and largest size of a guest's memory in bytes.
pub const MEMORY_RANGE: std::ops::RangeInclusive<u64> = (8 << 20)..=(1 << 40);

/// Bytes of an entry of /proc/self/pagemap, and its bits for "present" and "swapped" (kernel doc
/// admin-guide/mm/pagemap).
const PAGEMAP_ENTRY: usize = 8;
const PAGEMAP_BACKED: u64 = 1 << 63 | 1 << 62;

/// No guest-physical page is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the guest's memory is used up")]
pub struct OutOfMemory;

/// Consecutive guest-physical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalRun {
    /// Guest-physical address of the first page.
    pub start: u64,
    /// Number of pages.
    pub pages: u64,
}

/// The memory of one guest.
pub struct GuestMemory {
    // Declared before the mapping: KVM lets go of the memory before it is unmapped.
    vm: VmFd,
    region: MmapRegion<()>,
    registered: u64,
    slots: u32,
    allocator: PageAllocator,
    /// What is left of the huge page that pages to be filled come from.
    dense: PhysicalRun,
    /// Pages that were allocated to be filled.
    filled: u64,
}

impl GuestMemory {
    /// Reserves `size` bytes (a multiple of the page size, within [`MEMORY_RANGE`]).
    ///
    /// # Errors
    /// If the host refuses the mapping.
    pub fn new(vm: VmFd, size: u64) -> Result<GuestMemory, VmError> {
        let size = size & !(PAGE_SIZE - 1);
        if !MEMORY_RANGE.contains(&size) {
            return Err(VmError::MemorySize(size));
        }
        let region = MmapRegion::new(size as usize).map_err(VmError::Memory)?;
        let allocator = PageAllocator::new(size / PAGE_SIZE);
        let memory = GuestMemory {
            vm,
            region,
            registered: 0,
            slots: 0,
            allocator,
            dense: PhysicalRun { start: 0, pages: 0 },
            filled: 0,
        };
        // A huge page would back 511 pages that nobody touched for one that somebody did.
        let all = PhysicalRun {
            start: 0,
            pages: size / PAGE_SIZE,
        };
        memory.advise(all, libc::MADV_NOHUGEPAGE);
        Ok(memory)
    }

    /// The KVM virtual machine that this memory belongs to.
    pub fn vm(&self) -> &VmFd {
        &self.vm
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.region.size() as u64
    }

    /// Pages that are allocated.
    pub fn allocated_pages(&self) -> u64 {
        self.allocator.used
    }

    /// Pages that are free.
    pub fn free_pages(&self) -> u64 {
        self.size() / PAGE_SIZE - self.allocator.used
    }

    /// The bytes at guest-physical `address`, or None if they are not all inside.
    pub fn slice(&self, address: u64, length: usize) -> Option<VolatileSlice<'_>> {
        self.region.get_slice(address.try_into().ok()?, length).ok()
    }

    /// Reads the 64-bit word at guest-physical `address`; 0 outside the memory.
    pub fn load(&self, address: u64) -> u64 {
        self.region
            .get_ref::<u64>(address as usize)
            .map_or(0, |word| word.load())
    }

    /// Writes the 64-bit word at guest-physical `address`; nothing outside the memory.
    pub fn store(&self, address: u64, value: u64) {
        if let Ok(word) = self.region.get_ref::<u64>(address as usize) {
            word.store(value);
        }
    }

    /// Allocates between 1 and `pages` consecutive pages, which read as zeros.
    ///
    /// # Errors
    /// [`OutOfMemory`] if none is free or KVM refuses a further memslot.
    pub fn allocate(&mut self, pages: u64) -> Result<PhysicalRun, OutOfMemory> {
        let run = self.allocator.allocate(pages).ok_or(OutOfMemory)?;
        if self
            .register_up_to(run.start + run.pages * PAGE_SIZE)
            .is_err()
        {
            self.allocator.release(run);
            return Err(OutOfMemory);
        }
        Ok(run)
    }

    /// As [`GuestMemory::allocate`], for pages that the host is about to fill: backed by memory
    /// already, from a huge page if the host has one, which costs a fraction of as many faults.
    ///
    /// # Errors
    /// [`OutOfMemory`] as there.
    pub fn allocate_to_fill(&mut self, pages: u64) -> Result<PhysicalRun, OutOfMemory> {
        if self.dense.pages == 0 && !self.begin_huge_page() {
            let run = self.allocate(pages)?;
            self.advise(run, libc::MADV_POPULATE_WRITE);
            self.filled += run.pages;
            return Ok(run);
        }
        let taken = pages.min(self.dense.pages);
        let run = PhysicalRun {
            start: self.dense.start,
            pages: taken,
        };
        self.dense.start += taken * PAGE_SIZE;
        self.dense.pages -= taken;
        Ok(run)
    }

    /// Sets a huge page aside for pages to be filled, if the guest has memory to spare and its
    /// program is not so small that most of the page would go to waste.
    fn begin_huge_page(&mut self) -> bool {
        let is_small = self.filled < HUGE_PAGE / 2;
        if is_small || self.free_pages() < HUGE_PAGES_SPARED * HUGE_PAGE {
            return false;
        }
        // Huge pages are aligned in the host's address space.
        let misaligned = self.region.as_ptr() as u64 / PAGE_SIZE % HUGE_PAGE;
        let Some(run) = self.allocator.allocate_aligned(HUGE_PAGE, misaligned) else {
            return false;
        };
        if self
            .register_up_to(run.start + run.pages * PAGE_SIZE)
            .is_err()
        {
            self.allocator.release(run);
            return false;
        }
        self.advise(run, libc::MADV_HUGEPAGE);
        self.dense = run;
        true
    }

    /// Gives pages back: to the allocator, and their memory to the host.
    pub fn release(&mut self, run: PhysicalRun) {
        self.discard(run);
        self.allocator.release(run);
    }

    /// Makes pages read as zeros and gives their memory back to the host.
    pub fn discard(&self, run: PhysicalRun) {
        self.advise(run, libc::MADV_DONTNEED);
    }

    /// Makes KVM forget every translation to these pages, in shadow page tables and TLBs alike, so
    /// that a page table entry changed by the host takes effect.
    ///
    /// KVM follows the host's own mapping (mmu notifiers), so it is enough to take write access
    /// away for a moment: the contents stay.
    pub fn forget_translations(&self, run: PhysicalRun) {
        let Some(slice) = self.slice(run.start, (run.pages * PAGE_SIZE) as usize) else {
            return;
        };
        let guard = slice.ptr_guard_mut();
        for protection in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
            // SAFETY: the range is page-aligned and inside our own mapping, as `slice` has checked;
            // this thread is the only one that accesses the mapping, and not during the call.
            let done = unsafe { libc::mprotect(guard.as_ptr().cast(), slice.len(), protection) };
            assert_eq!(
                done,
                0,
                "mprotect of guest memory: {}",
                std::io::Error::last_os_error()
            );
        }
    }

    /// For each page of the memory up to the highest allocated one: does the host keep something
    /// for it, in memory or in swap? All of them do if the host does not tell.
    pub fn backed(&self) -> Vec<bool> {
        let pages = self.allocator.high_water.min(self.size() / PAGE_SIZE);
        let mut entries = vec![0; pages as usize * PAGEMAP_ENTRY];
        let position = self.region.as_ptr() as u64 / PAGE_SIZE * PAGEMAP_ENTRY as u64;
        let read = File::open("/proc/self/pagemap")
            .and_then(|pagemap| pagemap.read_exact_at(&mut entries, position));
        if read.is_err() {
            return vec![true; pages as usize];
        }
        entries
            .as_chunks::<PAGEMAP_ENTRY>()
            .0
            .iter()
            .map(|&entry| u64::from_ne_bytes(entry) & PAGEMAP_BACKED != 0)
            .collect()
    }

    fn advise(&self, run: PhysicalRun, advice: i32) {
        let Some(slice) = self.slice(run.start, (run.pages * PAGE_SIZE) as usize) else {
            return;
        };
        // SAFETY: the range is page-aligned and inside our own private anonymous mapping, of which
        // no references exist, only volatile accesses.
        let done =
            unsafe { libc::madvise(slice.ptr_guard_mut().as_ptr().cast(), slice.len(), advice) };
        // Discarded pages must be gone. The rest is advice: a kernel may lack huge pages, and a host
        // that is short of memory populates no pages, which then come on first touch.
        assert!(
            done == 0 || advice != libc::MADV_DONTNEED,
            "madvise of guest memory failed"
        );
    }

    fn register_up_to(&mut self, end: u64) -> Result<(), VmError> {
        while self.registered < end {
            let grown = (self.registered * 2).max(FIRST_SLOT).min(self.size());
            let region = kvm_userspace_memory_region {
                slot: self.slots,
                flags: 0,
                guest_phys_addr: self.registered,
                memory_size: grown - self.registered,
                userspace_addr: self.region.as_ptr() as u64 + self.registered,
            };
            // SAFETY: the memory slot lies inside `region`, which lives as long as `vm` does, and
            // slots do not overlap since each starts where the one before it ends.
            unsafe { self.vm.set_user_memory_region(region) }.map_err(VmError::Memslot)?;
            self.registered = grown;
            self.slots += 1;
        }
        Ok(())
    }
}

/// Which guest-physical pages are in use: one bit each, next-fit.
struct PageAllocator {
    words: Vec<u64>,
    pages: u64,
    used: u64,
    next: u64,
    high_water: u64,
}

impl PageAllocator {
    fn new(pages: u64) -> PageAllocator {
        let words = vec![0; pages.div_ceil(64) as usize];
        PageAllocator {
            words,
            pages,
            used: 0,
            next: 0,
            high_water: 0,
        }
    }

    fn is_used(&self, page: u64) -> bool {
        self.words[(page / 64) as usize] & (1 << (page % 64)) != 0
    }

    /// First free page at or after `from`, skipping whole words of used ones.
    fn first_free(&self, from: u64) -> Option<u64> {
        let mut page = from;
        while page < self.pages {
            let free = !self.words[(page / 64) as usize] >> (page % 64);
            if free != 0 {
                let found = page + u64::from(free.trailing_zeros());
                return (found < self.pages).then_some(found);
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    fn allocate(&mut self, wanted: u64) -> Option<PhysicalRun> {
        let first = self.first_free(self.next).or_else(|| self.first_free(0))?;
        let mut pages = 0;
        while pages < wanted && first + pages < self.pages && !self.is_used(first + pages) {
            let page = first + pages;
            self.words[(page / 64) as usize] |= 1 << (page % 64);
            pages += 1;
        }
        self.used += pages;
        self.next = first + pages;
        self.high_water = self.high_water.max(self.next);
        Some(PhysicalRun {
            start: first * PAGE_SIZE,
            pages,
        })
    }

    /// Allocates exactly `pages` pages, where the first one's number plus `offset` is a multiple of
    /// `pages`.
    fn allocate_aligned(&mut self, pages: u64, offset: u64) -> Option<PhysicalRun> {
        let mut first = (pages - offset % pages) % pages;
        while first + pages <= self.pages {
            if (first..first + pages).all(|page| !self.is_used(page)) {
                for page in first..first + pages {
                    self.words[(page / 64) as usize] |= 1 << (page % 64);
                }
                self.used += pages;
                self.high_water = self.high_water.max(first + pages);
                return Some(PhysicalRun {
                    start: first * PAGE_SIZE,
                    pages,
                });
            }
            first += pages;
        }
        None
    }

    fn release(&mut self, run: PhysicalRun) {
        let first = run.start / PAGE_SIZE;
        for page in first..first + run.pages {
            debug_assert!(self.is_used(page));
            self.words[(page / 64) as usize] &= !(1 << (page % 64));
        }
        self.used -= run.pages;
        // Reuse low pages first: what is registered and warm stays small.
        self.next = self.next.min(first);
    }
}

#[cfg(test)]
mod tests;
