//! Benchmarks of agentrt, each against a peer that is measured in the same run.
//!
//! - [`scenarios`]: what is measured, and the bar that each has to meet
//! - [`measure`]: samples taken in turns, their quantiles and ratios
//! - [`process`]: runs programs in agentrt and natively
//! - [`programs`]: guest programs made byte by byte
//! - [`host`]: the machine that the numbers are from
//! - [`report`]: the table and the JSON file
//!
//! What is measured is reached through the public interfaces only: the command line, and the
//! crates' own.

pub mod error;
pub mod host;
pub mod measure;
pub mod process;
pub mod programs;
pub mod report;
pub mod scenarios;

pub use error::BenchError;
