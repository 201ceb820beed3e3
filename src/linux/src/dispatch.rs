//! The table from syscall numbers to handlers.
//!
//! A number that is not in the table gives ENOSYS and is counted as unknown.

use syscalls::Sysno;

use crate::arguments::Arguments;
use crate::guest::Guest;
use crate::stop::Result;
use crate::{exec, file, mm, process, signal, time};

/// Serves one syscall; the value goes to the program.
pub type Handler = fn(&mut Guest, &Arguments) -> Result<u64>;

/// The handler of syscall `number`, if agentrt serves it.
pub fn handler(number: u64) -> Option<Handler> {
    let number = Sysno::new(usize::try_from(number).ok()?)?;
    file::handler(number)
        .or_else(|| mm::syscalls::handler(number))
        .or_else(|| process::handler(number))
        .or_else(|| signal::handler(number))
        .or_else(|| time::handler(number))
        .or_else(|| exec::handler(number))
}

/// Does syscall `number` put another program image in place of the one that made it?
pub fn replaces_image(number: u64) -> bool {
    [Sysno::execve, Sysno::execveat]
        .iter()
        .any(|call| call.id() as u64 == number)
}
