//! ELF images, initial stacks and the syscall rewriter.
//!
//! Everything here is pure: bytes of files go in, descriptions and bytes come out. Nothing in this
//! crate knows of KVM, of guest memory or of page tables, and nothing is unsafe. All input is
//! hostile: a file that breaks a rule yields an error that names the rule, never a panic, and no
//! allocation is larger than a small multiple of the file.
//!
//! - [`elf`]: what to map where for an executable or its interpreter.
//! - [`script`]: the `#!` line of a script.
//! - [`stack`]: the stack a new program starts on.
//! - [`rewriter`]: where an executable's `syscall` instructions are, how to replace them by jumps,
//!   and a cache of both.

#![forbid(unsafe_code)]

pub mod elf;
pub mod rewriter;
pub mod script;
pub mod stack;

#[cfg(test)]
mod sample;
