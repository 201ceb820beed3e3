//! Where a file's functions are, according to its unwind tables and symbols.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameHdr, EndianSlice,
    LittleEndian, Pointer, UnwindSection,
};
use object::elf::{self, FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_OBJECT};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use super::AnalysisError;
use crate::elf::Image;

/// Functions that are looked at, at most; those beyond are not known. Programs of some 100 MB have
/// up to a million.
const FUNCTIONS_MAX: usize = 1 << 22;
/// Common information entries in `.eh_frame`, at most; there is about one for each source file.
const CIES_MAX: usize = 1 << 16;

/// The executable part of a file's segment.
pub(super) struct Code<'a> {
    pub vaddr: u64,
    pub file_offset: u64,
    pub bytes: &'a [u8],
}

impl<'a> Code<'a> {
    /// The executable segments of a file, by ascending address. They share no bytes of the file, so
    /// that together they are no larger than the file.
    pub(super) fn of(image: &Image, file: &'a [u8]) -> Result<Vec<Self>, AnalysisError> {
        let codes: Vec<Self> = image
            .segments
            .iter()
            .filter(|segment| segment.protection.execute && segment.file_size > 0)
            .filter_map(|segment| {
                let bytes = slice(file, segment.file_offset, segment.file_size)?;
                Some(Self {
                    vaddr: segment.vaddr,
                    file_offset: segment.file_offset,
                    bytes,
                })
            })
            .collect();
        let mut ranges: Vec<(u64, u64)> = codes
            .iter()
            .map(|code| (code.file_offset, code.file_offset + code.bytes.len() as u64))
            .collect();
        ranges.sort_unstable();
        if ranges.is_sorted_by(|lower, upper| lower.1 <= upper.0) {
            Ok(codes)
        } else {
            Err(AnalysisError::SegmentsShareFile)
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.vaddr.saturating_add(self.bytes.len() as u64)
    }

    /// The bytes of a range of addresses that lies in the segment; empty if it does not.
    pub(super) fn at(&self, range: Range<u64>) -> &'a [u8] {
        let Some(start) = range.start.checked_sub(self.vaddr) else {
            return &[];
        };
        slice(self.bytes, start, range.end.saturating_sub(range.start)).unwrap_or_default()
    }
}

/// One function, or several that overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// What the file says belongs to the functions.
    pub range: Range<u64>,
    /// One past what may belong to them, if control flow leads there: where the next region starts.
    /// (libc ends the unwind information of `clone` before its `syscall`.)
    pub limit: u64,
    /// Addresses where functions start, ascending.
    pub starts: Vec<u64>,
    /// Whether the end is known, and not only presumed to be where something else starts.
    pub is_sized: bool,
    /// Whether exceptions land in it, at addresses that no branch shows.
    pub has_landing_pads: bool,
}

/// What is known of one executable segment.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Disjoint, ascending.
    pub regions: Vec<Region>,
}

impl Functions {
    /// The region that holds an address, or else the one right before it.
    pub(super) fn region_at(&self, address: u64) -> Option<&Region> {
        let after = self
            .regions
            .partition_point(|region| region.range.start <= address);
        self.regions.get(after.checked_sub(1)?)
    }
}

/// Bounds as a file states them, of all segments, unchecked but sorted.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    functions: Vec<Bound>,
    /// Disjoint.
    data: Vec<Range<u64>>,
}

/// A function's bounds; its end is its start if the file does not say. Sorted by start, and those of
/// one start with the largest first, so that an end that is not known is only ever asked of what
/// lies in no known function.
#[derive(Clone, Copy, Debug)]
struct Bound {
    start: u64,
    end: u64,
    has_landing_pads: bool,
}

