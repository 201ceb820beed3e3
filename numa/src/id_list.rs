//! Sets of CPU or node numbers, as sysfs writes them: `0-3,8,10-11`.

use std::collections::BTreeSet;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// The highest CPU or node number that is accepted. x86 kernels are built for 8,192 CPUs (NR_CPUS of MAXSMP)
/// and 1,024 nodes at most; the bound keeps a damaged file from naming billions.
pub const MAX_ID: u32 = 65_535;

/// A set of CPU or node numbers in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdList(BTreeSet<u32>);

/// Why a text is not a list of CPUs or nodes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseIdListError {
    /// An element is neither a number nor a range of numbers.
    #[error("{element:?} is not a number")]
    NotANumber {
        /// The text between two commas.
        element: String,
        /// What is wrong with it.
        source: ParseIntError,
    },
    /// A range ends before it starts.
    #[error("the range {first}-{last} is backwards")]
    Backwards {
        /// The number before the dash.
        first: u32,
        /// The number behind the dash.
        last: u32,
    },
    /// A number is above [`MAX_ID`].
    #[error("{0} is above {MAX_ID}, the highest number a machine can have")]
    TooHigh(u32),
}

impl IdList {
    /// Whether `id` is in the set.
    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    /// How many numbers the set has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The lowest number.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The numbers of this set that `other` lacks.
    pub fn without(&self, other: &IdList) -> IdList {
        IdList(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for IdList {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        IdList(ids.into_iter().collect())
    }
}

impl FromStr for IdList {
    type Err = ParseIdListError;

    /// Reads the `%*pbl` form of the kernel's printf: ranges between commas, a line end allowed; nothing at
    /// all is the empty set.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim_end();
        let mut ids = BTreeSet::new();
        if text.is_empty() {
            return Ok(IdList(ids));
        }
        for element in text.split(',') {
            let (first, last) = element.split_once('-').unwrap_or((element, element));
            let number = |text: &str| {
                text.parse::<u32>()
                    .map_err(|source| ParseIdListError::NotANumber {
                        element: element.to_owned(),
                        source,
                    })
            };
            let (first, last) = (number(first)?, number(last)?);
            if last > MAX_ID {
                return Err(ParseIdListError::TooHigh(last));
            }
            if first > last {
                return Err(ParseIdListError::Backwards { first, last });
            }
            ids.extend(first..=last);
        }
        Ok(IdList(ids))
    }
}

impl fmt::Display for IdList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u32> = self.iter().collect();
        for (index, run) in ids.chunk_by(|a, b| a.abs_diff(*b) == 1).enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match run {
                [first, .., last] => write!(f, "{first}-{last}")?,
                only => only.iter().try_for_each(|id| write!(f, "{id}"))?,
            }
        }
        Ok(())
    }
}
