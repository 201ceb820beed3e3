//! Areas: what the program has mapped, whether or not pages are there yet.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use agentrt_loader::rewriter::TextPatch;
use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vfs::File;
use agentrt_vmm::Protection;

use super::shared::Identity;

/// What an area's pages hold before the program writes them.
#[derive(Clone)]
pub enum Backing {
    /// Zeros.
    Anonymous,
    /// The bytes of a file.
    File {
        /// The file.
        file: Rc<dyn File>,
        /// Offset in the file of the area's first byte.
        offset: u64,
        /// Changes are written back (MAP_SHARED of a file that is open for writing).
        write_back: bool,
        /// What tells a shared mapping that its file was changed.
        identity: Option<Identity>,
        /// Changes to the text, by ascending address.
        patches: Rc<Vec<TextPatch>>,
    },
}

/// Consecutive pages that the program mapped in one way.
#[derive(Clone)]
pub struct Area {
    /// Address one past the last byte.
    pub end: u64,
    /// What the program may do.
    pub protection: Protection,
    /// What the pages hold.
    pub backing: Backing,
    /// Mapped with MAP_SHARED.
    pub shared: bool,
    /// Name in /proc/self/maps, such as `[heap]`.
    pub name: &'static str,
}

impl Area {
    /// An area of zeros.
    pub fn anonymous(end: u64, protection: Protection, shared: bool, name: &'static str) -> Area {
        Area {
            end,
            protection,
            backing: Backing::Anonymous,
            shared,
            name,
        }
    }

    /// The area that is left when the first `bytes` bytes are cut off.
    fn advanced(&self, bytes: u64) -> Area {
        let mut area = self.clone();
        if let Backing::File { offset, .. } = &mut area.backing {
            *offset = offset.saturating_add(bytes);
        }
        area
    }

    /// Can `next`, which starts where this one ends, be made one with it?
    fn continues_with(&self, next: &Area) -> bool {
        matches!(
            (&self.backing, &next.backing),
            (Backing::Anonymous, Backing::Anonymous)
        ) && self.protection == next.protection
            && self.shared == next.shared
            && self.name == next.name
    }
}

/// The areas of a program, by start address. They are page-aligned and do not overlap.
#[derive(Default)]
pub struct Areas {
    map: BTreeMap<u64, Area>,
    /// Bytes in all.
    size: u64,
}

impl Areas {
    /// Number of areas.
    pub fn count(&self) -> usize {
        self.map.len()
    }

    /// Bytes in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The area that holds `address`, with its start.
    pub fn find(&self, address: u64) -> Option<(u64, &Area)> {
        let (&start, area) = self.map.range(..=address).next_back()?;
        (address < area.end).then_some((start, area))
    }

    /// All areas, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Area)> {
        self.map.iter().map(|(&start, area)| (start, area))
    }

    /// The parts of areas that lie in `range`, ascending.
    pub fn overlapping(&self, range: Range<u64>) -> Vec<(u64, Area)> {
        let first = self
            .find(range.start)
            .map_or(range.start, |(start, _)| start);
        self.map
            .range(first..range.end)
            .map(|(&start, area)| {
                let begin = start.max(range.start);
                let mut part = area.advanced(begin - start);
                part.end = area.end.min(range.end);
                (begin, part)
            })
            .collect()
    }

    /// Is every byte of `range` in some area?
    pub fn covers(&self, range: Range<u64>) -> bool {
        let mut position = range.start;
        while position < range.end {
            match self.find(position) {
                Some((_, area)) => position = area.end,
                None => return false,
            }
        }
        true
    }

    /// Is no byte of `range` in any area?
    pub fn is_free(&self, range: Range<u64>) -> bool {
        let last = self.map.range(..range.end).next_back();
        last.is_none_or(|(_, area)| area.end <= range.start)
    }

    /// Adds an area; nothing may be there.
    pub fn insert(&mut self, start: u64, mut area: Area) {
        debug_assert!(start < area.end && start.is_multiple_of(PAGE_SIZE));
        debug_assert!(self.is_free(start..area.end));
        self.size += area.end - start;
        let mut start = start;
        if let Some((&before, previous)) = self.map.range(..start).next_back()
            && previous.end == start
            && previous.continues_with(&area)
        {
            self.map.remove(&before);
            start = before;
        }
        if let Some(next) = self.map.get(&area.end)
            && area.continues_with(next)
        {
            let end = next.end;
            self.map.remove(&area.end);
            area.end = end;
        }
        self.map.insert(start, area);
    }

    /// Takes what lies in `range` out, splitting areas that reach beyond it.
    pub fn remove(&mut self, range: Range<u64>) -> Vec<(u64, Area)> {
        self.split_at(range.start);
        self.split_at(range.end);
        let starts: Vec<u64> = self.map.range(range).map(|(&start, _)| start).collect();
        let removed: Vec<(u64, Area)> = starts
            .into_iter()
            .filter_map(|start| Some((start, self.map.remove(&start)?)))
            .collect();
        self.size -= removed
            .iter()
            .map(|(start, area)| area.end - start)
            .sum::<u64>();
        removed
    }

    fn split_at(&mut self, address: u64) {
        let Some((start, area)) = self.find(address) else {
            return;
        };
        if start == address {
            return;
        }
        let tail = area.advanced(address - start);
        if let Some(head) = self.map.get_mut(&start) {
            head.end = address;
        }
        self.map.insert(address, tail);
    }

    /// The highest free range of `length` bytes inside `bounds`.
    pub fn highest_gap(&self, bounds: Range<u64>, length: u64) -> Option<u64> {
        let mut ceiling = bounds.end;
        for (&start, area) in self.map.range(..bounds.end).rev() {
            if area.end <= ceiling && ceiling - area.end >= length {
                break;
            }
            ceiling = ceiling.min(start);
            if ceiling <= bounds.start {
                return None;
            }
        }
        let address = ceiling.checked_sub(length)?;
        (address >= bounds.start).then_some(address)
    }

    /// The lowest free range of `length` bytes inside `bounds`.
    pub fn lowest_gap(&self, bounds: Range<u64>, length: u64) -> Option<u64> {
        let mut floor = self
            .find(bounds.start)
            .map_or(bounds.start, |(_, area)| area.end);
        if floor > bounds.end {
            return None;
        }
        for (&start, area) in self.map.range(floor..bounds.end) {
            if start - floor >= length {
                break;
            }
            floor = area.end;
        }
        (floor.checked_add(length)? <= bounds.end).then_some(floor)
    }
}

#[cfg(test)]
mod tests;
