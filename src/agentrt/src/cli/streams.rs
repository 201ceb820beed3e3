//! The standard streams as this process was started with them.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in place of each stream that is closed. The
//! program shall find closed what its starter closed, so the streams are looked at even earlier.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bit `n` is set if descriptor `n` was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

extern "C" fn look() {
    for number in 0..3 {
        // SAFETY: asks for the flags of a descriptor, which fails with EBADF if it is closed.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
}

// SAFETY: the C library calls what is in this section before `main`, when there is one thread. The
// function needs nothing of Rust's runtime: it makes a system call and sets an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// The standard streams, duplicated for a guest; None for those that were closed.
pub fn inherited() -> io::Result<[Option<OwnedFd>; 3]> {
    let mut streams = agentrt::inherited_streams()?;
    let closed = CLOSED.load(Ordering::Relaxed);
    for (number, stream) in streams.iter_mut().enumerate() {
        if closed & 1 << number != 0 {
            *stream = None;
        }
    }
    Ok(streams)
}
