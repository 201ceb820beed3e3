//! The bytes of trampolines and of the jumps to them.
//!
//! A trampoline area starts with the address of the shim's entry, which all its trampolines jump
//! through. A trampoline is
//!
//! ```text
//! <displaced instructions>
//! lea  rcx, [rip + after]      the address after the syscall
//! jmp  [rip + entry]           the shim's entry, which returns by jmp rcx
//! ```
//!
//! It is never a call: that would write below rsp, into the program's red zone.

use std::ops::Range;

use thiserror::Error;

use super::{JUMP_SIZE, RUN_MAX, SYSCALL_SIZE, Site, SiteKind};

/// Bytes at the start of a trampoline area: the address of the shim's entry, little-endian.
pub const TRAMPOLINE_HEADER_SIZE: usize = 8;

const JMP_REL32: u8 = 0xe9;
const LEA_RCX_RIP: [u8; 3] = [0x48, 0x8d, 0x0d];
const JMP_INDIRECT_RIP: [u8; 2] = [0xff, 0x25];
const DISPLACEMENT_SIZE: usize = 4;
/// Fills what is never executed: `int3`, so that a stray jump is noticed.
const FILL: u8 = 0xcc;
/// Bytes of a trampoline besides the displaced instructions.
const TAIL_SIZE: usize =
    LEA_RCX_RIP.len() + DISPLACEMENT_SIZE + JMP_INDIRECT_RIP.len() + DISPLACEMENT_SIZE;
/// Trampolines start at multiples of this.
const TRAMPOLINE_ALIGN: usize = 8;

/// Part of a file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The bytes of the file that are mapped.
    pub file_range: Range<u64>,
    /// Address of the first.
    pub address: u64,
}

/// A change to make to a program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPatch {
    /// Address of the first byte to change.
    pub address: u64,
    /// What must be there now; if it is not, the file has changed and the patch must not be made.
    pub original: Vec<u8>,
    /// What to put there, as many bytes.
    pub replacement: Vec<u8>,
}

/// The trampolines of one mapping, and the jumps to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trampolines {
    /// The bytes of the area, [`Trampolines::area_size`] of them. They must be executable and
    /// readable before any patch is made.
    pub area: Vec<u8>,
    /// The changes to the text.
    pub patches: Vec<TextPatch>,
}

/// A trampoline and the jump to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The bytes of the trampoline.
    pub trampoline: Vec<u8>,
    /// The jump to it.
    pub patch: TextPatch,
}

/// Why trampolines cannot be laid out.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// The area is more than 2 GiB from the text.
    #[error("trampoline at {trampoline:#x} is out of reach of the syscall at {site:#x}")]
    OutOfReach {
        /// Address of the `syscall`.
        site: u64,
        /// Address of the trampoline.
        trampoline: u64,
    },
    /// The displaced instructions are not [`JUMP_SIZE`] to [`RUN_MAX`] bytes, or do not end at the
    /// `syscall`.
    #[error("{0} displaced bytes")]
    DisplacedSize(usize),
    /// The mapping or the area wraps around the address space.
    #[error("addresses overflow")]
    AddressOverflow,
}

impl Trampolines {
    /// Bytes of the area that the trampolines of `sites` need; 0 if none is patched.
    pub fn area_size(sites: &[Site]) -> usize {
        let size: usize = sites
            .iter()
            .filter_map(Site::displaced)
            .map(|displaced| slot_size(displaced.len()))
            .sum();
        if size == 0 {
            0
        } else {
            TRAMPOLINE_HEADER_SIZE + size
        }
    }

