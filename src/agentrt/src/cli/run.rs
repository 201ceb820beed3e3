//! `agentrt run`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentrt::{Cache, Config, End, Ended, ExecError, Files, Guest, StartError, Volume};

use super::parse::{self, Destination};
use super::terminal::Saved;
use super::{FAILED, interrupt, streams};

/// Exit status when the time limit ended the program (timeout(1)).
const TIMED_OUT: i32 = 124;
/// Exit status when the program was found and cannot be executed (env(1)).
const NOT_EXECUTABLE: i32 = 126;
/// Exit status when the program was not found (env(1)).
const NOT_FOUND: i32 = 127;

/// Options of `agentrt run`.
#[derive(clap::Args)]
pub struct Options {
    /// The directory that the program sees as `/`. It is never changed: what the program writes
    /// stays in memory and is gone when it ends.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Hide what is in this directory of the root; repeatable.
    #[arg(long, value_name = "DIR")]
    hide: Vec<PathBuf>,
    /// Memory of the virtual machine.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse::size)]
    memory: u64,
    /// Most bytes that the program's changes to files may take.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse::size)]
    writable: u64,
    /// Directory that the program starts in, a path inside.
    #[arg(long, value_name = "DIR", default_value = "/")]
    cwd: OsString,
    /// Set a variable of the program's environment; repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse::variable)]
    env: Vec<String>,
    /// Show a directory or file of the host at a path inside, writable unless `:ro`; repeatable.
    #[arg(long, value_name = "HOST:GUEST[:ro]", value_parser = parse::volume)]
    volume: Vec<Volume>,
    /// End the program after this long, e.g. 30s.
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    timeout: Option<Duration>,
    /// Write what the run cost as JSON to a file, or to the open descriptor fd:N.
    #[arg(long, value_name = "FILE|fd:N", value_parser = parse::destination)]
    stats: Option<Destination>,
    /// Print every syscall as strace does, to standard error or to a file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    strace: Option<Option<PathBuf>>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Why `agentrt run` itself failed.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("cannot write {what} to {to}: {error}")]
    Output {
        what: &'static str,
        to: String,
        error: io::Error,
    },
    #[error("cannot duplicate the standard streams: {0}")]
    Streams(io::Error),
}

impl RunError {
    fn status(&self) -> i32 {
        match self {
            RunError::Start(StartError::NotFound(_)) => NOT_FOUND,
            RunError::Start(StartError::Exec(ExecError::Map(_))) => FAILED,
            RunError::Start(StartError::Exec(error)) => match error.errno() {
                rustix::io::Errno::NOENT => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            },
            _ => FAILED,
        }
    }
}

/// Runs the program; ends this process as the program ended.
pub fn run(options: Options) -> ! {
    let memory = options.memory;
    match run_guest(options) {
        Ok(End::Program(Ended::Exited(status))) => std::process::exit(status.into()),
        Ok(End::Program(Ended::Killed(signal))) => interrupt::die_of(signal),
        Ok(End::Program(Ended::OutOfMemory)) => {
            eprintln!(
                "agentrt: the program used up its {memory} bytes of memory; give more with --memory"
            );
            interrupt::die_of(libc::SIGKILL)
        }
        Ok(End::TimedOut) => {
            eprintln!("agentrt: the program was ended: its time was over (--timeout)");
            std::process::exit(TIMED_OUT)
        }
        Ok(End::Failed(failure)) => {
            eprintln!("agentrt: the virtual machine failed: {failure}");
            std::process::exit(FAILED)
        }
        Err(error) => {
            eprintln!("agentrt: {error}");
            std::process::exit(error.status())
        }
    }
}

fn run_guest(mut options: Options) -> Result<End, RunError> {
    // Find out before the program runs whether its statistics can be written.
    let stats = options
        .stats
        .take()
        .map(|to| open_output("statistics", to))
        .transpose()?;
    let limit = options.timeout;
    let mut guest = Guest::new(config(options)?)?;
    // The program has an umask of its own; on volumes this process's must not come on top.
    rustix::process::umask(rustix::fs::Mode::empty());
    interrupt::install(guest.interrupt(), limit);
    let terminal = Saved::save();
    let end = guest.run();
    terminal.restore();
    if let Some((mut file, to)) = stats {
        serde_json::to_writer_pretty(&file, &guest.stats)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| RunError::Output {
                what: "statistics",
                to,
                error,
            })?;
    }
    Ok(end)
}

fn config(options: Options) -> Result<Config, RunError> {
    let mut files = Files::new(options.root);
    files.overlay_quota = options.writable;
    files.volumes = options.volume;
    files.hide = options.hide;
    let arguments: Vec<Vec<u8>> = options
        .program
        .into_iter()
        .map(OsString::into_vec)
        .collect();
    Ok(Config {
        program: arguments.first().cloned().unwrap_or_default(),
        arguments,
        environment: environment(&options.env),
        directory: options.cwd.as_bytes().to_vec(),
        files,
        memory: options.memory,
        streams: streams::inherited().map_err(RunError::Streams)?,
        ignored_signals: interrupt::ignored(),
        rewriter: Arc::new(open_cache()),
        trace: options.strace.map(open_trace).transpose()?,
    })
}

/// The default environment with `variables` set in it.
fn environment(variables: &[String]) -> Vec<Vec<u8>> {
    let mut environment = agentrt::default_environment();
    for variable in variables {
        let name_end = variable
            .find('=')
            .map_or(variable.len(), |equals| equals + 1);
        let name = &variable.as_bytes()[..name_end];
        environment.retain(|present| !present.starts_with(name));
        environment.push(variable.as_bytes().to_vec());
    }
    environment
}

/// The cache of analyses in the user's cache directory (XDG Base Directory Specification); in
/// memory only where there is none that is safe to use.
fn open_cache() -> Cache {
    let directory = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let Some(directory) = directory else {
        return Cache::disabled();
    };
    Cache::open(&directory.join("agentrt")).unwrap_or_else(|error| {
        eprintln!("agentrt: warning: {error}; code is analysed anew in each run");
        Cache::disabled()
    })
}

fn open_trace(file: Option<PathBuf>) -> Result<Box<dyn Write>, RunError> {
    match file {
        None => Ok(Box::new(io::stderr())),
        Some(path) => {
            let (file, _) = open_output("the trace", Destination::File(path))?;
            Ok(Box::new(io::LineWriter::new(file)))
        }
    }
}

fn open_output(what: &'static str, to: Destination) -> Result<(File, String), RunError> {
    let (opened, name) = match to {
        Destination::File(path) => (File::create(&path), path.display().to_string()),
        Destination::Descriptor(number) => (duplicate(number), format!("fd:{number}")),
    };
    match opened {
        Ok(file) => Ok((file, name)),
        Err(error) => Err(RunError::Output {
            what,
            to: name,
            error,
        }),
    }
}

/// A descriptor of our own for what the caller left open as `number`.
fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: the number is only duplicated, at once; if it is not open that fails with EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let owned: OwnedFd = borrowed.try_clone_to_owned()?;
    Ok(File::from(owned))
}
