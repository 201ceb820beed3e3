//! Rewrites the syscall sites of code: when a file is mapped, and when a site is met.

use std::fs::File;
use std::ops::Range;
use std::rc::{Rc, Weak};

use agentrt_loader::rewriter::{
    Encoded, Mapping, SYSCALL, SYSCALL_SIZE, SiteKind, TextPatch, Trampolines, encode, lazy,
};
use agentrt_shim_abi::{ENTRY_PATCHED, PAGE_SIZE};
use agentrt_vmm::Protection;
use agentrt_vmm::page_table::Owner;
use vm_memory::VolatileSlice;

use super::area::{Area, Backing};
use super::{Mm, USER, page_ceil, page_floor};

/// How far a jump reaches (a signed 32-bit displacement), less what the trampolines take.
const REACH: u64 = (2 << 30) - (1 << 20);
/// Bytes that a trampoline for one `mov imm32, %eax` takes, rounded up.
const LAZY_SLOT: u64 = 32;
/// Sites whose trap is settled are remembered up to this number.
const SETTLED_MAX: usize = 1 << 16;
/// Files' texts that have trampolines at one time, at most; others trap.
const INSTALLED_MAX: usize = 1024;
const AREA_NAME: &str = "[agentrt]";

/// Where trampolines are.
#[derive(Default)]
pub(super) struct TrampolinePool {
    /// Patches of text that was rewritten when it was mapped, and where their trampolines are. The
    /// areas that hold the text own the patches.
    installed: Vec<(Weak<Vec<TextPatch>>, Range<u64>)>,
    /// Pages for sites that are met at run time, and how much of each is used.
    lazy: Vec<(u64, u64)>,
}

impl Mm {
    /// Plans the patches of the code in `area`, which is not yet inserted, and makes trampolines
    /// for them. Pages that are there already are patched. A failure leaves the code as it is:
    /// every site then traps.
    pub(super) fn rewrite(&mut self, start: u64, area: &mut Area) {
        let Backing::File {
            file,
            offset,
            write_back: false,
            patches,
            ..
        } = &mut area.backing
        else {
            return;
        };
        if !patches.is_empty() {
            // It was code before, at this same place.
            return self.apply_to_mapped(start..area.end, patches);
        }
        if self.trampolines.installed.len() >= INSTALLED_MAX {
            return;
        }
        let Some(host_file) = file.host_file().and_then(|fd| fd.try_clone_to_owned().ok()) else {
            return;
        };
        let Ok(analysis) = self.rewriter.analysis(&File::from(host_file)) else {
            return;
        };
        let file_range = *offset..offset.saturating_add(area.end - start);
        let sites = analysis.sites_in(file_range.clone());
        let patched = sites
            .iter()
            .filter(|site| matches!(site.kind, SiteKind::Patch { .. }))
            .count();
        self.sites.trapped += (sites.len() - patched) as u64;
        let size = Trampolines::area_size(sites) as u64;
        let reserved = start..area.end;
        let Some(place) = self.place_near(&reserved, size).filter(|_| size > 0) else {
            self.sites.trapped += patched as u64;
            return;
        };
        let mapping = Mapping {
            file_range,
            address: start,
        };
        let Ok(trampolines) = Trampolines::layout(sites, &mapping, place, ENTRY_PATCHED) else {
            return;
        };
        if !self.install(place, &trampolines.area) {
            return;
        }
        self.sites.rewritten += trampolines.patches.len() as u64;
        *patches = Rc::new(trampolines.patches);
        self.trampolines.installed.push((
            Rc::downgrade(patches),
            place..place + page_ceil(size).unwrap_or(size),
        ));
        self.apply_to_mapped(reserved, patches);
    }

    /// Applies patches to the pages of `text` that are there; others are patched when they come.
    fn apply_to_mapped(&self, text: Range<u64>, patches: &[TextPatch]) {
        for page in self
            .space
            .mapped_pages(text.start, (text.end - text.start) / PAGE_SIZE)
        {
            if let Some(slice) = self.space.slice(page, PAGE_SIZE as usize) {
                apply(patches, page, slice);
            }
        }
    }

    /// A free place for `length` bytes that jumps in `text` reach: below it if possible, since
    /// above it the heap may want to grow.
    fn place_near(&self, text: &Range<u64>, length: u64) -> Option<u64> {
        let length = page_ceil(length)?;
        let low = text.end.saturating_sub(REACH).max(USER.start);
        let high = text.start.saturating_add(REACH).min(USER.end);
        // The text itself may not be in the areas yet.
        let below = self.areas.highest_gap(low..text.start, length);
        below.or_else(|| self.areas.lowest_gap(text.end..high, length))
    }

    /// Maps an area of trampolines with `contents`.
    fn install(&mut self, place: u64, contents: &[u8]) -> bool {
        let Some(length) = page_ceil(contents.len() as u64) else {
            return false;
        };
        let mut done = 0;
        while done < length {
            let address = place + done;
            let pages = (length - done) / PAGE_SIZE;
            let Ok(run) =
                self.space
                    .map_new(address, pages, Protection::READ_EXECUTE, Owner::Program)
            else {
                self.space.unmap(place, length / PAGE_SIZE);
                return false;
            };
            let part = &contents[(done as usize).min(contents.len())..];
            if let Some(slice) = self
                .space
                .memory()
                .slice(run.start, (run.pages * PAGE_SIZE) as usize)
            {
                slice.copy_from(part);
            }
            done += run.pages * PAGE_SIZE;
        }
        let area = Area::anonymous(place + length, Protection::READ_EXECUTE, false, AREA_NAME);
        self.areas.insert(place, area);
        true
    }

