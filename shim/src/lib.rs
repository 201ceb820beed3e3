//! The guest shim: the ring-3 code that every syscall of a guest program lands in.
//!
//! It stands at [`SHIM_BASE`](agentrt_shim_abi::SHIM_BASE) in every guest, readable and executable
//! and never writable. So far it forwards every call to the host: one instruction that leaves the
//! VM, then a jump back to the address that the `syscall` instruction, or the trampoline in its
//! stead, left in `rcx`. It touches neither the stack (the red zone is the program's) nor any
//! register but those that the kernel ABI gives up (`rcx`, `r11`; psABI x86-64, A.2.1).

pub mod vdso;

use agentrt_shim_abi::{ENTRY_LSTAR, ENTRY_PATCHED, SHIM_BASE};

/// The instruction by which ring 3 leaves the VM; which one is cheapest depends on the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitInstruction {
    /// `int3`, whose ring-0 stub performs the exit.
    Breakpoint,
    /// `out %al, imm8`, which leaves the VM from ring 3 where the I/O bitmap allows it.
    Out,
}

// Both entries of a variant stand ENTRY_LSTAR - ENTRY_PATCHED apart. They are the same code: the
// host tells rewritten sites from trapped ones by the address that it was left at.
core::arch::global_asm!(
    ".pushsection .rodata.agentrt_shim, \"a\", @progbits",
    ".balign 64",
    ".globl agentrt_shim_breakpoint",
    "agentrt_shim_breakpoint:",
    "int3",
    "jmp *%rcx",
    ".balign 64, 0xcc",
    "int3",
    "jmp *%rcx",
    ".balign 64, 0xcc",
    ".globl agentrt_shim_out",
    "agentrt_shim_out:",
    "outb %al, ${port}",
    "jmp *%rcx",
    ".balign 64, 0xcc",
    "outb %al, ${port}",
    "jmp *%rcx",
    ".balign 64, 0xcc",
    ".globl agentrt_shim_end",
    "agentrt_shim_end:",
    ".popsection",
    port = const agentrt_shim_abi::SYSCALL_PORT,
    options(att_syntax),
);

unsafe extern "C" {
    static agentrt_shim_breakpoint: [u8; TEXT_SIZE];
    static agentrt_shim_out: [u8; TEXT_SIZE];
}

/// Two entries of 64 bytes each.
const TEXT_SIZE: usize = 2 * (ENTRY_LSTAR - ENTRY_PATCHED) as usize;
const _: () = assert!(ENTRY_PATCHED == SHIM_BASE && TEXT_SIZE <= agentrt_shim_abi::SHIM_LIMIT);

/// The shim's text, to be placed at [`SHIM_BASE`](agentrt_shim_abi::SHIM_BASE).
pub fn text(exit: ExitInstruction) -> &'static [u8] {
    // SAFETY: the assembly above defines both symbols with TEXT_SIZE bytes behind each, in a
    // read-only section that lives as long as the program.
    unsafe {
        match exit {
            ExitInstruction::Breakpoint => &agentrt_shim_breakpoint,
            ExitInstruction::Out => &agentrt_shim_out,
        }
    }
}

/// Length in bytes of the exit instruction: where the host finds the instruction pointer after an
/// exit by [`ExitInstruction::Breakpoint`] is this far behind the entry.
pub fn exit_length(exit: ExitInstruction) -> u64 {
    match exit {
        ExitInstruction::Breakpoint => 1,
        ExitInstruction::Out => 2,
    }
}

#[cfg(test)]
mod tests;
