//! agentrt: AI agents in KVM virtual machines without a guest kernel.
//!
//! - [`Config`], [`Guest`], [`End`]: run one program in a virtual machine of its own
//! - [`Cache`]: remembers the analysis of code between runs
//! - [`doctor`]: examines the host
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = agentrt::Config {
//!     program: b"python3".to_vec(),
//!     arguments: vec![b"python3".to_vec(), b"-c".to_vec(), b"print(6 * 7)".to_vec()],
//!     environment: agentrt::default_environment(),
//!     directory: b"/".to_vec(),
//!     files: agentrt::Files::new("/"),
//!     memory: agentrt::DEFAULT_MEMORY,
//!     streams: agentrt::inherited_streams()?,
//!     ignored_signals: Vec::new(),
//!     rewriter: std::sync::Arc::new(agentrt::Cache::disabled()),
//!     trace: None,
//! };
//! let end = agentrt::Guest::new(config)?.run();
//! assert_eq!(end, agentrt::End::Program(agentrt::Ended::Exited(0)));
//! # Ok(())
//! # }
//! ```

pub mod doctor;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

pub use agentrt_linux::guest::Interrupt;
pub use agentrt_linux::stop::Ended;
pub use agentrt_linux::{Config, End, Guest, StartError, Stats, exec::ExecError};
pub use agentrt_loader::rewriter::Cache;
pub use agentrt_vfs::{Config as Files, DEFAULT_OVERLAY_QUOTA, Volume};

/// Bytes of memory that a guest gets unless told otherwise.
pub const DEFAULT_MEMORY: u64 = 1 << 30;

/// The environment that a program starts with: these variables, and none of the host's.
pub fn default_environment() -> Vec<Vec<u8>> {
    [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "USER=root",
        "LANG=C.UTF-8",
    ]
    .map(|variable| variable.as_bytes().to_vec())
    .to_vec()
}

/// This process's standard streams, duplicated for a guest; None for those that are closed.
///
/// # Errors
/// If this process has no descriptor left.
pub fn inherited_streams() -> io::Result<[Option<OwnedFd>; 3]> {
    let duplicate = |stream: &dyn AsFd| match stream.as_fd().try_clone_to_owned() {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(None),
        Err(error) => Err(error),
    };
    Ok([
        duplicate(&io::stdin())?,
        duplicate(&io::stdout())?,
        duplicate(&io::stderr())?,
    ])
}
