//! Places the vDSO and its time page in a guest.

use agentrt_shim_abi::{PAGE_SIZE, TIME_PAGE, TimePage, VDSO_BASE};

use crate::address_space::AddressSpace;
use crate::memory::{GuestMemory, OutOfMemory};
use crate::page_table::{Owner, Protection};

/// Where a guest's time page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimePagePlace {
    address: u64,
}

/// Maps the vDSO and an empty time page, whose clock mode is
/// [`Syscall`](agentrt_shim_abi::ClockMode::Syscall).
pub(crate) fn install(space: &mut AddressSpace) -> Result<TimePagePlace, OutOfMemory> {
    let time_page = space.map_new(TIME_PAGE, 1, Protection::READ, Owner::Program)?;
    let vdso = space.map_new(VDSO_BASE, 1, Protection::READ_EXECUTE, Owner::Program)?;
    let image = agentrt_shim::vdso::image();
    debug_assert!(image.len() <= PAGE_SIZE as usize);
    if let Some(slice) = space.memory().slice(vdso.start, image.len()) {
        slice.copy_from(image);
    }
    Ok(TimePagePlace {
        address: time_page.start,
    })
}

impl TimePagePlace {
    /// Guest-physical address.
    pub fn address(self) -> u64 {
        self.address
    }

    /// Writes the page's contents, whose sequence must be even and differ from the last one's. The
    /// guest must be stopped.
    pub fn write(self, memory: &GuestMemory, page: &TimePage) {
        let head = |sequence: u32| u64::from(sequence) | u64::from(page.mode) << 32;
        let words = [page.tsc, page.multiplier, page.monotonic, page.realtime];
        memory.store(self.address, head(page.sequence.wrapping_sub(1)));
        for (address, word) in (self.address + 8..).step_by(8).zip(words) {
            memory.store(address, word);
        }
        memory.store(self.address, head(page.sequence));
    }
}
