use std::io;

use rustix::io::Errno;
use thiserror::Error;

/// Why a file cannot be executed. An `index` is the number of a program header, from 0.
#[derive(Debug, Error)]
pub enum ElfError {
    /// Reading the file failed.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The file is shorter than an ELF header.
    #[error("the file ends inside the ELF header")]
    HeaderTruncated,
    /// The file does not start with the ELF magic.
    #[error("not an ELF file")]
    NotElf,
    /// The file is not of the 64-bit class.
    #[error("ELF class {0} is not the 64-bit class, 2")]
    Class(u8),
    /// The file is not little-endian.
    #[error("ELF data encoding {0} is not little-endian, 1")]
    Endianness(u8),
    /// The file is neither an executable nor a shared object.
    #[error("ELF type {0} is neither executable, 2, nor shared object, 3")]
    Type(u16),
    /// The file is for another processor.
    #[error("ELF machine {0} is not x86-64, 62")]
    Machine(u16),
    /// The entry point is not a user-space address.
    #[error("entry point {0:#x} is outside user space")]
    Entry(u64),
    /// Program headers are not of the size the format has.
    #[error("program headers of {0} bytes instead of 56")]
    ProgramHeaderSize(u16),
    /// There are no program headers, or their table is larger than 64 KiB.
    #[error("{0} program headers: there must be at least one, and at most 64 KiB of them")]
    ProgramHeaderCount(u16),
    /// The file ends before the program header table does.
    #[error("the file ends inside the program header table")]
    ProgramHeadersTruncated,
    /// Nothing to map.
    #[error("no loadable segment")]
    NoSegments,
    /// A segment takes more bytes from the file than it has in memory.
    #[error("segment {index}: file size exceeds memory size")]
    FileSizeAboveMemorySize {
        /// The segment.
        index: usize,
    },
    /// A segment reaches beyond the 47-bit user space.
    #[error("segment {index} reaches outside user space")]
    OutsideUserSpace {
        /// The segment.
        index: usize,
    },
    /// A segment's alignment is not a power of two.
    #[error("segment {index}: alignment {align:#x} is not a power of two")]
    Alignment {
        /// The segment.
        index: usize,
        /// Its alignment.
        align: u64,
    },
    /// A segment's offsets in the file's page and in memory's page differ.
    #[error("segment {index}: file offset and address differ modulo the page size")]
    OffsetNotCongruent {
        /// The segment.
        index: usize,
    },
    /// The file ends inside a segment.
    #[error("segment {index}: the file ends inside it")]
    SegmentTruncated {
        /// The segment.
        index: usize,
    },
    /// Two segments need the same page.
    #[error("the segments at {lower:#x} and {upper:#x} share a page")]
    SegmentsOverlap {
        /// Address of one segment.
        lower: u64,
        /// Address of the other.
        upper: u64,
    },
    /// More than one `PT_INTERP`.
    #[error("program header {index} names a second interpreter")]
    SecondInterpreter {
        /// The program header.
        index: usize,
    },
    /// The interpreter's name has no room for a byte and its NUL, or is longer than `PATH_MAX`.
    #[error("interpreter name of {0} bytes: must be 2 to 4096")]
    InterpreterSize(u64),
    /// The file ends inside the interpreter's name.
    #[error("the file ends inside the interpreter's name")]
    InterpreterTruncated,
    /// The interpreter's name does not end with a NUL.
    #[error("the interpreter's name is not NUL-terminated")]
    InterpreterNotTerminated,
    /// The interpreter's name is the empty string.
    #[error("the interpreter's name is empty")]
    InterpreterEmpty,
}

impl ElfError {
    /// What Linux's `execve` answers if the file is the program itself. Where only this crate is
    /// strict, the errno nearest in meaning.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Io(error) => Errno::from_io_error(error).unwrap_or(Errno::IO),
            Self::Entry(_)
            | Self::NoSegments
            | Self::FileSizeAboveMemorySize { .. }
            | Self::OutsideUserSpace { .. }
            | Self::OffsetNotCongruent { .. }
            | Self::SegmentsOverlap { .. } => Errno::INVAL,
            Self::InterpreterTruncated => Errno::IO,
            Self::InterpreterEmpty => Errno::NOENT,
            Self::HeaderTruncated
            | Self::NotElf
            | Self::Class(_)
            | Self::Endianness(_)
            | Self::Type(_)
            | Self::Machine(_)
            | Self::ProgramHeaderSize(_)
            | Self::ProgramHeaderCount(_)
            | Self::ProgramHeadersTruncated
            | Self::Alignment { .. }
            | Self::SegmentTruncated { .. }
            | Self::SecondInterpreter { .. }
            | Self::InterpreterSize(_)
            | Self::InterpreterNotTerminated => Errno::NOEXEC,
        }
    }

    /// What Linux's `execve` answers if the file is the program's interpreter.
    pub fn interpreter_errno(&self) -> Errno {
        match self.errno() {
            Errno::NOEXEC => Errno::LIBBAD,
            other => other,
        }
    }
}
