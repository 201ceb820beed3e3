//! The guest's page tables: four levels of 512 entries (Intel SDM vol. 3A, 4.5).
//!
//! An entry that is not zero owns a guest-physical page. It is *present* unless the page may not
//! be accessed at all (PROT_NONE): then it keeps the page's address with the present bit clear.
//! Entries are made with the accessed and dirty bits set, so that the processor never writes them
//! and walking them dirties no page.

use agentrt_shim_abi::PAGE_SIZE;

use crate::memory::{GuestMemory, OutOfMemory, PhysicalRun};

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED_DIRTY: u64 = 1 << 5 | 1 << 6;
/// Ignored by the processor: marks an entry that owns a page (SDM vol. 3A, table 4-20, bit 9).
const OWNED: u64 = 1 << 9;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const ENTRIES: u64 = 512;
/// Bytes that one table of the lowest level maps.
const LEAF_SPAN: u64 = ENTRIES * PAGE_SIZE;

/// What ring 3 may do with a page. On x86-64 a page that may be written or executed may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Loads are allowed.
    pub read: bool,
    /// Stores are allowed.
    pub write: bool,
    /// Instruction fetches are allowed.
    pub execute: bool,
}

impl Protection {
    /// No access (PROT_NONE).
    pub const NONE: Protection = Protection {
        read: false,
        write: false,
        execute: false,
    };
    /// Loads only.
    pub const READ: Protection = Protection {
        read: true,
        write: false,
        execute: false,
    };
    /// Loads and stores.
    pub const READ_WRITE: Protection = Protection {
        read: true,
        write: true,
        execute: false,
    };
    /// Loads and instruction fetches.
    pub const READ_EXECUTE: Protection = Protection {
        read: true,
        write: false,
        execute: true,
    };

    /// Is any access allowed?
    pub fn accessible(self) -> bool {
        self.read || self.write || self.execute
    }

    fn entry_bits(self, owner: Owner) -> u64 {
        if !self.accessible() {
            return OWNED;
        }
        let mut bits = OWNED | PRESENT | ACCESSED_DIRTY;
        if self.write {
            bits |= WRITABLE;
        }
        if owner == Owner::Program {
            bits |= USER;
        }
        if !self.execute {
            bits |= NO_EXECUTE;
        }
        bits
    }

    fn of_entry(entry: u64) -> Protection {
        let accessible = entry & PRESENT != 0;
        Protection {
            read: accessible,
            write: accessible && entry & WRITABLE != 0,
            execute: accessible && entry & NO_EXECUTE == 0,
        }
    }

    /// Does `self` allow something that `other` does not?
    fn exceeds(self, other: Protection) -> bool {
        (self.accessible() && !other.accessible())
            || (self.write && !other.write)
            || (self.execute && !other.execute)
    }
}

/// Who may access a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Ring 3.
    Program,
    /// Ring 0 only.
    Supervisor,
}

/// A page table tree. Its pages come out of the guest's own memory and stay for the guest's life.
pub struct PageTable {
    root: u64,
}

impl PageTable {
    /// An empty tree.
    ///
    /// # Errors
    /// [`OutOfMemory`] if there is no page for the root.
    pub fn new(memory: &mut GuestMemory) -> Result<PageTable, OutOfMemory> {
        Ok(PageTable {
            root: memory.allocate(1)?.start,
        })
    }

    /// Guest-physical address of the root, as CR3 takes it.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Maps `run` at `address`. The entries there must own nothing.
    ///
    /// # Errors
    /// [`OutOfMemory`] if a table cannot be allocated; what was mapped until then stays mapped, and
    /// the number of pages that were is returned beside it.
    pub fn map(
        &mut self,
        memory: &mut GuestMemory,
        address: u64,
        run: PhysicalRun,
        protection: Protection,
        owner: Owner,
    ) -> Result<(), (u64, OutOfMemory)> {
        let bits = protection.entry_bits(owner);
        let mut done = 0;
        while done < run.pages {
            let virtual_address = address + done * PAGE_SIZE;
            let leaf = self
                .leaf_or_new(memory, virtual_address)
                .map_err(|error| (done, error))?;
            let first = virtual_address / PAGE_SIZE % ENTRIES;
            let count = (ENTRIES - first).min(run.pages - done);
            for index in 0..count {
                let entry = leaf + (first + index) * 8;
                debug_assert_eq!(memory.load(entry), 0, "mapped twice: {virtual_address:#x}");
                memory.store(entry, (run.start + (done + index) * PAGE_SIZE) | bits);
            }
            done += count;
        }
        Ok(())
    }

