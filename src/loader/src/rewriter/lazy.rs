//! Sites met at run time that no analysis had found: code made by a JIT compiler, or code of a
//! stripped file.

use iced_x86::{Decoder, DecoderOptions};

use super::{JUMP_SIZE, SYSCALL, SYSCALL_SIZE};

/// Bytes before a `syscall` that are looked at, the length of the longest instruction.
const WINDOW: usize = 15;
/// Opcode of `mov eax, imm32`.
const MOV_EAX: u8 = 0xb8;

/// Decides whether the bytes right before a `syscall` that was just executed can be replaced by a
/// jump, and says how many: always [`JUMP_SIZE`].
///
/// `code_before` ends where the `syscall` starts; its last 15 bytes matter, and with fewer the
/// answer is `None`. They must be a `mov eax, imm32` whose operand is the number of the system call
/// that was just made, and the `mov` must not be the tail of a longer instruction: every decoding
/// that starts a little earlier and reaches the `syscall` must pass through the start of the `mov`.
pub fn displaced_length(code_before: &[u8], syscall_number: u32) -> Option<usize> {
    let mov = code_before.last_chunk::<JUMP_SIZE>()?;
    let (opcode, operand) = mov.split_first()?;
    let is_mov = *opcode == MOV_EAX && *operand == syscall_number.to_le_bytes();
    (is_mov && is_unambiguous(code_before, JUMP_SIZE)).then_some(JUMP_SIZE)
}

/// Whether the last `length` bytes before a `syscall` start an instruction however one decodes:
/// every decoding that starts in the bytes before them and reaches the `syscall` stops there. False
/// if there are fewer than 15 bytes.
pub(super) fn is_unambiguous(code_before: &[u8], length: usize) -> bool {
    let Some(window) = code_before.last_chunk::<WINDOW>() else {
        return false;
    };
    let boundary = WINDOW.saturating_sub(length);
    (0..boundary).all(|start| passes_through(window, start, boundary))
}

/// Whether decoding from `start` passes through `boundary`, or never reaches the `syscall`.
fn passes_through(window: &[u8; WINDOW], start: usize, boundary: usize) -> bool {
    // With the bytes of the syscall, for instructions that reach into it.
    let mut code = [0; WINDOW + SYSCALL_SIZE];
    code[..WINDOW].copy_from_slice(window);
    code[WINDOW..].copy_from_slice(&SYSCALL);
    let mut decoder = Decoder::new(64, &code[start..], DecoderOptions::NONE);
    let mut at = start;
    while at < WINDOW {
        if at == boundary {
            return true;
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return true;
        }
        at += instruction.len();
    }
    at != WINDOW
}

#[cfg(test)]
mod tests;
