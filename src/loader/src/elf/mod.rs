//! Reads what is needed to map an x86-64 ELF file, and checks all of it.
//!
//! The rules are those of the ELF-64 object file format and of Linux's `execve`. Two are stricter
//! than Linux, which would map such a file and let it crash or misbehave later: segments must not
//! share a page of memory, and the file must reach to the end of every segment.

mod error;
mod read;

use std::ops::Range;

pub use error::ElfError;
use read::Fields;
pub use read::ReadAt;
pub(crate) use read::read_exact;

/// Bytes in a page, the granule of every mapping on x86-64.
pub const PAGE_SIZE: u64 = 4096;

/// One past the highest address a program may use: Linux's `TASK_SIZE` with four-level page tables,
/// the lower half of the 48-bit address space less its last page.
pub const USER_END: u64 = 0x7fff_ffff_f000;

const HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: u16 = 56;
/// Linux refuses a program header table of more than 64 KiB.
const PROGRAM_HEADERS_MAX_SIZE: usize = 64 << 10;
/// Linux's `PATH_MAX`, which bounds the interpreter's name with its terminating NUL.
const PATH_MAX: u64 = 4096;

// Values of the ELF-64 object file format and the x86-64 psABI.
const MAGIC: [u8; 4] = *b"\x7fELF";
const CLASS_64: u8 = 2;
const DATA_LITTLE_ENDIAN: u8 = 1;
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_SHARED: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const SEGMENT_LOAD: u32 = 1;
const SEGMENT_INTERPRETER: u32 = 3;
const SEGMENT_GNU_EH_FRAME: u32 = 0x6474_e550;
const SEGMENT_GNU_STACK: u32 = 0x6474_e551;
const FLAG_EXECUTE: u32 = 1;
const FLAG_WRITE: u32 = 2;
const FLAG_READ: u32 = 4;

/// How to map an ELF file and where to start it. Addresses are as the file has them: those of a
/// [`Kind::Relocatable`] image are relative to a load address of the mapper's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Whether the addresses are absolute.
    pub kind: Kind,
    /// Where execution starts. Below [`USER_END`], not necessarily inside a segment.
    pub entry: u64,
    /// What to map, by ascending address, at least one. No two share a page.
    pub segments: Vec<Segment>,
    /// The path of the program interpreter, without its NUL: not empty, relative if the file says
    /// so.
    pub interpreter: Option<Vec<u8>>,
    /// What the auxiliary vector tells a program of its program headers.
    pub program_headers: ProgramHeaders,
    /// Whether the file asks for an executable stack. A file without `PT_GNU_STACK` does not, as
    /// on Linux since 5.8.
    pub stack_executable: bool,
    /// Where `.eh_frame_hdr` is, if the file names it (`PT_GNU_EH_FRAME`). Not validated.
    pub(crate) eh_frame_header: Option<u64>,
}

/// Whether an image's addresses are absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ET_EXEC`: must be mapped at its own addresses.
    Fixed,
    /// `ET_DYN`: may be mapped anywhere that honours [`Image::alignment`].
    Relocatable,
}

/// A `PT_LOAD` program header.
///
/// The mapper rounds outwards to pages: the file's page that holds `file_offset` goes to the page
/// that holds `vaddr` (both have the same offset in their pages). Bytes from `vaddr + file_size` to
/// `vaddr + memory_size` and on to the end of that page are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first byte.
    pub vaddr: u64,
    /// Bytes in memory, at least 1.
    pub memory_size: u64,
    /// Where the first byte is in the file. Of no meaning if `file_size` is 0.
    pub file_offset: u64,
    /// Bytes that come from the file, at most `memory_size`; the file holds them all.
    pub file_size: u64,
    /// What the program may do with the pages.
    pub protection: Protection,
    /// Alignment in bytes, a power of two.
    pub align: u64,
}

/// Rights to a segment's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// The program may read.
    pub read: bool,
    /// The program may write.
    pub write: bool,
    /// The program may execute.
    pub execute: bool,
}

/// The program header table, for `AT_PHDR`, `AT_PHENT` and `AT_PHNUM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramHeaders {
    /// Address of the table, `None` if no segment holds it.
    pub address: Option<u64>,
    /// Bytes of one entry: 56.
    pub entry_size: u16,
    /// Number of entries, at least 1.
    pub count: u16,
}

