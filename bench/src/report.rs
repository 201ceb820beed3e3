//! The table and the JSON file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::BenchError;
use crate::host::Host;
use crate::measure::{Bar, Figure, Summary};
use crate::scenarios::Outcome;

/// Everything that a run of the benchmarks found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub host: Host,
    /// What came of each scenario, by name.
    pub scenarios: Vec<(&'static str, Outcome)>,
}

impl Report {
    /// Is every bar met that was judged?
    pub fn is_met(&self) -> bool {
        self.figures().all(|(_, figure)| figure.met != Some(false))
    }

    fn figures(&self) -> impl Iterator<Item = (&'static str, &Figure)> {
        self.scenarios.iter().flat_map(|(name, outcome)| {
            let figures = match outcome {
                Outcome::Measured(figures) => figures.as_slice(),
                Outcome::Skipped(_) => &[],
            };
            figures.iter().map(|figure| (*name, figure))
        })
    }

    /// The table, in Markdown: a row for each figure, medians with p10 and p90 behind them.
    pub fn table(&self) -> String {
        let mut table = String::from(
            "| scenario | figure | agentrt | peer | ratio | bar | |\n|---|---|---|---|---|---|---|\n",
        );
        for (name, figure) in self.figures() {
            let peer = match (figure.peer, figure.peer_name) {
                (Some(peer), Some(name)) => format!("{name}: {}", quantiles(peer, figure.unit)),
                _ => String::new(),
            };
            let ratio = figure
                .ratio
                .map_or(String::new(), |ratio| quantiles(ratio, "×"));
            let bar = match figure.bar {
                Some(Bar::Ratio(most)) => format!("≤ {most}×"),
                Some(Bar::Value(most)) => format!("≤ {most} {}", figure.unit).trim_end().to_owned(),
                None => String::new(),
            };
            let verdict = match figure.met {
                Some(true) => "met",
                Some(false) => "NOT met",
                None => "",
            };
            let subject = quantiles(figure.subject, figure.unit);
            let _ = writeln!(
                table,
                "| {name} | {} | {subject} | {peer} | {ratio} | {bar} | {verdict} |",
                figure.name
            );
        }
        for (name, outcome) in &self.scenarios {
            if let Outcome::Skipped(what) = outcome {
                let _ = writeln!(table, "| {name} | skipped: {what} | | | | | |");
            }
        }
        table
    }

    /// Writes the report as JSON into `directory`, which is made if need be; returns the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, directory: &Path) -> Result<PathBuf, BenchError> {
        let path = directory.join(format!("{}.json", self.host.time));
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from);
        fs::create_dir_all(directory)
            .and(text)
            .and_then(|text| fs::write(&path, text + "\n"))
            .map_err(|error| BenchError::Write {
                path: path.clone(),
                error,
            })?;
        Ok(path)
    }
}

fn quantiles(summary: Summary, unit: &str) -> String {
    let Summary {
        samples,
        p10,
        median,
        p90,
    } = summary;
    let median = format!("{} {unit}", digits(median));
    match samples {
        1 => median.trim_end().to_owned(),
        _ => format!("{} ({}–{})", median.trim_end(), digits(p10), digits(p90)),
    }
}

/// Three or more significant digits, as many as there are before the point.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests;
