//! The guest shim: the ring-3 code that every syscall of a guest program lands in.
//!
//! It stands at [`SHIM_BASE`](agentrt_shim_abi::SHIM_BASE) in every guest, readable and executable
//! and never writable. So far it forwards every call to the host: one instruction that leaves the
//! VM, then a jump back to the address that the `syscall` instruction, or the trampoline in its
//! stead, left in `rcx`. It touches neither the stack (the red zone is the program's) nor any
//! register but those that the kernel ABI gives up (`rcx`, `r11`; psABI x86-64, A.2.1).

pub mod vdso;

use agentrt_shim_abi::{ENTRY_LSTAR, ENTRY_PATCHED, SHIM_BASE};

/// Bytes of the instruction by which ring 3 leaves the VM: `out %al, imm8`, to the one port that
/// the I/O permission bitmap opens.
pub const EXIT_LENGTH: u64 = 2;

// Both entries are the same code: the host tells rewritten sites from trapped ones by the address
// that it was left at.
core::arch::global_asm!(
    ".pushsection .rodata.agentrt_shim, \"a\", @progbits",
    ".balign 64",
    ".globl agentrt_shim_text",
    "agentrt_shim_text:",
    "outb %al, ${port}",
    "jmp *%rcx",
    ".balign 64, 0xcc",
    "outb %al, ${port}",
    "jmp *%rcx",
    ".balign 64, 0xcc",
    ".popsection",
    port = const agentrt_shim_abi::SYSCALL_PORT,
    options(att_syntax),
);

unsafe extern "C" {
    static agentrt_shim_text: [u8; TEXT_SIZE];
}

/// Two entries of 64 bytes each.
const TEXT_SIZE: usize = 2 * (ENTRY_LSTAR - ENTRY_PATCHED) as usize;
const _: () = assert!(ENTRY_PATCHED == SHIM_BASE && TEXT_SIZE <= agentrt_shim_abi::SHIM_LIMIT);

/// The shim's text, to be placed at [`SHIM_BASE`](agentrt_shim_abi::SHIM_BASE).
pub fn text() -> &'static [u8] {
    // SAFETY: the assembly above defines the symbol with TEXT_SIZE bytes behind it, in a read-only
    // section that lives as long as the program.
    unsafe { &agentrt_shim_text }
}

#[cfg(test)]
mod tests;
