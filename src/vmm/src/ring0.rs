//! The only privileged code and data of a guest: descriptor tables, task state segment, stubs.
//!
//! Five pages at [`RING0_BASE`], supervisor-only:
//!
//! | page | holds |
//! |---|---|
//! | 0 | global descriptor table |
//! | 1 | interrupt descriptor table: one gate for each of the 32 exception vectors |
//! | 2 | task state segment and I/O permission bitmap |
//! | 3 | exception stubs, the syscall bounce and its frame |
//! | 4 | ring-0 stack, on which the processor leaves the exception frame |
//!
//! A stub is two or three instructions, because PVM emulates ring 0 at about 0.7 µs for each: `out`
//! to the port named as its vector, which stops the VM with the frame still on the stack; then,
//! once the host has resolved the exception, `iretq`.

use agentrt_shim_abi::{ENTRY_LSTAR, PAGE_SIZE, RING0_BASE, SYSCALL_PORT};

use crate::memory::GuestMemory;
use crate::platform::Platform;

/// Pages of the ring-0 area.
pub const PAGES: u64 = 5;
/// Exception vectors that the architecture defines or reserves (SDM vol. 3A, 6.2).
pub const VECTORS: u8 = 32;

// Selectors as Linux has them on x86-64, because under PVM a guest runs on the host's own table.
/// Ring-0 code.
pub const KERNEL_CODE: u16 = 0x10;
/// Ring-3 code, 64 bits.
pub const USER_CODE: u16 = 0x33;
/// Ring-3 data.
pub const USER_DATA: u16 = 0x2b;
/// Task state segment.
pub const TASK_STATE: u16 = 0x40;

/// Address and limit of the global descriptor table.
pub const GDT: (u64, u16) = (RING0_BASE, 0x4f);
/// Address and limit of the interrupt descriptor table.
pub const IDT: (u64, u16) = (RING0_BASE + PAGE_SIZE, 16 * VECTORS as u16 - 1);
/// Address and limit of the task state segment with its I/O bitmap.
pub const TSS: (u64, u16) = (
    RING0_BASE + 2 * PAGE_SIZE,
    (TSS_SIZE + IO_BITMAP_SIZE) as u16,
);
/// Where MSR_LSTAR points on hardware: enters the shim in ring 3 with all registers but `rcx` and
/// `r11` as the program left them.
pub const SYSCALL_BOUNCE: u64 = STUBS + BOUNCE_OFFSET;
/// RFLAGS for ring 3: interrupts enabled and the bit that is always set.
pub const USER_FLAGS: u64 = 0x202;

const STUBS: u64 = RING0_BASE + 3 * PAGE_SIZE;
const STUB_SIZE: u64 = 16;
const BOUNCE_OFFSET: u64 = 0x400;
const BOUNCE_FRAME_OFFSET: u64 = 0x600;
const STACK_TOP_OFFSET: u64 = 5 * PAGE_SIZE;
/// SDM vol. 3A, figure 8-11.
const TSS_SIZE: u64 = 0x68;
/// Bits for ports 0 to 63; the byte after it must be all ones (SDM vol. 1, 19.5.2).
const IO_BITMAP_SIZE: u64 = 8;

/// What the processor pushed when it entered ring 0 (SDM vol. 3A, 6.14.2), as offsets from the
/// start of the ring-0 area.
pub(crate) mod frame {
    use super::STACK_TOP_OFFSET;

    pub const ERROR_CODE: u64 = STACK_TOP_OFFSET - 48;
    pub const INSTRUCTION_POINTER: u64 = STACK_TOP_OFFSET - 40;
    pub const CODE_SEGMENT: u64 = STACK_TOP_OFFSET - 32;
    pub const FLAGS: u64 = STACK_TOP_OFFSET - 24;
    pub const STACK_POINTER: u64 = STACK_TOP_OFFSET - 16;
}

/// Does the processor push an error code for `vector`? (SDM vol. 3A, table 6-1.)
pub fn has_error_code(vector: u8) -> bool {
    matches!(vector, 8 | 10..=14 | 17 | 21 | 29 | 30)
}

