//! Runs programs in agentrt and natively.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::BenchError;

/// An agentrt binary with a cache of its own, so that runs find what earlier runs of this
/// benchmark left and nothing else.
pub struct Agentrt {
    binary: PathBuf,
    directory: tempfile::TempDir,
}

impl Agentrt {
    /// Uses `binary`.
    ///
    /// # Errors
    /// It is not there, or there is no place for its cache.
    pub fn new(binary: PathBuf) -> Result<Agentrt, BenchError> {
        if !binary.is_file() {
            return Err(BenchError::NoAgentrt { path: binary });
        }
        let directory = tempfile::tempdir().map_err(|error| BenchError::Write {
            path: std::env::temp_dir(),
            error,
        })?;
        Ok(Agentrt { binary, directory })
    }

    /// `agentrt run OPTIONS -- PROGRAM ARGUMENTS`.
    pub fn run(&self, options: &[&OsStr], program: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("run").args(options).arg("--").args(program);
        command
            .env_clear()
            .env("XDG_CACHE_HOME", self.directory.path());
        command
    }

    /// A file for the statistics of runs.
    pub fn stats_file(&self) -> PathBuf {
        self.directory.path().join("stats")
    }
}

/// `program` as the host runs it, with the environment that agentrt gives a program.
pub fn native(program: &[&str]) -> Command {
    let mut command = Command::new(program.first().copied().unwrap_or_default());
    command
        .args(program.iter().skip(1))
        .env_clear()
        .current_dir("/");
    for variable in agentrt::default_environment() {
        let mut parts = variable.splitn(2, |&byte| byte == b'=');
        if let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
    }
    command
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// From its start to its end.
    pub wall: Duration,
    /// Processor time, in user and kernel mode.
    pub processor: Duration,
}

/// Runs a command to its end, without input, its output thrown away.
///
/// # Errors
/// It cannot be started, or ends otherwise than with status 0.
pub fn time(mut command: Command) -> Result<Cost, BenchError> {
    let program = format!("{:?}", command.get_program());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let (start, used) = (Instant::now(), children_time());
    let output = command.output();
    let cost = Cost {
        wall: start.elapsed(),
        processor: children_time() - used,
    };
    let output = match output {
        Ok(output) => output,
        Err(error) => return Err(BenchError::Spawn { program, error }),
    };
    if output.status.success() {
        return Ok(cost);
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(BenchError::Failed {
        program,
        status: output.status,
        message,
    })
}

/// Processor time of all children that have ended.
fn children_time() -> Duration {
    // SAFETY: all zeros is a valid rusage, which is plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage(2) fills the structure that it is given.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let duration = |time: libc::timeval| {
        Duration::new(
            time.tv_sec.max(0) as u64,
            (time.tv_usec.max(0) * 1000) as u32,
        )
    };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// The first file called `name` in this process's PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Reads a file.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, BenchError> {
    fs::read(path).map_err(|error| BenchError::Read {
        path: path.to_owned(),
        error,
    })
}
