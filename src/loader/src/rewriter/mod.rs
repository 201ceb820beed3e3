//! Finds the `syscall` instructions of an executable file and plans their replacement.
//!
//! The `syscall` itself is never overwritten. What is replaced is a run of whole instructions right
//! before it, at least five bytes: a jump to a trampoline takes their place, and the trampoline
//! executes them, loads rcx with the address after the `syscall` (as the kernel would) and jumps to
//! the shim. A `syscall` that anything reaches in another way still works: the processor takes it to
//! the shim's LSTAR entry. The same serves every site that is left alone. So a site not found costs
//! time; a site wrongly found would corrupt a program, and whatever is in doubt is left alone.
//!
//! - [`analyse`] (`scan`, on `functions`, `flow` and `run`): which sites a file has.
//! - [`Trampolines`] and [`encode`] (`patch`): the bytes that replace them.
//! - [`lazy`]: whether a site met at run time may be patched.
//! - [`Cache`]: analyses by content, kept in memory and on disk.

mod cache;
mod flow;
mod functions;
pub mod lazy;
mod patch;
mod run;
mod scan;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::elf::ElfError;

pub use cache::{Cache, CacheError, LookupError};
pub use patch::{
    Encoded, LayoutError, Mapping, TRAMPOLINE_HEADER_SIZE, TextPatch, Trampolines, encode,
};
pub use scan::analyse;

/// Bytes of a near jump with a 32-bit displacement, the least a run must have.
pub const JUMP_SIZE: usize = 5;
/// Bytes of a run at most: a run shorter than [`JUMP_SIZE`] by one byte is extended by one
/// instruction, and no instruction has more than 15 bytes.
pub const RUN_MAX: usize = JUMP_SIZE - 1 + 15;
/// Bytes of the `syscall` instruction.
pub const SYSCALL_SIZE: usize = 2;
/// The `syscall` instruction.
pub const SYSCALL: [u8; SYSCALL_SIZE] = [0x0f, 0x05];

/// Largest file that is analysed, in bytes: it is held in memory meanwhile. Large interpreters have
/// some 100 MB.
pub const FILE_MAX: u64 = 256 << 20;
/// Most occurrences of the bytes of `syscall` that are looked at. Programs of some 100 MB have up to
/// 3,000.
pub const CANDIDATES_MAX: usize = 1 << 16;

/// What is known of a file's `syscall` instructions. All lists ascend, no offset is in two of them,
/// and no patch reaches into another site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// True sites.
    pub sites: Vec<Site>,
    /// File offsets of byte pairs that look like `syscall` and are proven or presumed to be data or
    /// parts of other instructions.
    pub rejected: Vec<u64>,
    /// File offsets of byte pairs that could be either. They are left alone.
    pub unknown: Vec<u64>,
}

/// A `syscall` instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Where the `syscall` is in the file.
    pub file_offset: u64,
    /// What to do about it.
    pub kind: SiteKind,
}

/// What to do about a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SiteKind {
    /// The instructions before it can be replaced by a jump.
    Patch {
        /// Where they start in the file; they end where the `syscall` starts.
        start_file_offset: u64,
        /// Their bytes, [`JUMP_SIZE`] to [`RUN_MAX`]. They mean the same at any address.
        displaced: Vec<u8>,
    },
    /// Nothing before it can be replaced: the `syscall` traps to the shim by itself.
    Trap,
}

impl Site {
    /// Where the site's first byte that is replaced or relied upon is in the file.
    pub fn start(&self) -> u64 {
        match self.kind {
            SiteKind::Patch {
                start_file_offset, ..
            } => start_file_offset,
            SiteKind::Trap => self.file_offset,
        }
    }

    fn is_well_formed(&self) -> bool {
        match &self.kind {
            SiteKind::Trap => true,
            SiteKind::Patch {
                start_file_offset,
                displaced,
            } => {
                (JUMP_SIZE..=RUN_MAX).contains(&displaced.len())
                    && start_file_offset.checked_add(displaced.len() as u64)
                        == Some(self.file_offset)
            }
        }
    }

    /// One past the `syscall`, in the file.
    pub fn end(&self) -> u64 {
        self.file_offset.saturating_add(SYSCALL_SIZE as u64)
    }
}

impl Analysis {
    /// The sites that lie wholly in a range of the file.
    pub fn sites_in(&self, range: std::ops::Range<u64>) -> &[Site] {
        let first = self
            .sites
            .partition_point(|site| site.start() < range.start);
        let last = self.sites.partition_point(|site| site.end() <= range.end);
        self.sites.get(first..last).unwrap_or_default()
    }

    /// Whether the promises of the type's description hold.
    pub(crate) fn is_well_formed(&self) -> bool {
        let ascending = |offsets: &[u64]| offsets.is_sorted_by(|a, b| a < b);
        let sites_apart = self.sites.is_sorted_by(|a, b| a.end() <= b.start());
        sites_apart
            && ascending(&self.rejected)
            && ascending(&self.unknown)
            && self.sites.iter().all(Site::is_well_formed)
    }
}

/// Why a file was not analysed. It can still run: every `syscall` in it traps to the shim.
#[derive(Debug, Error)]
pub enum AnalysisError {
    /// The file is not an ELF file that could be mapped.
    #[error("not a usable ELF file")]
    Elf(#[from] ElfError),
    /// More occurrences of the bytes of `syscall` than [`CANDIDATES_MAX`].
    #[error("more than {CANDIDATES_MAX} candidates for syscall instructions")]
    TooManyCandidates,
    /// Two executable segments map the same bytes of the file: what suits one may not suit the other.
    #[error("executable segments share bytes of the file")]
    SegmentsShareFile,
    /// The file has more than [`FILE_MAX`] bytes.
    #[error("a file of {0} bytes is too large to analyse")]
    TooLarge(u64),
}

#[cfg(test)]
mod tests;
