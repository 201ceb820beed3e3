//! Guest programs made byte by byte.

use agentrt_shim_abi::ENTRY_PATCHED;

/// Where a program is mapped, and where in its file the code starts.
const BASE: u64 = 0x40_0000;
const CODE_OFFSET: u64 = 0x80;
/// Number of the syscall that the programs make: getppid, which has nothing to do.
pub const SYSCALL: u32 = 110;

/// A static ELF program that makes `calls` getppid calls from one site, and exits.
pub fn counting_program(calls: u32) -> Vec<u8> {
    let mut code = vec![0x41, 0xbc]; // mov $calls, %r12d
    code.extend(calls.to_le_bytes());
    code.push(0xb8); // 1: mov $SYSCALL, %eax
    code.extend(SYSCALL.to_le_bytes());
    code.extend([0x0f, 0x05]); // syscall
    code.extend([0x41, 0xff, 0xcc]); // dec %r12d
    code.extend([0x75, 0xf4]); // jnz 1b
    code.extend([0x31, 0xff, 0xb8, 0xe7, 0, 0, 0]); // xor %edi, %edi; mov $231, %eax (exit_group)
    code.extend([0x0f, 0x05]);
    static_program(&code)
}

/// An ELF file of one segment (ELF-64 object file format).
fn static_program(code: &[u8]) -> Vec<u8> {
    let size = CODE_OFFSET + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]); // ET_EXEC, x86-64, version 1
    for word in [BASE + CODE_OFFSET, 64, 0] {
        file.extend(word.to_le_bytes()); // entry, program headers, section headers
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]); // PT_LOAD, read and execute
    for word in [0, BASE, BASE, size, size, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.resize(CODE_OFFSET as usize, 0);
    file.extend(code);
    file
}

/// Code for a bare virtual machine that does for ever what a rewritten syscall site does: it
/// loads the number and enters the shim with the return address in rcx.
pub fn bare_exit_loop() -> Vec<u8> {
    let mut code = vec![0xb8]; // 1: mov $SYSCALL, %eax
    code.extend(SYSCALL.to_le_bytes());
    code.extend([0x48, 0x8d, 0x0d, 6, 0, 0, 0]); // lea 2f(%rip), %rcx
    code.extend([0xff, 0x25, 2, 0, 0, 0]); // jmp *3f(%rip)
    code.extend([0xeb, 0xec]); // 2: jmp 1b
    code.extend(ENTRY_PATCHED.to_le_bytes()); // 3:
    code
}
