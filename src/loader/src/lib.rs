//! ELF images, initial stacks and the syscall rewriter.