    /// The guest-physical address that `address` is mapped to, and what may be done there; also for
    /// pages that may not be accessed. None where nothing is mapped.
    pub fn translate(&self, memory: &GuestMemory, address: u64) -> Option<(u64, Protection)> {
        let leaf = self.leaf(memory, address).ok()?;
        let entry = memory.load(leaf + address / PAGE_SIZE % ENTRIES * 8);
        (entry != 0).then(|| {
            (
                entry & ADDRESS | (address % PAGE_SIZE),
                Protection::of_entry(entry),
            )
        })
    }

    /// Empties the entries of `pages` pages from `address` on; gives each owned page to `freed`.
    pub fn unmap(
        &self,
        memory: &GuestMemory,
        address: u64,
        pages: u64,
        mut freed: impl FnMut(u64, u64),
    ) {
        self.for_each(
            memory,
            address,
            pages,
            |virtual_address, entry_address, entry| {
                memory.store(entry_address, 0);
                freed(virtual_address, entry & ADDRESS);
            },
        );
    }

    /// Changes what may be done with mapped pages; gives those that lose a right to `lost`.
    pub fn protect(
        &self,
        memory: &GuestMemory,
        address: u64,
        pages: u64,
        protection: Protection,
        mut lost: impl FnMut(u64),
    ) {
        let bits = protection.entry_bits(Owner::Program);
        self.for_each(memory, address, pages, |_, entry_address, entry| {
            memory.store(entry_address, entry & ADDRESS | bits);
            if Protection::of_entry(entry).exceeds(protection) {
                lost(entry & ADDRESS);
            }
        });
    }

    /// Calls `visit(virtual address, guest-physical address)` for every page that is mapped in
    /// `pages` pages from `address` on.
    pub fn for_each_page(
        &self,
        memory: &GuestMemory,
        address: u64,
        pages: u64,
        mut visit: impl FnMut(u64, u64),
    ) {
        self.for_each(memory, address, pages, |virtual_address, _, entry| {
            visit(virtual_address, entry & ADDRESS);
        });
    }

    /// Calls `visit(virtual address, entry's address, entry)` for every entry that owns a page,
    /// skipping what has no tables.
    fn for_each(
        &self,
        memory: &GuestMemory,
        address: u64,
        pages: u64,
        mut visit: impl FnMut(u64, u64, u64),
    ) {
        let end = address + pages * PAGE_SIZE;
        let mut position = address;
        while position < end {
            match self.leaf(memory, position) {
                Err(span) => position = (position / span + 1) * span,
                Ok(leaf) => {
                    let stop = ((position / LEAF_SPAN + 1) * LEAF_SPAN).min(end);
                    while position < stop {
                        let entry_address = leaf + position / PAGE_SIZE % ENTRIES * 8;
                        let entry = memory.load(entry_address);
                        if entry != 0 {
                            visit(position, entry_address, entry);
                        }
                        position += PAGE_SIZE;
                    }
                }
            }
        }
    }

    /// Guest-physical address of the lowest table for `address`, or the bytes that the missing
    /// table would have spanned.
    fn leaf(&self, memory: &GuestMemory, address: u64) -> Result<u64, u64> {
        let mut table = self.root;
        for level in [3, 2, 1] {
            let entry = memory.load(table + index(address, level) * 8);
            if entry & PRESENT == 0 {
                return Err(PAGE_SIZE << (9 * level));
            }
            table = entry & ADDRESS;
        }
        Ok(table)
    }

    fn leaf_or_new(&mut self, memory: &mut GuestMemory, address: u64) -> Result<u64, OutOfMemory> {
        let mut table = self.root;
        for level in [3, 2, 1] {
            let entry_address = table + index(address, level) * 8;
            let entry = memory.load(entry_address);
            table = if entry & PRESENT != 0 {
                entry & ADDRESS
            } else {
                let new = memory.allocate(1)?.start;
                memory.store(
                    entry_address,
                    new | PRESENT | WRITABLE | USER | ACCESSED_DIRTY,
                );
                new
            };
        }
        Ok(table)
    }
}

/// Index into the table of `level` (0 is the lowest) on the way to `address`.
fn index(address: u64, level: u32) -> u64 {
    (address / PAGE_SIZE) >> (9 * level) & (ENTRIES - 1)
}
