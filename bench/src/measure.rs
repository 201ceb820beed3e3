//! Samples taken in turns, their quantiles and ratios.

use serde::Serialize;

use crate::BenchError;

/// Quantiles of samples. No distribution is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of samples.
    pub samples: usize,
    /// A tenth of the samples is not above it.
    pub p10: f64,
    /// Half of the samples is not above it.
    pub median: f64,
    /// Nine tenths of the samples are not above it.
    pub p90: f64,
}

impl Summary {
    /// The quantiles of `samples`, by linear interpolation between neighbours; all NaN of none.
    pub fn of(samples: &[f64]) -> Summary {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quantile| quantile_of(&sorted, quantile);
        Summary {
            samples: sorted.len(),
            p10: at(0.1),
            median: at(0.5),
            p90: at(0.9),
        }
    }
}

fn quantile_of(sorted: &[f64], quantile: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = quantile * last as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

/// Samples of a subject and of its peer, taken in turns.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// What is measured.
    pub subject: Vec<f64>,
    /// What it is compared with.
    pub peer: Vec<f64>,
}

impl Pairs {
    /// Takes `count` samples of each, in turns, so that whatever else the machine does falls on
    /// both. One more of each goes ahead and is not counted: it fills caches.
    ///
    /// # Errors
    /// The first error of either.
    pub fn take(
        count: usize,
        mut subject: impl FnMut() -> Result<f64, BenchError>,
        mut peer: impl FnMut() -> Result<f64, BenchError>,
    ) -> Result<Pairs, BenchError> {
        subject()?;
        peer()?;
        let mut pairs = Pairs::default();
        for _ in 0..count {
            pairs.subject.push(subject()?);
            pairs.peer.push(peer()?);
        }
        Ok(pairs)
    }

    /// The ratio of subject to peer, of each pair by itself: what disturbs both cancels out.
    pub fn ratio(&self) -> Summary {
        let ratios: Vec<f64> = self
            .subject
            .iter()
            .zip(&self.peer)
            .map(|(subject, peer)| subject / peer)
            .collect();
        Summary::of(&ratios)
    }
}

/// What a figure may come to at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// The median ratio to the peer.
    Ratio(f64),
    /// The median itself, in the figure's unit.
    Value(f64),
}

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// agentrt's.
    pub subject: Summary,
    /// The peer's name.
    pub peer_name: Option<&'static str>,
    /// The peer's.
    pub peer: Option<Summary>,
    /// Subject to peer, pair by pair.
    pub ratio: Option<Summary>,
    /// What it has to meet.
    pub bar: Option<Bar>,
    /// Whether it does, if there is a bar.
    pub met: Option<bool>,
}

impl Figure {
    /// A figure with a peer.
    pub fn compared(
        name: &'static str,
        unit: &'static str,
        peer_name: &'static str,
        pairs: &Pairs,
        bar: Option<Bar>,
    ) -> Figure {
        let (subject, ratio) = (Summary::of(&pairs.subject), pairs.ratio());
        Figure {
            name,
            unit,
            subject,
            peer_name: Some(peer_name),
            peer: Some(Summary::of(&pairs.peer)),
            ratio: Some(ratio),
            bar,
            met: bar.map(|bar| meets(bar, subject, Some(ratio))),
        }
    }

    /// A figure by itself.
    pub fn alone(name: &'static str, unit: &'static str, samples: &[f64], bar: Bar) -> Figure {
        let subject = Summary::of(samples);
        Figure {
            name,
            unit,
            subject,
            peer_name: None,
            peer: None,
            ratio: None,
            bar: Some(bar),
            met: Some(meets(bar, subject, None)),
        }
    }
}

/// A NaN meets nothing.
fn meets(bar: Bar, subject: Summary, ratio: Option<Summary>) -> bool {
    match bar {
        Bar::Ratio(most) => ratio.is_some_and(|ratio| ratio.median <= most),
        Bar::Value(most) => subject.median <= most,
    }
}

#[cfg(test)]
mod tests;
