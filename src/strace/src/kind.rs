//! What an argument, a structure and an answer can be: the vocabulary that the table of syscalls is written in.

use crate::Call;
use crate::flags::{Choice, Flags};
use crate::printer::Printer;
use crate::structs::Layout;

/// What one argument is, and so how it prints. Where a kind carries an index, it is that of the argument that holds
/// the length or the count.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Signed, 32 bits: numbers, pids and file descriptors.
    Int,
    /// Unsigned, 32 bits.
    Unsigned,
    /// Signed, 64 bits: file offsets.
    Long,
    /// Unsigned, 64 bits: sizes.
    Size,
    /// In hexadecimal, zero as `0`.
    Hex,
    /// In hexadecimal, zero as `NULL`.
    Pointer,
    /// A user or group id; the all-ones id means "leave it" and prints as -1.
    Id,
    /// Permission bits, in octal.
    Permissions,
    /// A file type and its permission bits.
    Mode,
    /// A device number.
    Device,
    /// A file descriptor of a directory, or AT_FDCWD.
    Directory,
    /// Bits that have names.
    Flags(&'static Flags),
    /// One of a list of values.
    Choice(&'static Choice),
    /// A signal number.
    Signal,
    /// A NUL-terminated path, never abbreviated.
    Path,
    /// Any other NUL-terminated string.
    Text,
    /// A NUL-terminated string that the kernel wrote.
    OutText,
    /// Bytes that the kernel reads.
    Bytes(usize),
    /// Bytes that the kernel wrote; the result counts them.
    OutBytes,
    /// Random bytes that the kernel wrote; the result counts them.
    OutRandom,
    /// A NULL-terminated array of strings.
    Strings,
    /// The same, but only counted: an environment.
    Environment,
    /// A structure that the kernel reads.
    In(&'static Layout),
    /// A structure that the kernel wrote.
    Out(&'static Layout),
    /// An array that the kernel reads.
    InArray(&'static Layout, usize),
    /// An array that the kernel wrote; the result counts its elements.
    Returned(&'static Layout),
    /// An array of iovec that the kernel reads from.
    Gather(usize),
    /// An array of iovec that the kernel wrote into.
    Scatter(usize),
    /// A set of file descriptors (select), bounded by an argument.
    Descriptors(usize),
    /// A set of processors, its size in bytes given by an argument.
    Processors(usize),
    /// A set of processors that the kernel wrote; the result is its size in bytes.
    OutProcessors,
    /// A socket address that the kernel reads.
    Address(usize),
    /// A socket address that the kernel wrote; the argument points at its length.
    OutAddress(usize),
    /// What no other kind says: printed by a function of its own.
    With(fn(&mut Printer, u64)),
    /// The arguments from here on depend on those before.
    Rest(fn(&Call) -> &'static [Kind]),
}

/// What a successful result is.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// A signed number.
    Number,
    /// A number or address in hexadecimal.
    Hex,
    /// A file mode mask, in octal.
    Mask,
    /// A number, with the flags it stands for: `0x1 (flags FD_CLOEXEC)`.
    Flags(&'static str, &'static Flags),
    /// A number, with the name it stands for: `0 (SCHED_OTHER)`.
    Choice(&'static Choice),
    /// A number, with what a function adds to it.
    With(fn(&mut Printer, u64)),
}
