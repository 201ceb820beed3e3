//! The stack a new program starts on: strings, auxiliary vector, environment and arguments, laid
//! out as the x86-64 psABI (3.4.1, "Initial Stack and Register State") and Linux do.
//!
//! ```text
//! top      8 zero bytes, where Linux has a null pointer
//!          the file name of AT_EXECFN, the environment's strings, the arguments' strings
//!          the platform's name, 16 random bytes
//!          AT_NULL and before it the auxiliary vector
//!          null, and before it pointers to the environment's strings
//!          null, and before it pointers to the arguments' strings
//! rsp      number of arguments; rsp is a multiple of 16
//! ```

use thiserror::Error;

use crate::elf::USER_END;

// Types of auxiliary vector entries that point into the stack (Linux `uapi/linux/auxvec.h`).
const AT_NULL: u64 = 0;
const AT_PLATFORM: u64 = 15;
const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;

/// Bytes of one argument or environment string with its NUL, at most (Linux `MAX_ARG_STRLEN`).
pub const STRING_MAX: u64 = 128 << 10;
/// Linux always allows this many bytes of arguments and environment (`ARG_MAX`)...
const TOTAL_ALWAYS: u64 = 128 << 10;
/// ...and never more than three quarters of 8 MiB, however large the stack.
const TOTAL_MAX: u64 = 6 << 20;

/// Everything the initial stack holds.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Address one past the stack's last byte, a multiple of 16 below [`USER_END`].
    pub top: u64,
    /// Most bytes the stack may grow to (`RLIMIT_STACK`).
    pub limit: u64,
    /// The arguments, without NULs. If there are none, one empty string is passed, as on Linux.
    pub argv: &'a [Vec<u8>],
    /// The environment, without NULs.
    pub envp: &'a [Vec<u8>],
    /// Entries of the auxiliary vector, in order. `AT_PLATFORM`, `AT_RANDOM`, `AT_EXECFN` and
    /// `AT_NULL` are added behind them and must not be among them.
    pub auxv: &'a [(u64, u64)],
    /// What the program was executed as (`AT_EXECFN`).
    pub exec_filename: &'a [u8],
    /// Name of the processor (`AT_PLATFORM`), `x86_64` on Linux.
    pub platform: &'a [u8],
    /// The bytes behind `AT_RANDOM`, from which libc takes its stack protector's canary: must be
    /// unpredictable.
    pub random: [u8; 16],
}

/// A stack ready to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialStack {
    /// What lies from `stack_pointer` up to the top.
    pub bytes: Vec<u8>,
    /// The address rsp starts with, a multiple of 16.
    pub stack_pointer: u64,
}

/// Why a stack cannot be built.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StackError {
    /// Arguments and environment are too long for the stack: `execve` answers `E2BIG`.
    #[error("arguments and environment need {size} bytes, {limit} are allowed")]
    TooLong {
        /// Bytes needed for strings and pointers.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// One string is longer than [`STRING_MAX`]: `execve` answers `E2BIG`.
    #[error("a string of {0} bytes is longer than an argument may be")]
    StringTooLong(u64),
    /// A string has a NUL inside.
    #[error("an argument, environment string or name contains a NUL")]
    EmbeddedNul,
    /// The caller passed an auxiliary vector entry of a type that is added here.
    #[error("auxiliary vector entry {0} is reserved")]
    ReservedEntry(u64),
    /// The top of the stack is not aligned, not in user space, or too low for the contents.
    #[error("a stack cannot end at {0:#x}")]
    Top(u64),
}

