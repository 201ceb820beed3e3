//! Fuzzing of everything that a hostile guest reaches.
//!
//! - [`dispatch`]: sequences of arbitrary syscalls on arbitrary memory ([`steps`])
//! - [`memory`]: the memory syscalls against a model
//! - [`processor`]: arbitrary code and registers on the real processor
//! - [`programs`]: damaged programs, interpreters and scripts, and what is said of them
//!
//! Every test called `fuzz` runs for AGENTRT_FUZZ_SECONDS, a moment without. A failure prints the
//! seed that repeats it, to be given as AGENTRT_FUZZ_SEED, and the least input that fails.

mod budget;
mod dispatch;
mod elf;
mod memory;
mod processor;
mod programs;
mod steps;
mod world;
