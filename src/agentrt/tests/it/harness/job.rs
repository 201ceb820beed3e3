//! A command that can be run natively and in a guest.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::process::{Outcome, finish};
use super::{ENVIRONMENT, Volume, agentrt, assert_same, listing, scratch};

/// How long a run may take unless told otherwise.
const LIMIT: Duration = Duration::from_secs(60);

/// A command, and what it is run with.
#[derive(Clone, Debug)]
pub struct Job {
    command: Vec<OsString>,
    options: Vec<OsString>,
    directory: PathBuf,
    input: Vec<u8>,
    limit: Duration,
}

impl Job {
    /// A program and its arguments, in `/`, without input.
    pub fn new<S: Into<OsString>>(command: impl IntoIterator<Item = S>) -> Job {
        Job {
            command: command.into_iter().map(Into::into).collect(),
            options: Vec::new(),
            directory: "/".into(),
            input: Vec::new(),
            limit: LIMIT,
        }
    }

    /// A Python program given as text.
    pub fn python(program: &str) -> Job {
        Job::new(["/usr/bin/python3", "-c", program])
    }

    /// One more argument.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Job {
        self.command.push(argument.into());
        self
    }

    /// An option of `agentrt run`.
    pub fn option(mut self, option: impl Into<OsString>) -> Job {
        self.options.push(option.into());
        self
    }

    /// Shows a directory of the host, writable.
    pub fn volume(self, host: &Path, guest: &str) -> Job {
        let mut volume = OsString::from("--volume=");
        volume.push(host);
        volume.push(":");
        volume.push(guest);
        self.option(volume)
    }

    /// The directory that it starts in.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Job {
        self.directory = directory.into();
        self
    }

    /// What it reads on standard input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Job {
        self.input = input.into();
        self
    }

    /// How long it may take.
    pub fn limit(mut self, limit: Duration) -> Job {
        self.limit = limit;
        self
    }

    /// The command that runs it in a guest.
    pub fn guest_command(&self) -> Command {
        let mut command = Command::new(agentrt());
        command.env_clear().envs(host_environment()).arg("run");
        let mut directory = OsString::from("--cwd=");
        directory.push(&self.directory);
        command
            .arg(directory)
            .args(&self.options)
            .arg("--")
            .args(&self.command);
        command
    }

    /// The command that runs it natively.
    pub fn native_command(&self) -> Command {
        let mut command = Command::new(
            self.command
                .first()
                .map_or(OsStr::new(""), OsString::as_os_str),
        );
        command
            .args(&self.command[1..])
            .env_clear()
            .envs(ENVIRONMENT);
        command.current_dir(&self.directory);
        command
    }

    /// Runs it in a guest.
    #[track_caller]
    pub fn guest(&self) -> Outcome {
        let outcome = finish(self.guest_command(), self.input.clone(), self.limit);
        let err = outcome.err();
        assert!(!err.contains("panicked at"), "agentrt panicked: {err}");
        outcome
    }

    /// Runs it natively.
    #[track_caller]
    pub fn native(&self) -> Outcome {
        finish(self.native_command(), self.input.clone(), self.limit)
    }

    /// Runs it natively and in a guest, and fails unless status and output are the same.
    #[track_caller]
    pub fn same(&self) -> Outcome {
        let (native, guest) = (self.native(), self.guest());
        assert_eq!(
            native.ended, guest.ended,
            "native: {native:?}\nguest: {guest:?}"
        );
        assert_same("standard error", &native.stderr, &guest.stderr);
        assert_same("standard output", &native.stdout, &guest.stdout);
        guest
    }

    /// Runs it in two copies of a directory, natively and as a volume at the same path, and fails
    /// unless status, output and the files afterwards are the same.
    #[track_caller]
    pub fn same_in(&self, volume: &Volume) -> Outcome {
        let job = self.clone().directory(volume.native());
        let inside = volume
            .native()
            .to_str()
            .expect("a path of ASCII")
            .to_owned();
        let guest = job.volume(volume.guest(), &inside).same();
        let (native_files, guest_files) = (listing(volume.native()), listing(volume.guest()));
        assert_same("the files", native_files.as_bytes(), guest_files.as_bytes());
        guest
    }

    /// Runs it in a guest and reads its statistics.
    #[track_caller]
    pub fn stats(self) -> (Outcome, Value) {
        let directory = scratch();
        let file = directory.path().join("stats");
        let mut option = OsString::from("--stats=");
        option.push(&file);
        let outcome = self.option(option).guest();
        let stats = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
        (
            outcome,
            serde_json::from_slice(&stats).expect("statistics are JSON"),
        )
    }
}

/// What agentrt itself is run with: a cache of its own, that the tests share.
fn host_environment() -> [(&'static str, PathBuf); 2] {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let base = if target.is_dir() {
        target.to_owned()
    } else {
        std::env::temp_dir()
    };
    [
        ("PATH", "/usr/bin:/bin".into()),
        ("XDG_CACHE_HOME", base.join("cache")),
    ]
}
