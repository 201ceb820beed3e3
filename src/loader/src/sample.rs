//! ELF files made by hand, for tests.

/// A program header.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub vaddr: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
}

pub(crate) const LOAD: u32 = 1;
pub(crate) const INTERPRETER: u32 = 3;
pub(crate) const GNU_STACK: u32 = 0x6474_e551;

/// A `PT_LOAD` of pages that may be read and executed.
pub(crate) fn load(offset: u64, vaddr: u64, file_size: u64) -> Header {
    Header {
        kind: LOAD,
        flags: 5,
        offset,
        vaddr,
        file_size,
        memory_size: file_size,
        align: 0x1000,
    }
}

/// A file.
#[derive(Clone)]
pub(crate) struct Elf {
    pub kind: u16,
    pub machine: u16,
    pub entry: u64,
    pub entry_size: u16,
    pub headers: Vec<Header>,
    /// Bytes in the file; contents are zero unless written to.
    pub size: usize,
    pub contents: Vec<(usize, Vec<u8>)>,
    /// Offset and number of section headers; the last one is that of the string table.
    pub sections: (u64, u16),
}

impl Elf {
    pub(crate) fn new(headers: Vec<Header>, size: usize) -> Self {
        Self {
            kind: 3,
            machine: 62,
            entry: 0,
            entry_size: 56,
            headers,
            size,
            contents: Vec::new(),
            sections: (0, 0),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut start = b"\x7fELF\x02\x01\x01".to_vec();
        start.resize(16, 0);
        start.extend(self.kind.to_le_bytes());
        start.extend(self.machine.to_le_bytes());
        start.extend(1_u32.to_le_bytes());
        start.extend(self.entry.to_le_bytes());
        start.extend(64_u64.to_le_bytes());
        start.extend(self.sections.0.to_le_bytes());
        start.extend(0_u32.to_le_bytes());
        let counts = [
            64,
            self.entry_size,
            self.headers.len() as u16,
            64,
            self.sections.1,
            self.sections.1.saturating_sub(1),
        ];
        start.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        for header in &self.headers {
            start.extend(header.kind.to_le_bytes());
            start.extend(header.flags.to_le_bytes());
            let Header {
                offset,
                vaddr,
                file_size,
                memory_size,
                align,
                ..
            } = *header;
            let words = [offset, vaddr, vaddr, file_size, memory_size, align];
            start.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        start.resize(self.size.max(start.len()), 0);
        for (offset, bytes) in &self.contents {
            start[*offset..*offset + bytes.len()].copy_from_slice(bytes);
        }
        start.truncate(self.size.max(64));
        start
    }
}

/// Offset and address of the text of [`program`].
pub(crate) const TEXT: u64 = 0x1000;

/// A file with one executable segment and a symbol table: `functions` and `objects` are offset and
/// size in the text.
pub(crate) fn program(text: &[u8], functions: &[(u64, u64)], objects: &[(u64, u64)]) -> Vec<u8> {
    let functions = functions.iter().map(|symbol| (2_u8, symbol));
    let objects = objects.iter().map(|symbol| (1_u8, symbol));
    let mut symbols = vec![0; 24];
    for (kind, (start, size)) in functions.chain(objects) {
        symbols.extend(0_u32.to_le_bytes());
        symbols.extend([0x10 | kind, 0]);
        symbols.extend(1_u16.to_le_bytes());
        symbols.extend((TEXT + start).to_le_bytes());
        symbols.extend(size.to_le_bytes());
    }
    let symbols_offset = TEXT as usize + text.len().next_multiple_of(8);
    let strings_offset = symbols_offset + symbols.len();
    let sections_offset = strings_offset + 8;
    let sections = [
        section(0, 0, 0, 0, 0),
        section(2, symbols_offset as u64, symbols.len() as u64, 2, 24),
        section(3, strings_offset as u64, 8, 0, 0),
    ]
    .concat();
    let size = sections_offset + sections.len();
    let mut elf = Elf::new(vec![load(TEXT, TEXT, text.len() as u64)], size);
    elf.contents = vec![
        (TEXT as usize, text.to_vec()),
        (symbols_offset, symbols),
        (sections_offset, sections),
    ];
    elf.sections = (sections_offset as u64, 3);
    elf.bytes()
}

fn section(kind: u32, offset: u64, size: u64, link: u32, entry_size: u64) -> Vec<u8> {
    let mut bytes = 0_u32.to_le_bytes().to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(
        [0_u64, 0, offset, size]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    bytes.extend(link.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend([8, entry_size].iter().flat_map(|word| word.to_le_bytes()));
    bytes
}
