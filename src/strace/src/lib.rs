//! Decodes syscalls the way strace prints them.
