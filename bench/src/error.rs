//! Why something could not be measured.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use agentrt::{End, StartError};
use agentrt_loader::rewriter::AnalysisError;
use agentrt_vmm::{Exit, OutOfMemory, VmError};

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There is no agentrt to measure.
    #[error(
        "no agentrt at {}; build it with `cargo build --release --package agentrt`, or name one \
         with --agentrt", path.display()
    )]
    NoAgentrt {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A program cannot be started.
    #[error("cannot run {program}: {error}")]
    Spawn {
        /// The program.
        program: String,
        /// What the host said.
        error: io::Error,
    },
    /// A program that is measured failed.
    #[error("{program} ended with {status}: {message}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error.
        message: String,
    },
    /// A file that is measured or counted cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the host said.
        error: io::Error,
    },
    /// A file of the host does not hold what it always does.
    #[error("{} does not hold the expected numbers", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A temporary directory or the report cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the host said.
        error: io::Error,
    },
    /// A virtual machine cannot be made.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// A virtual machine has too little memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// A guest cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A bare guest stopped for another reason than it was made for.
    #[error("a bare guest stopped by {0:?}")]
    Exit(Exit),
    /// A guest ended otherwise than its program does.
    #[error("a guest ended by {0:?}")]
    End(End),
    /// Syscalls took another route than the one that is measured.
    #[error("of {wanted} syscalls {patched} came through a rewritten site")]
    Route {
        /// Calls that were made.
        wanted: u64,
        /// Calls that came through a rewritten site.
        patched: u64,
    },
    /// A file cannot be analysed.
    #[error("cannot analyse {}: {error}", path.display())]
    Analysis {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: AnalysisError,
    },
}
