//! The guest shim: ring-3 code that every syscall of a guest program lands in.
