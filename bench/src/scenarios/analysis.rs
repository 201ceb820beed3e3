//! The time that rewriting a large binary takes.

use std::time::Instant;

use agentrt_loader::rewriter::analyse;

use super::{Outcome, Setting};
use crate::BenchError;
use crate::measure::{Bar, Figure, Pairs};
use crate::process::{find, read};

/// Finding the syscall sites of `node`, some 100 MB, with nothing cached, beside reading the file.
pub fn analysis(setting: &Setting) -> Result<Outcome, BenchError> {
    // In a build without optimisation a large binary takes minutes.
    let name = setting.scale.pick("node", "true");
    let Some(path) = find(name) else {
        return Ok(Outcome::Skipped("no node on the PATH"));
    };
    let bytes = read(&path)?;
    let pairs = Pairs::take(
        setting.scale.pick(5, 1),
        || {
            let start = Instant::now();
            analyse(&bytes).map_err(|error| BenchError::Analysis {
                path: path.clone(),
                error,
            })?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        },
        || {
            let start = Instant::now();
            read(&path)?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        },
    )?;
    let bar = Some(Bar::Value(2000.0));
    Ok(Outcome::Measured(vec![Figure::compared(
        "analysis of node",
        "ms",
        "reading the file",
        &pairs,
        bar,
    )]))
}
