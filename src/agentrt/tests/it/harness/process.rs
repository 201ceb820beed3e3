//! Runs one process of the host to its end, within a time limit.

use std::fmt;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::{excerpt, text};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Ended {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Exit(code),
            (None, signal) => Ended::Signal(signal.unwrap_or(0)),
        }
    }
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{:?}", self.ended)?;
        writeln!(formatter, "stdout: {}", excerpt(&text(&self.stdout)))?;
        write!(formatter, "stderr: {}", excerpt(&text(&self.stderr)))
    }
}

impl Outcome {
    /// Standard output as text.
    pub fn out(&self) -> String {
        text(&self.stdout)
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        text(&self.stderr)
    }

    /// Fails unless it ended so.
    #[track_caller]
    pub fn ended(self, ended: Ended) -> Outcome {
        assert_eq!(self.ended, ended, "{self:?}");
        self
    }

    /// Fails unless it exited with 0 and wrote nothing to standard error.
    #[track_caller]
    pub fn ok(self) -> Outcome {
        assert!(self.stderr.is_empty(), "{self:?}");
        self.ended(Ended::Exit(0))
    }
}

/// Runs a command that gets `input` on its standard input; kills it, and fails, after `limit`.
pub fn finish(command: Command, input: Vec<u8>, limit: Duration) -> Outcome {
    let description = format!("{command:?}");
    finish_child(spawn(command), input, limit)
        .unwrap_or_else(|| panic!("not over after {limit:?}: {}", excerpt(&description)))
}

/// Starts a command in a process group of its own, with pipes.
pub fn spawn(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits for a child as [`spawn`] made it; None if it had to be killed.
pub fn finish_child(mut child: Child, input: Vec<u8>, limit: Duration) -> Option<Outcome> {
    let mut stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(move || {
            // A program need not read its input; dropping the pipe ends it.
            let _ = stdin.take().map(|mut pipe| pipe.write_all(&input));
        });
        let stdout = scope.spawn(|| read_all(stdout));
        let stderr = scope.spawn(|| read_all(stderr));
        let status = wait(&mut child, limit);
        let collect =
            |reader: thread::ScopedJoinHandle<'_, Vec<u8>>| reader.join().expect("a reader");
        let (stdout, stderr) = (collect(stdout), collect(stderr));
        status.map(|status| Outcome {
            ended: status.into(),
            stdout,
            stderr,
        })
    })
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before an error tells more than the error.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}

/// The child's status; None, and it is dead with all it started, if it took longer than `limit`.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let pid = Pid::from_child(child);
    let handle = pidfd_open(pid, PidfdFlags::empty()).expect("a handle of a child");
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("the status of a child") {
            return Some(status);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = child.wait();
            return None;
        }
        let timeout = Timespec::try_from(left).expect("a limit of minutes");
        let _ = poll(
            &mut [PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN)],
            Some(&timeout),
        );
    }
}