/// Lays out the stack.
///
/// # Errors
///
/// See [`StackError`]; nothing larger than Linux's bounds on arguments is ever allocated.
pub fn build(contents: &Contents<'_>) -> Result<InitialStack, StackError> {
    contents.check()?;
    let empty = [Vec::new()];
    let argv = if contents.argv.is_empty() {
        &empty
    } else {
        contents.argv
    };

    let mut strings = Strings::below(contents.top);
    strings.push(&[0; 8])?;
    let exec_filename = strings.push_terminated(contents.exec_filename)?;
    // The last string is pushed first, so that the first one is lowest, as programs that rewrite
    // their arguments in place (setproctitle) expect.
    let envp = strings.push_all(contents.envp)?;
    let argv = strings.push_all(argv)?;
    let platform = strings.push_terminated(contents.platform)?;
    let random = strings.push(&contents.random)?;

    let mut words = vec![argv.len() as u64];
    words.extend(argv);
    words.push(0);
    words.extend(envp);
    words.push(0);
    words.extend(
        contents
            .auxv
            .iter()
            .flat_map(|&(kind, value)| [kind, value]),
    );
    words.extend([AT_PLATFORM, platform, AT_RANDOM, random]);
    words.extend([AT_EXECFN, exec_filename, AT_NULL, 0]);
    strings.finish(&words)
}

impl Contents<'_> {
    fn check(&self) -> Result<(), StackError> {
        if !self.top.is_multiple_of(16) || self.top > USER_END {
            return Err(StackError::Top(self.top));
        }
        for &(kind, _) in self.auxv {
            if matches!(kind, AT_NULL | AT_PLATFORM | AT_RANDOM | AT_EXECFN) {
                return Err(StackError::ReservedEntry(kind));
            }
        }
        let pointers = (self.argv.len().max(1) as u64).saturating_add(self.envp.len() as u64);
        let mut size = pointers.saturating_mul(8);
        let strings = self.argv.iter().chain(self.envp).map(Vec::as_slice);
        for string in strings.chain([self.exec_filename, self.platform]) {
            let length = (string.len() as u64).saturating_add(1);
            if length > STRING_MAX {
                return Err(StackError::StringTooLong(length));
            }
            if string.contains(&0) {
                return Err(StackError::EmbeddedNul);
            }
            size = size.saturating_add(length);
        }
        let limit = (self.limit / 4).clamp(TOTAL_ALWAYS, TOTAL_MAX);
        if size > limit {
            return Err(StackError::TooLong { size, limit });
        }
        Ok(())
    }
}

/// Pieces stacked downwards from the top; kept in the order they were pushed.
struct Strings<'a> {
    top: u64,
    next: u64,
    pieces: Vec<(u64, &'a [u8])>,
}

impl<'a> Strings<'a> {
    fn below(top: u64) -> Self {
        Self {
            top,
            next: top,
            pieces: Vec::new(),
        }
    }

    fn push(&mut self, piece: &'a [u8]) -> Result<u64, StackError> {
        self.reserve(piece, 0)
    }

    fn push_terminated(&mut self, string: &'a [u8]) -> Result<u64, StackError> {
        self.reserve(string, 1)
    }

    fn push_all(&mut self, strings: &'a [Vec<u8>]) -> Result<Vec<u64>, StackError> {
        let mut addresses = strings
            .iter()
            .rev()
            .map(|string| self.push_terminated(string))
            .collect::<Result<Vec<_>, _>>()?;
        addresses.reverse();
        Ok(addresses)
    }

    fn reserve(&mut self, piece: &'a [u8], padding: u64) -> Result<u64, StackError> {
        let size = piece.len() as u64 + padding;
        self.next = self
            .next
            .checked_sub(size)
            .ok_or(StackError::Top(self.top))?;
        self.pieces.push((self.next, piece));
        Ok(self.next)
    }

    fn finish(self, words: &[u64]) -> Result<InitialStack, StackError> {
        let stack_pointer = self
            .next
            .checked_sub(words.len() as u64 * 8)
            .ok_or(StackError::Top(self.top))?
            & !15;
        let size =
            usize::try_from(self.top - stack_pointer).map_err(|_| StackError::Top(self.top))?;
        let mut bytes = vec![0; size];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        for (address, piece) in self.pieces {
            let start = (address - stack_pointer) as usize;
            bytes[start..start + piece.len()].copy_from_slice(piece);
        }
        Ok(InitialStack {
            bytes,
            stack_pointer,
        })
    }
}

#[cfg(test)]
mod tests;
