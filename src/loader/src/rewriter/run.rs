//! The run of instructions before a `syscall` that a jump can replace.

use iced_x86::{FlowControl, Instruction, Mnemonic};

use super::JUMP_SIZE;
use super::flow::{Evidence, Flow};

/// `mov rax, 15`, the first instruction of libc's `__restore_rt`. Debuggers, and unwinders where
/// libc gives no unwind information (musl), know a signal frame by these bytes.
pub(super) const MOV_RT_SIGRETURN: [u8; 7] = [0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00];

/// Where a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Offset of its first instruction in the region.
    pub start: usize,
    /// Whether it has several instructions: then nothing may jump between them.
    pub has_several: bool,
}

/// Finds the shortest run of at least [`JUMP_SIZE`] bytes that ends at the `syscall` at `site`, an
/// offset in the region. `allow_several` says that the region's branches are all known.
pub(super) fn find(
    flow: &mut Flow<'_>,
    site: usize,
    evidence: Evidence,
    allow_several: bool,
) -> Option<Run> {
    let mut start = site;
    let mut count = 0;
    while site - start < JUMP_SIZE {
        // What the run so far starts with will be inside it.
        if start != site && (!allow_several || flow.is_target(start)) {
            return None;
        }
        start = flow.previous(start, evidence)?;
        let instruction = flow.decode(start)?;
        if !can_be_displaced(&instruction) {
            return None;
        }
        count += 1;
    }
    (!is_entered(flow, start, site, count)).then_some(Run {
        start,
        has_several: count > 1,
    })
}

/// Whether the run may be entered anywhere but at its `count` instructions, or is itself part of
/// another instruction: some code jumps over the prefix of an instruction.
fn is_entered(flow: &Flow<'_>, start: usize, site: usize, count: usize) -> bool {
    let mut inside = start + 1..site;
    let instructions = inside
        .clone()
        .filter(|&offset| flow.starts_at(offset, Evidence::Reached))
        .count();
    instructions >= count
        || inside.any(|offset| flow.is_target(offset))
        || flow.is_inside_instruction(start, Evidence::Reached)
}

/// Whether an instruction does the same at another address, and goes on to the next.
fn can_be_displaced(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::Next
        && !instruction.is_ip_rel_memory_operand()
        && !matches!(
            instruction.mnemonic(),
            // A place that indirect branches go to.
            Mnemonic::Endbr64 | Mnemonic::Endbr32
            // Not code that runs in ring 3 at all.
            | Mnemonic::Hlt | Mnemonic::Syscall | Mnemonic::Sysenter
        )
}
