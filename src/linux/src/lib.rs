//! The host's half of Linux: what a guest's kernel would have done.
//!
//! Rooms, from the entry down:
//! - [`guest`]: one agent: its VM, its process, its file tree; runs it to its end
//! - [`dispatch`]: the table from syscall numbers to handlers
//! - [`exec`]: program images: `execve`, and the first one of a guest
//! - [`file`]: files, directories, descriptors
//! - [`mm`]: memory areas, page faults, access to the program's memory
//! - [`process`]: identity, limits, exit
//! - [`signal`]: dispositions and deaths
//! - [`time`]: clock syscalls and sleeps
//! - [`clock`]: the clocks themselves, told to the vDSO
//! - [`task`]: the state that the handlers share, and how /proc shows it
//! - [`stats`], [`trace`]: what is counted and what is printed
//!
//! Invariants: a handler never blocks (it returns [`stop::Stop::Wait`] and is called again); a
//! handler copies what a pointer names once, checks the copy and uses the copy; nothing a program
//! does makes the host panic.

pub mod arguments;
pub mod clock;
pub mod descriptor;
pub mod dispatch;
pub mod exec;
pub mod file;
pub mod guest;
pub mod mm;
pub mod process;
pub mod signal;
pub mod stats;
pub mod stop;
pub mod stream;
pub mod task;
pub mod time;
pub mod trace;

pub use guest::{Config, End, Guest, StartError};
pub use stats::Stats;