impl Bounds {
    pub(super) fn of(image: &Image, file: &[u8]) -> Self {
        let mut bounds = Self::default();
        // Libraries have no entry: 0.
        if image.entry != 0 {
            bounds.functions.push(Bound {
                start: image.entry,
                end: image.entry,
                has_landing_pads: false,
            });
        }
        bounds.add_frames(image, file);
        bounds.add_symbols(file);
        bounds
            .functions
            .sort_by_key(|bound| (bound.start, Reverse(bound.end)));
        bounds.functions.dedup_by(|next, kept| {
            let is_same = (next.start, next.end) == (kept.start, kept.end);
            kept.has_landing_pads |= is_same && next.has_landing_pads;
            is_same
        });
        bounds.data.sort_by_key(|range| range.start);
        bounds.data.dedup_by(|next, kept| {
            let overlaps = next.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(next.end);
            }
            overlaps
        });
        bounds
    }

    fn add_frames(&mut self, image: &Image, file: &[u8]) {
        let Some((address, bytes)) =
            frames_by_section(file).or_else(|| frames_by_header(image, file))
        else {
            return;
        };
        let section = EhFrame::new(bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address);
        // Without this, a file with one long CIE and many FDEs would take quadratic time.
        let mut known_cies: HashMap<usize, gimli::Result<CommonInformationEntry<_>>> =
            HashMap::new();
        let mut entries = section.entries(&bases);
        // A damaged entry hides those behind it, which are then not patched.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            if known_cies.len() > CIES_MAX || self.functions.len() > FUNCTIONS_MAX {
                return;
            }
            let fde = partial.parse(|section, bases, offset| {
                known_cies
                    .entry(offset.0)
                    .or_insert_with(|| section.cie_from_offset(bases, offset))
                    .clone()
            });
            let Ok(fde) = fde else { continue };
            // A signal trampoline is never called, only returned to, and unwinders look up a return
            // address less one: its entry starts a byte early, in the padding before it.
            let early = u64::from(fde.is_signal_trampoline());
            self.functions.push(Bound {
                start: fde.initial_address().saturating_add(early),
                end: fde.initial_address().saturating_add(fde.len()),
                has_landing_pads: fde.lsda().is_some(),
            });
        }
    }

    fn add_symbols(&mut self, file: &[u8]) {
        let Ok(header) = FileHeader64::<object::LittleEndian>::parse(file) else {
            return;
        };
        let endian = object::LittleEndian;
        let Ok(sections) = header.sections(endian, file) else {
            return;
        };
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            let Ok(table) = sections.symbols(endian, file, kind) else {
                continue;
            };
            for symbol in table.iter() {
                if self.functions.len().max(self.data.len()) > FUNCTIONS_MAX {
                    return;
                }
                let start = symbol.st_value(endian);
                let end = start.saturating_add(symbol.st_size(endian));
                if symbol.is_undefined(endian) {
                    continue;
                }
                match symbol.st_type() {
                    STT_FUNC | elf::STT_GNU_IFUNC => self.functions.push(Bound {
                        start,
                        end,
                        has_landing_pads: false,
                    }),
                    STT_OBJECT if end > start => self.data.push(start..end),
                    _ => {}
                }
            }
        }
    }

    /// Whether the symbol table calls an address data.
    pub(super) fn is_data(&self, address: u64) -> bool {
        // Ranges are merged, so at most one can hold the address.
        let after = self.data.partition_point(|range| range.start <= address);
        after
            .checked_sub(1)
            .and_then(|index| self.data.get(index))
            .is_some_and(|range| range.contains(&address))
    }

    /// The regions of one segment.
    pub(super) fn in_segment(&self, code: &Code<'_>) -> Functions {
        let place = |address| {
            self.functions
                .partition_point(|bound| bound.start < address)
        };
        let inside = place(code.vaddr)..place(code.end());
        let mut bounds = self
            .functions
            .get(inside)
            .unwrap_or_default()
            .iter()
            .peekable();
        let mut regions: Vec<Region> = Vec::new();
        while let Some(bound) = bounds.next() {
            if let Some(last) = regions.last_mut()
                && bound.start < last.range.end
            {
                last.absorb(bound, code.end());
                continue;
            }
            let is_sized = bound.end > bound.start;
            let next = bounds.peek().map_or(code.end(), |next| next.start);
            let end = if is_sized { bound.end } else { next };
            regions.push(Region {
                range: bound.start..end.min(code.end()),
                limit: code.end(),
                starts: vec![bound.start],
                is_sized,
                has_landing_pads: bound.has_landing_pads,
            });
        }
        let mut limit = code.end();
        for region in regions.iter_mut().rev() {
            region.limit = limit;
            limit = region.range.start;
        }
        Functions { regions }
    }
}

impl Region {
    /// Adds a function that starts inside.
    fn absorb(&mut self, bound: &Bound, limit: u64) {
        if self.starts.last() != Some(&bound.start) {
            self.starts.push(bound.start);
        }
        self.has_landing_pads |= bound.has_landing_pads;
        self.range.end = self.range.end.max(bound.end.min(limit));
    }
}

/// Address and bytes of `.eh_frame`, found by its name.
fn frames_by_section(file: &[u8]) -> Option<(u64, &[u8])> {
    let endian = object::LittleEndian;
    let header = FileHeader64::<object::LittleEndian>::parse(file).ok()?;
    let sections = header.sections(endian, file).ok()?;
    let (_, section) = sections.section_by_name(endian, b".eh_frame")?;
    let bytes = section.data(endian, file).ok()?;
    Some((section.sh_addr(endian), bytes))
}

/// Address and bytes of `.eh_frame`, found through `PT_GNU_EH_FRAME`, with whatever follows it in
/// its segment: the section ends with a terminator.
fn frames_by_header<'a>(image: &Image, file: &'a [u8]) -> Option<(u64, &'a [u8])> {
    let address = image.eh_frame_header?;
    let bytes = bytes_from(image, file, address)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(address);
    let header = EhFrameHdr::<EndianSlice<'_, _>>::new(bytes, LittleEndian)
        .parse(&bases, size_of::<u64>() as u8)
        .ok()?;
    let Pointer::Direct(frames) = header.eh_frame_ptr() else {
        return None;
    };
    Some((frames, bytes_from(image, file, frames)?))
}

/// The file's bytes from an address on to the end of its segment.
fn bytes_from<'a>(image: &Image, file: &'a [u8], address: u64) -> Option<&'a [u8]> {
    image.segments.iter().find_map(|segment| {
        let distance = address.checked_sub(segment.vaddr)?;
        let rest = segment.file_size.checked_sub(distance)?;
        slice(file, segment.file_offset.checked_add(distance)?, rest)
    })
}

fn slice(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    let length = usize::try_from(length).ok()?;
    bytes.get(start..start.checked_add(length)?)
}
