//! What is measured.
//!
//! - [`python`]: a Python program's start, and its speed
//! - [`start`]: a virtual machine's way to its first instruction
//! - [`syscall`]: the price of a forwarded syscall
//! - [`leaks`]: what many runs leave behind
//! - [`analysis`]: the time that rewriting a large binary takes

use std::path::Path;

use serde::Serialize;

use crate::BenchError;
use crate::measure::Figure;
use crate::process::Agentrt;

mod analysis;
mod leaks;
mod python;
mod start;
mod syscall;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Enough to judge.
    Full,
    /// Just enough to see that the scenario works; its numbers mean nothing.
    Smoke,
}

impl Scale {
    /// `full` or `smoke`, by the scale.
    pub fn pick<T>(self, full: T, smoke: T) -> T {
        match self {
            Scale::Full => full,
            Scale::Smoke => smoke,
        }
    }
}

/// What scenarios are run with.
pub struct Setting {
    /// The agentrt that is measured.
    pub agentrt: Agentrt,
    /// How much is measured.
    pub scale: Scale,
}

/// What came of a scenario.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The numbers.
    Measured(Vec<Figure>),
    /// What the machine lacks.
    Skipped(&'static str),
}

/// Something that is measured.
pub struct Scenario {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// Measures it.
    pub run: fn(&Setting) -> Result<Outcome, BenchError>,
}

/// All scenarios.
pub const ALL: [Scenario; 6] = [
    Scenario {
        name: "python_pass",
        run: python::pass,
    },
    Scenario {
        name: "first_instruction",
        run: start::first_instruction,
    },
    Scenario {
        name: "python_compute",
        run: python::compute,
    },
    Scenario {
        name: "forwarded_syscall",
        run: syscall::forwarded,
    },
    Scenario {
        name: "thousand_runs",
        run: leaks::thousand_runs,
    },
    Scenario {
        name: "analysis",
        run: analysis::analysis,
    },
];

/// What a scenario comes to on a machine without KVM.
fn without_kvm() -> Option<Outcome> {
    (!Path::new("/dev/kvm").exists()).then_some(Outcome::Skipped("no /dev/kvm"))
}

#[cfg(test)]
mod tests;