    /// Frees the trampolines of text that is not mapped any more.
    pub(super) fn release_trampolines(&mut self) {
        let freed: Vec<Range<u64>> = self
            .trampolines
            .installed
            .extract_if(.., |(patches, _)| patches.strong_count() == 0)
            .map(|(_, area)| area)
            .collect();
        for area in freed {
            if self.holds_trampolines(area.start) {
                self.areas.remove(area.clone());
                self.space
                    .unmap(area.start, (area.end - area.start) / PAGE_SIZE);
            }
        }
        let Mm {
            areas, trampolines, ..
        } = self;
        trampolines.lazy.retain(|&(page, _)| {
            areas
                .find(page)
                .is_some_and(|(_, area)| area.name == AREA_NAME)
        });
    }

    fn holds_trampolines(&self, address: u64) -> bool {
        self.areas
            .find(address)
            .is_some_and(|(_, area)| area.name == AREA_NAME)
    }

    /// Looks at the site of a syscall that came through the LSTAR entry and patches it if that is
    /// safe. Each site is looked at once.
    pub fn settle_site(&mut self, return_address: u64, number: u64) {
        if self.settled_sites.len() >= SETTLED_MAX || !self.settled_sites.insert(return_address) {
            return;
        }
        if let (Some(site), Ok(number)) = (
            return_address.checked_sub(SYSCALL_SIZE as u64),
            u32::try_from(number),
        ) {
            self.patch_lazily(site, number);
        }
    }

    /// Patches the site at `site` if the bytes before it are of the one shape that allows it.
    fn patch_lazily(&mut self, site: u64, number: u32) -> Option<()> {
        let mut code = [0; 32 + SYSCALL_SIZE];
        self.read(site.checked_sub(32)?, &mut code).ok()?;
        let (before, syscall) = code.split_at(32);
        let (start, area) = self.areas.find(site)?;
        let shared = area.shared;
        let range = start..area.end;
        if syscall != SYSCALL || !area.protection.execute || shared {
            return None;
        }
        let length = lazy::displaced_length(before, number)?;
        let first = site - length as u64;
        // Both the jump and the area it is in must be ours to change.
        if first < range.start {
            return None;
        }
        let (page, used) = self.lazy_page(&range)?;
        let displaced = &before[before.len() - length..];
        let Encoded { trampoline, patch } = encode(displaced, site, page + used, page).ok()?;
        self.poke(page + used, &trampoline)?;
        self.poke(patch.address, &patch.replacement)?;
        self.sites.lazily_patched += 1;
        Some(())
    }

    /// A place for one more trampoline within reach of `text`: its page, which starts with the
    /// address of the shim's entry, and the offset in it.
    fn lazy_page(&mut self, text: &Range<u64>) -> Option<(u64, u64)> {
        let reaches =
            |page: u64| page.abs_diff(text.start) < REACH && page.abs_diff(text.end) < REACH;
        let known = self
            .trampolines
            .lazy
            .iter()
            .position(|&(page, used)| used + LAZY_SLOT <= PAGE_SIZE && reaches(page));
        let index = match known {
            Some(index) => index,
            None => {
                let place = self.place_near(text, PAGE_SIZE)?;
                if !self.install(place, &ENTRY_PATCHED.to_le_bytes()) {
                    return None;
                }
                self.trampolines.lazy.push((place, LAZY_SLOT));
                self.trampolines.lazy.len() - 1
            }
        };
        let (page, used) = self.trampolines.lazy.get_mut(index)?;
        let offset = *used;
        *used += LAZY_SLOT;
        Some((*page, offset))
    }

    /// Writes to pages that are there, whatever the program may do with them.
    fn poke(&self, address: u64, bytes: &[u8]) -> Option<()> {
        let mut done = 0;
        while done < bytes.len() {
            let slice = self
                .space
                .slice(address + done as u64, bytes.len() - done)?;
            slice.copy_from(&bytes[done..]);
            done += slice.len();
        }
        Some(())
    }
}

/// Applies the parts of `patches` that lie in `slice`, whose first byte is at the page-aligned
/// `address`. A patch whose original bytes are not there is left out.
pub(super) fn apply(patches: &[TextPatch], address: u64, slice: VolatileSlice<'_>) {
    debug_assert_eq!(page_floor(address), address);
    let end = address + slice.len() as u64;
    let first =
        patches.partition_point(|patch| patch.address + patch.original.len() as u64 <= address);
    for patch in patches[first..]
        .iter()
        .take_while(|patch| patch.address < end)
    {
        let start = patch.address.max(address);
        let stop = (patch.address + patch.original.len() as u64).min(end);
        let inside = (start - patch.address) as usize..(stop - patch.address) as usize;
        let Ok(target) = slice.subslice((start - address) as usize, inside.len()) else {
            continue;
        };
        let mut now = vec![0; inside.len()];
        target.copy_to(&mut now);
        if now == patch.original[inside.clone()] {
            target.copy_from(&patch.replacement[inside]);
        }
    }
}