/// Writes the ring-0 area into `memory` at guest-physical `base`.
pub(crate) fn install(memory: &GuestMemory, base: u64, platform: Platform) {
    install_gdt(memory, base, platform);
    for vector in 0..VECTORS {
        // Only `int3` may be raised by an instruction of ring 3; `int n` is #GP.
        let privilege = if vector == 3 { 3 } else { 0 };
        install_gate(memory, base + PAGE_SIZE, vector, privilege);
        write(
            memory,
            base + 3 * PAGE_SIZE + u64::from(vector) * STUB_SIZE,
            &stub(vector),
        );
    }
    install_tss(memory, base + 2 * PAGE_SIZE, platform);
    write(
        memory,
        base + 3 * PAGE_SIZE + BOUNCE_OFFSET,
        &syscall_bounce(),
    );
    let frame = [
        ENTRY_LSTAR,
        u64::from(USER_CODE),
        USER_FLAGS,
        0,
        u64::from(USER_DATA),
    ]
    .map(u64::to_le_bytes);
    write(
        memory,
        base + 3 * PAGE_SIZE + BOUNCE_FRAME_OFFSET,
        frame.as_flattened(),
    );
}

fn install_gdt(memory: &GuestMemory, base: u64, platform: Platform) {
    // Flat descriptors (SDM vol. 3A, 3.4.5): granularity, long-mode or 32-bit, limit 0xfffff.
    let code = |privilege: u64| 0x00af_9b00_0000_ffff | privilege << 45;
    let data = |privilege: u64| 0x00cf_9300_0000_ffff | privilege << 45;
    let entries = [(2, code(0)), (3, data(0)), (5, data(3)), (6, code(3))];
    for (index, descriptor) in entries {
        memory.store(base + index * 8, descriptor);
    }
    let (address, limit) = TSS;
    let low = u64::from(limit)
        | (address & 0xff_ffff) << 16
        | u64::from(platform.tss_type() | 0x80) << 40
        | (address >> 24 & 0xff) << 56;
    memory.store(base + u64::from(TASK_STATE), low);
    memory.store(base + u64::from(TASK_STATE) + 8, address >> 32);
}

/// A 64-bit interrupt gate (SDM vol. 3A, 6.14.1).
fn install_gate(memory: &GuestMemory, idt: u64, vector: u8, privilege: u64) {
    let handler = STUBS + u64::from(vector) * STUB_SIZE;
    let low = handler & 0xffff
        | u64::from(KERNEL_CODE) << 16
        | (0x8e | privilege << 5) << 40
        | (handler >> 16 & 0xffff) << 48;
    memory.store(idt + u64::from(vector) * 16, low);
    memory.store(idt + u64::from(vector) * 16 + 8, handler >> 32);
}

fn install_tss(memory: &GuestMemory, tss: u64, platform: Platform) {
    write(
        memory,
        tss + 4,
        &(RING0_BASE + STACK_TOP_OFFSET).to_le_bytes(),
    );
    write(memory, tss + 0x66, &(TSS_SIZE as u16).to_le_bytes());
    let mut bitmap = [0xff; IO_BITMAP_SIZE as usize + 1];
    if platform.exit_instruction() == agentrt_shim::ExitInstruction::Out {
        bitmap[usize::from(SYSCALL_PORT / 8)] &= !(1 << (SYSCALL_PORT % 8));
    }
    write(memory, tss + TSS_SIZE, &bitmap);
}

fn stub(vector: u8) -> Vec<u8> {
    let mut code = vec![0xe6, vector]; // out %al, $vector
    if has_error_code(vector) {
        code.extend([0x48, 0x83, 0xc4, 0x08]); // add $8, %rsp
    }
    code.extend([0x48, 0xcf]); // iretq
    code
}

/// Stores the program's stack pointer in a frame that is otherwise ready, and returns to it.
fn syscall_bounce() -> Vec<u8> {
    let frame = ((STUBS + BOUNCE_FRAME_OFFSET) as u32).to_le_bytes();
    let stack_slot = ((STUBS + BOUNCE_FRAME_OFFSET + 24) as u32).to_le_bytes();
    let mut code = vec![0x48, 0x89, 0x24, 0x25]; // mov %rsp, stack_slot
    code.extend(stack_slot);
    code.extend([0x48, 0xc7, 0xc4]); // mov $frame, %rsp
    code.extend(frame);
    code.extend([0x48, 0xcf]); // iretq
    code
}

fn write(memory: &GuestMemory, address: u64, bytes: &[u8]) {
    if let Some(slice) = memory.slice(address, bytes.len()) {
        slice.copy_from(bytes);
    }
}
