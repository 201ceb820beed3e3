//! Examines the host: can agentrt run here, and what costs it speed, memory or safety?
//!
//! [`examine`] makes a [`Report`] of [`Check`]s. Every check that is not fine carries the remedy that a reader
//! can carry out as it stands. Nothing here changes the host.

use std::fmt;
use std::path::Path;

use serde::Serialize;

mod cpu;
mod kernel;
mod kvm;
mod memory;

#[cfg(test)]
mod tests;

/// What was found out about the host.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The worst status of all checks.
    pub status: Status,
    /// The checks, in the order in which their problems are best solved.
    pub checks: Vec<Check>,
}

/// One property of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A stable name, e.g. `kvm.device`.
    pub name: &'static str,
    /// How it stands.
    pub status: Status,
    /// What the host has.
    pub found: String,
    /// What to do about it; never missing where the status is not [`Status::Ok`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How a check stands, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// agentrt runs, at a price in speed, capacity or safety.
    Warn,
    /// agentrt cannot run.
    Fail,
}

/// Examines the machine this process runs on.
///
/// Opens `/dev/kvm` and creates a virtual machine that it drops at once; otherwise only reads.
pub fn examine() -> Report {
    let root = Path::new("/");
    let mut checks = vec![kernel::version(), kernel::openat2(), kernel::io_uring(root)];
    checks.extend(kvm::checks(root));
    checks.extend(memory::checks(root));
    checks.extend(cpu::checks(root));
    checks.push(kernel::cgroup(root));
    Report::new(checks)
}

impl Report {
    fn new(checks: Vec<Check>) -> Self {
        let status = checks.iter().map(|check| check.status).max();
        Report {
            status: status.unwrap_or(Status::Ok),
            checks,
        }
    }

    /// How many checks have this status.
    pub fn count(&self, status: Status) -> usize {
        let same = self.checks.iter().filter(|check| check.status == status);
        same.count()
    }
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Check {
            name,
            status: Status::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn warn(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check {
            name,
            status: Status::Warn,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check {
            status: Status::Fail,
            ..Check::warn(name, found, remedy)
        }
    }
}

impl fmt::Display for Report {
    /// One line a check, its remedy indented below it, and a line with the counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|check| check.name.len()).max();
        let width = width.unwrap_or(0);
        for check in &self.checks {
            writeln!(
                f,
                "{:4}  {:width$}  {}",
                check.status, check.name, check.found
            )?;
            if let Some(remedy) = &check.remedy {
                writeln!(f, "      {:width$}  remedy: {remedy}", "")?;
            }
        }
        writeln!(
            f,
            "{} ok, {} to improve, {} in the way",
            self.count(Status::Ok),
            self.count(Status::Warn),
            self.count(Status::Fail)
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        })
    }
}

/// The content of a small text file of /proc or /sys without its line end; none if it cannot be read.
fn read(root: &Path, path: &str) -> Option<String> {
    let content = std::fs::read_to_string(root.join(path)).ok()?;
    Some(content.trim_end().to_owned())
}

/// An error with the chain of its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