impl Segment {
    /// The pages the segment occupies, as addresses rounded to pages.
    pub fn pages(&self) -> Range<u64> {
        let end = self.vaddr.saturating_add(self.memory_size);
        page_floor(self.vaddr)..page_ceil(end)
    }
}

impl Image {
    /// The addresses from the lowest to the highest segment, rounded outwards to pages.
    pub fn span(&self) -> Range<u64> {
        match (self.segments.first(), self.segments.last()) {
            (Some(first), Some(last)) => first.pages().start..last.pages().end,
            _ => 0..0,
        }
    }

    /// The alignment, in bytes, that the load address of a relocatable image needs: that of the
    /// most demanding segment, and never less than a page.
    pub fn alignment(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.align)
            .fold(PAGE_SIZE, u64::max)
    }
}

/// Reads the headers of `file` and checks that it can be mapped.
///
/// # Errors
///
/// The first rule found broken, and who breaks it.
pub fn parse(file: &(impl ReadAt + ?Sized)) -> Result<Image, ElfError> {
    let header = Header::read(file)?;
    let entries = header.read_program_headers(file)?;

    let mut segments = Vec::new();
    let mut interpreter = None;
    let mut table_address = None;
    let mut stack_executable = false;
    let mut eh_frame_header = None;
    for (index, entry) in entries.iter().enumerate() {
        match entry.kind {
            SEGMENT_LOAD => {
                if entry.holds(header.table_offset) {
                    let distance = header.table_offset - entry.offset;
                    table_address = entry.vaddr.checked_add(distance);
                }
                segments.extend(entry.segment(index, file.size())?);
            }
            SEGMENT_INTERPRETER if interpreter.is_some() => {
                return Err(ElfError::SecondInterpreter { index });
            }
            SEGMENT_INTERPRETER => interpreter = Some(entry.read_interpreter(file)?),
            SEGMENT_GNU_STACK => stack_executable = entry.flags & FLAG_EXECUTE != 0,
            SEGMENT_GNU_EH_FRAME => eh_frame_header = Some(entry.vaddr),
            _ => {}
        }
    }
    if segments.is_empty() {
        return Err(ElfError::NoSegments);
    }
    segments.sort_by_key(|segment| segment.vaddr);
    check_disjoint(&segments)?;

    Ok(Image {
        kind: header.kind,
        entry: header.entry,
        segments,
        interpreter,
        program_headers: ProgramHeaders {
            address: table_address,
            entry_size: PROGRAM_HEADER_SIZE,
            count: header.table_count,
        },
        stack_executable,
        eh_frame_header,
    })
}

fn check_disjoint(segments: &[Segment]) -> Result<(), ElfError> {
    for pair in segments.windows(2) {
        if let [lower, upper] = pair
            && lower.pages().end > upper.pages().start
        {
            return Err(ElfError::SegmentsOverlap {
                lower: lower.vaddr,
                upper: upper.vaddr,
            });
        }
    }
    Ok(())
}

/// The parts of the file header that matter, checked.
struct Header {
    kind: Kind,
    entry: u64,
    table_offset: u64,
    table_count: u16,
}

impl Header {
    fn read(file: &(impl ReadAt + ?Sized)) -> Result<Self, ElfError> {
        let mut bytes = [0; HEADER_SIZE];
        if !read_exact(file, 0, &mut bytes)? {
            return Err(ElfError::HeaderTruncated);
        }
        let mut fields = Fields::new(&bytes);
        let identity: [u8; 16] = fields.take();
        if !identity.starts_with(&MAGIC) {
            return Err(ElfError::NotElf);
        }
        if identity[4] != CLASS_64 {
            return Err(ElfError::Class(identity[4]));
        }
        if identity[5] != DATA_LITTLE_ENDIAN {
            return Err(ElfError::Endianness(identity[5]));
        }
        let kind = match fields.u16() {
            TYPE_EXECUTABLE => Kind::Fixed,
            TYPE_SHARED => Kind::Relocatable,
            other => return Err(ElfError::Type(other)),
        };
        let machine = fields.u16();
        if machine != MACHINE_X86_64 {
            return Err(ElfError::Machine(machine));
        }
        let _version = fields.u32();
        let entry = fields.u64();
        let table_offset = fields.u64();
        let _section_headers = fields.u64();
        let _flags = fields.u32();
        let _header_size = fields.u16();
        let entry_size = fields.u16();
        let table_count = fields.u16();
        if entry >= USER_END {
            return Err(ElfError::Entry(entry));
        }
        if entry_size != PROGRAM_HEADER_SIZE {
            return Err(ElfError::ProgramHeaderSize(entry_size));
        }
        let size = usize::from(table_count) * usize::from(entry_size);
        if size == 0 || size > PROGRAM_HEADERS_MAX_SIZE {
            return Err(ElfError::ProgramHeaderCount(table_count));
        }
        Ok(Self {
            kind,
            entry,
            table_offset,
            table_count,
        })
    }

