//! Prints syscalls as strace does.

use std::cell::RefCell;
use std::io::Write;

use agentrt_strace::{Call, Memory};
use agentrt_vmm::Syscall;

use crate::mm::Mm;

/// The program's memory, as the decoder reads it. Reading may bring pages in.
struct ProgramMemory<'a>(RefCell<&'a mut Mm>);

impl Memory for ProgramMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.0.borrow_mut().read(address, buffer).is_ok()
    }
}

/// The line for a syscall, without newline; `result` is None while there is none.
pub fn line(mm: &mut Mm, call: &Syscall, result: Option<i64>) -> String {
    let call = Call {
        number: call.number,
        arguments: call.arguments,
        result,
    };
    agentrt_strace::format(&call, &ProgramMemory(RefCell::new(mm)))
}

/// Writes a line. What cannot be written is lost: a trace must not end a guest.
pub fn print(sink: &mut dyn Write, line: &str) {
    let _ = writeln!(sink, "{line}");
}