    /// Encodes the trampolines of `sites`, which lie wholly in `mapping` (see
    /// [`Analysis::sites_in`](super::Analysis::sites_in); others are skipped), for an area at
    /// `area_address`, within 2 GiB of the mapping.
    ///
    /// # Errors
    ///
    /// See [`LayoutError`].
    pub fn layout(
        sites: &[Site],
        mapping: &Mapping,
        area_address: u64,
        shim_entry: u64,
    ) -> Result<Self, LayoutError> {
        let mut area = Vec::with_capacity(Self::area_size(sites));
        let mut patches = Vec::new();
        for site in sites {
            let Some(displaced) = site.displaced() else {
                continue;
            };
            if site.start() < mapping.file_range.start || site.end() > mapping.file_range.end {
                continue;
            }
            if area.is_empty() {
                area.extend(shim_entry.to_le_bytes());
            }
            let syscall = mapping
                .address
                .checked_add(site.file_offset - mapping.file_range.start)
                .ok_or(LayoutError::AddressOverflow)?;
            let trampoline = area_address
                .checked_add(area.len() as u64)
                .ok_or(LayoutError::AddressOverflow)?;
            let encoded = encode(displaced, syscall, trampoline, area_address)?;
            let end = area.len() + slot_size(displaced.len());
            area.extend(encoded.trampoline);
            area.resize(end, FILL);
            patches.push(encoded.patch);
        }
        area.resize(Self::area_size(sites), FILL);
        Ok(Self { area, patches })
    }
}

impl Site {
    fn displaced(&self) -> Option<&[u8]> {
        match &self.kind {
            SiteKind::Patch { displaced, .. } => Some(displaced),
            SiteKind::Trap => None,
        }
    }
}

const fn slot_size(displaced: usize) -> usize {
    (displaced + TAIL_SIZE).next_multiple_of(TRAMPOLINE_ALIGN)
}

/// Encodes one trampoline: `displaced` are the bytes right before the `syscall`, whose address is
/// `syscall`; `trampoline` is where the result will be, and `entry_slot` where the eight bytes of
/// the shim entry's address are.
///
/// # Errors
///
/// See [`LayoutError`].
pub fn encode(
    displaced: &[u8],
    syscall: u64,
    trampoline: u64,
    entry_slot: u64,
) -> Result<Encoded, LayoutError> {
    if !(JUMP_SIZE..=RUN_MAX).contains(&displaced.len()) {
        return Err(LayoutError::DisplacedSize(displaced.len()));
    }
    let out_of_reach = LayoutError::OutOfReach {
        site: syscall,
        trampoline,
    };
    let start = syscall
        .checked_sub(displaced.len() as u64)
        .ok_or(LayoutError::AddressOverflow)?;
    let after = syscall
        .checked_add(SYSCALL_SIZE as u64)
        .ok_or(LayoutError::AddressOverflow)?;
    let lea_end = trampoline
        .checked_add((displaced.len() + LEA_RCX_RIP.len() + DISPLACEMENT_SIZE) as u64)
        .ok_or(LayoutError::AddressOverflow)?;
    let jmp_end = trampoline
        .checked_add((displaced.len() + TAIL_SIZE) as u64)
        .ok_or(LayoutError::AddressOverflow)?;

    let (Some(to_after), Some(to_entry), Some(to_trampoline)) = (
        displacement(lea_end, after),
        displacement(jmp_end, entry_slot),
        start
            .checked_add(JUMP_SIZE as u64)
            .and_then(|end| displacement(end, trampoline)),
    ) else {
        return Err(out_of_reach);
    };
    let bytes = [
        displaced,
        &LEA_RCX_RIP,
        &to_after,
        &JMP_INDIRECT_RIP,
        &to_entry,
    ]
    .concat();
    let mut replacement = vec![JMP_REL32];
    replacement.extend(to_trampoline);
    replacement.resize(displaced.len(), FILL);
    Ok(Encoded {
        trampoline: bytes,
        patch: TextPatch {
            address: start,
            original: displaced.to_vec(),
            replacement,
        },
    })
}

/// The operand that takes an instruction ending at `from` to `to`.
fn displacement(from: u64, to: u64) -> Option<[u8; DISPLACEMENT_SIZE]> {
    let distance = i128::from(to) - i128::from(from);
    i32::try_from(distance).ok().map(i32::to_le_bytes)
}

#[cfg(test)]
mod tests;