    fn read_program_headers(
        &self,
        file: &(impl ReadAt + ?Sized),
    ) -> Result<Vec<ProgramHeader>, ElfError> {
        let size = usize::from(PROGRAM_HEADER_SIZE);
        let mut bytes = vec![0; usize::from(self.table_count) * size];
        if !read_exact(file, self.table_offset, &mut bytes)? {
            return Err(ElfError::ProgramHeadersTruncated);
        }
        Ok(bytes.chunks_exact(size).map(ProgramHeader::new).collect())
    }
}

/// A program header as the file has it.
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    vaddr: u64,
    file_size: u64,
    memory_size: u64,
    align: u64,
}

impl ProgramHeader {
    fn new(bytes: &[u8]) -> Self {
        let mut fields = Fields::new(bytes);
        let kind = fields.u32();
        let flags = fields.u32();
        let offset = fields.u64();
        let vaddr = fields.u64();
        let _physical_address = fields.u64();
        Self {
            kind,
            flags,
            offset,
            vaddr,
            file_size: fields.u64(),
            memory_size: fields.u64(),
            align: fields.u64(),
        }
    }

    fn holds(&self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.file_size
    }

    /// The segment to map, `None` if it is empty.
    fn segment(&self, index: usize, size_of_file: u64) -> Result<Option<Segment>, ElfError> {
        if self.file_size > self.memory_size {
            return Err(ElfError::FileSizeAboveMemorySize { index });
        }
        if self.memory_size == 0 {
            return Ok(None);
        }
        let end = self.vaddr.checked_add(self.memory_size);
        if end.is_none_or(|end| end > USER_END) {
            return Err(ElfError::OutsideUserSpace { index });
        }
        let align = self.align.max(1);
        if !align.is_power_of_two() {
            return Err(ElfError::Alignment { index, align });
        }
        if self.file_size > 0 {
            if self.offset % PAGE_SIZE != self.vaddr % PAGE_SIZE {
                return Err(ElfError::OffsetNotCongruent { index });
            }
            let end = self.offset.checked_add(self.file_size);
            if end.is_none_or(|end| end > size_of_file) {
                return Err(ElfError::SegmentTruncated { index });
            }
        }
        Ok(Some(Segment {
            vaddr: self.vaddr,
            memory_size: self.memory_size,
            file_offset: self.offset,
            file_size: self.file_size,
            protection: Protection {
                read: self.flags & FLAG_READ != 0,
                write: self.flags & FLAG_WRITE != 0,
                execute: self.flags & FLAG_EXECUTE != 0,
            },
            align,
        }))
    }

    fn read_interpreter(&self, file: &(impl ReadAt + ?Sized)) -> Result<Vec<u8>, ElfError> {
        // One byte of name and the NUL, as Linux demands.
        let size = match self.file_size {
            2..=PATH_MAX => usize::try_from(self.file_size).unwrap_or(usize::MAX),
            size => return Err(ElfError::InterpreterSize(size)),
        };
        let mut path = vec![0; size];
        if !read_exact(file, self.offset, &mut path)? {
            return Err(ElfError::InterpreterTruncated);
        }
        if path.last() != Some(&0) {
            return Err(ElfError::InterpreterNotTerminated);
        }
        let length = path.iter().position(|&byte| byte == 0).unwrap_or(size);
        path.truncate(length);
        if path.is_empty() {
            return Err(ElfError::InterpreterEmpty);
        }
        Ok(path)
    }
}

const fn page_floor(address: u64) -> u64 {
    address & !(PAGE_SIZE - 1)
}

/// Rounds up. Addresses are at most [`USER_END`], so this cannot overflow; it saturates all the same.
const fn page_ceil(address: u64) -> u64 {
    page_floor(address.saturating_add(PAGE_SIZE - 1))
}

#[cfg(test)]
mod tests;
