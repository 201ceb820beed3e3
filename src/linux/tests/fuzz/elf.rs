//! A small ELF program, byte by byte.

/// Where the program is mapped.
pub const BASE: u64 = 0x40_0000;
/// Offset of the code in the file.
pub const CODE: usize = 0x200;
/// Where the program has a page to write to.
pub const DATA: u64 = 0x60_0000;

/// Offsets in the file header (ELF-64 object file format).
pub mod header {
    pub const CLASS: usize = 4;
    pub const ENCODING: usize = 5;
    pub const TYPE: usize = 16;
    pub const MACHINE: usize = 18;
    pub const ENTRY: usize = 24;
    pub const TABLE_OFFSET: usize = 32;
    pub const TABLE_ENTRY_SIZE: usize = 54;
    pub const TABLE_COUNT: usize = 56;
}

/// Offset of program header `index`.
pub fn program_header(index: usize) -> usize {
    64 + 56 * index
}

/// Offsets in a program header.
pub mod field {
    pub const KIND: usize = 0;
    pub const OFFSET: usize = 8;
    pub const ADDRESS: usize = 16;
    pub const FILE_SIZE: usize = 32;
    pub const MEMORY_SIZE: usize = 40;
    pub const ALIGNMENT: usize = 48;
}

pub const LOAD: u32 = 1;
pub const INTERPRETER: u32 = 3;

/// A static program with `code` at its entry: one segment to read and execute, one to write.
pub fn program(code: &[u8]) -> Vec<u8> {
    let size = (CODE + code.len()) as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(2_u16.to_le_bytes());
    file.extend(62_u16.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for word in [BASE + CODE as u64, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 2, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for (flags, address, file_size, memory_size) in
        [(5_u32, BASE, size, size), (6, DATA, 0, 0x1000)]
    {
        file.extend(LOAD.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for word in [0, address, address, file_size, memory_size, 0x1000] {
            file.extend(word.to_le_bytes());
        }
    }
    file.resize(CODE, 0);
    file.extend(code);
    file
}

/// A program that names `interpreter`.
pub fn interpreted(interpreter: &str) -> Vec<u8> {
    let mut name = interpreter.as_bytes().to_vec();
    name.push(0);
    let mut file = program(&name);
    let entry = program_header(1);
    put(&mut file, entry + field::KIND, &INTERPRETER.to_le_bytes());
    put(
        &mut file,
        entry + field::OFFSET,
        &(CODE as u64).to_le_bytes(),
    );
    put(
        &mut file,
        entry + field::FILE_SIZE,
        &(name.len() as u64).to_le_bytes(),
    );
    file
}

/// Replaces bytes of a file.
pub fn put(file: &mut [u8], offset: usize, bytes: &[u8]) {
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}
