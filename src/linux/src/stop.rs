//! Why a handler does not answer with a value.

use std::os::fd::RawFd;
use std::time::Instant;

use rustix::io::Errno;

/// The result of a syscall handler; a value goes to the program as it is.
pub type Result<T> = std::result::Result<T, Stop>;

/// Why a handler does not answer with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program gets this error.
    Error(Errno),
    /// Nothing to answer yet: call the handler again, with the same arguments, when this is over.
    Wait(Wait),
    /// The guest ends here.
    End(Ended),
    /// The handler has set all of the program's registers, as `execve` does.
    Resume,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Stop {
        Stop::Error(error)
    }
}

/// What a syscall waits for: whatever comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Descriptors of the host's and the `POLL*` events awaited on each.
    pub descriptors: Vec<(RawFd, i16)>,
    /// A point in time.
    pub deadline: Option<Instant>,
}

impl Wait {
    /// For `events` on one descriptor of the host's.
    pub fn descriptor(descriptor: RawFd, events: i16) -> Wait {
        Wait {
            descriptors: vec![(descriptor, events)],
            deadline: None,
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status (0 to 255).
    Exited(u8),
    /// It died of this signal.
    Killed(i32),
    /// It used up its memory.
    OutOfMemory,
}
