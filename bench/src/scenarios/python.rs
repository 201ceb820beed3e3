//! A Python program's start, and its speed.

use std::path::Path;

use super::{Outcome, Setting, without_kvm};
use crate::BenchError;
use crate::measure::{Bar, Figure, Pairs};
use crate::process::{native, time};

const PYTHON: &str = "/usr/bin/python3";
/// Arithmetic on small integers, some two seconds of it; `{}` is the number of rounds.
const COMPUTATION: &str = "a, b = 0, 1\n\
                           for _ in range({}): a, b = b, (a + b) % 1000003\n\
                           print(a)";
const ROUNDS: u32 = 20_000_000;

/// Wall time of `python3 -c pass`.
pub fn pass(setting: &Setting) -> Result<Outcome, BenchError> {
    let program = [PYTHON, "-c", "pass"];
    let [wall, processor] = match compare(setting, &program, setting.scale.pick(40, 1))? {
        Compared::Pairs(pairs) => pairs,
        Compared::Skipped(outcome) => return Ok(outcome),
    };
    Ok(Outcome::Measured(vec![
        Figure::compared("wall time", "ms", "native", &wall, Some(Bar::Ratio(3.0))),
        Figure::compared("processor time", "ms", "native", &processor, None),
    ]))
}

/// Wall time of a computation in Python.
pub fn compute(setting: &Setting) -> Result<Outcome, BenchError> {
    let rounds = setting.scale.pick(ROUNDS, 1000);
    let script = COMPUTATION.replace("{}", &rounds.to_string());
    let program = [PYTHON, "-c", &script];
    let [wall, processor] = match compare(setting, &program, setting.scale.pick(7, 1))? {
        Compared::Pairs(pairs) => pairs,
        Compared::Skipped(outcome) => return Ok(outcome),
    };
    Ok(Outcome::Measured(vec![
        Figure::compared("wall time", "ms", "native", &wall, Some(Bar::Ratio(1.05))),
        Figure::compared("processor time", "ms", "native", &processor, None),
    ]))
}

enum Compared {
    /// Wall time and processor time in milliseconds.
    Pairs([Pairs; 2]),
    Skipped(Outcome),
}

/// Runs `program` in agentrt and natively in turns.
fn compare(setting: &Setting, program: &[&str], count: usize) -> Result<Compared, BenchError> {
    if let Some(skipped) = without_kvm() {
        return Ok(Compared::Skipped(skipped));
    }
    if !Path::new(PYTHON).exists() {
        return Ok(Compared::Skipped(Outcome::Skipped("no /usr/bin/python3")));
    }
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    let wall = Pairs::take(
        count,
        || {
            let cost = time(setting.agentrt.run(&[], program))?;
            inside.push(cost.processor.as_secs_f64() * 1e3);
            Ok(cost.wall.as_secs_f64() * 1e3)
        },
        || {
            let cost = time(native(program))?;
            outside.push(cost.processor.as_secs_f64() * 1e3);
            Ok(cost.wall.as_secs_f64() * 1e3)
        },
    )?;
    // The first of each is not counted.
    let processor = Pairs {
        subject: inside.split_off(1),
        peer: outside.split_off(1),
    };
    Ok(Compared::Pairs([wall, processor]))
}
