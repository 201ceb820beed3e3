//! Decodes syscalls the way strace(1) prints them, without alignment (`strace -a1`).
//!
//! A call is decoded once, after it returned, from its registers and the guest's memory as it is then. Three
//! consequences follow. What the kernel both reads and writes (the sets and timeout of select, a `socklen_t`) prints as
//! the kernel left it. An execve that succeeds must be formatted while the old memory can still be read. And another
//! thread of the guest may have changed what a call was given: the line is for people, not evidence.
//!
//! The mask that rt_sigreturn restores lies on the guest's stack, whose pointer is not part of a call: it is left out.
//!
//! Rooms: `table` says what each syscall's arguments are, in the vocabulary of `kind`; `choose` has the calls whose
//! arguments depend on a command; `flags` the names of values; `structs` the structures behind pointers;
//! `printer` turns all of it into a `line`, whose length is bounded whatever the guest's memory holds.

#![forbid(unsafe_code)]

mod answers;
mod choose;
mod errno;
mod flags;
mod kind;
mod line;
mod printer;
mod signal;
mod structs;
mod table;
#[cfg(test)]
mod tests;

use syscalls::Sysno;

pub use errno::{Errno, errno};

use crate::kind::{Answer, Kind};
use crate::printer::Printer;

/// Reads of guest memory; short or failed reads are normal (hostile guest).
pub trait Memory {
    /// Fills `buffer` from `address`; false if any byte of it cannot be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool;
}

/// One syscall as it was made and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The x86-64 syscall number.
    pub number: u64,
    /// The registers rdi, rsi, rdx, r10, r8 and r9.
    pub arguments: [u64; 6],
    /// What the call returned (a negated errno on failure), or None if it never returns.
    pub result: Option<i64>,
}

/// The line strace would print for `call`, without a newline: ASCII, at most 4,096 bytes.
pub fn format(call: &Call, memory: &dyn Memory) -> String {
    let mut printer = Printer::new(call, memory);
    let number = sysno(call.number);
    match number {
        Some(number) => printer.put(format_args!("{}(", number.name())),
        None => printer.put(format_args!("syscall_{:#x}(", call.number)),
    }
    printer.arguments(number.and_then(table::arguments).unwrap_or(&[Kind::Hex; 6]));
    printer.result(number.map_or(Answer::Number, |number| answers::answer(number, call)));
    printer.finish()
}

/// The name of an x86-64 syscall number.
pub fn name(number: u64) -> Option<&'static str> {
    sysno(number).map(|number| number.name())
}

fn sysno(number: u64) -> Option<Sysno> {
    usize::try_from(number).ok().and_then(Sysno::new)
}
