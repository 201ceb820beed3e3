//! Values of options.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use agentrt::Volume;

/// Why an option's value is no good.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a size.
    #[error("not a size: give a number of bytes, or one followed by K, M, G or T, such as 512M")]
    Size,
    /// Not a duration.
    #[error("not a duration: give a number followed by ms, s, m or h, such as 30s")]
    Duration,
    /// Not a variable.
    #[error("not a variable: give NAME=VALUE")]
    Variable,
    /// Not a volume.
    #[error("not a volume: give HOST:GUEST or HOST:GUEST:ro")]
    Volume,
    /// Not a descriptor.
    #[error("not a descriptor: give fd:N with N a number from 0 on")]
    Descriptor,
}

/// A size in bytes: `4096`, `64K`, `512M`, `2G`, `1T`; the units are powers of 1,024.
pub fn size(text: &str) -> Result<u64, ValueError> {
    let (number, shift) = match text.char_indices().next_back() {
        Some((end, 'K' | 'k')) => (&text[..end], 10),
        Some((end, 'M' | 'm')) => (&text[..end], 20),
        Some((end, 'G' | 'g')) => (&text[..end], 30),
        Some((end, 'T' | 't')) => (&text[..end], 40),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| ValueError::Size)?;
    number.checked_mul(1 << shift).ok_or(ValueError::Size)
}

/// A duration: `250ms`, `30s`, `1.5m`, `2h`, or seconds without a unit.
pub fn duration(text: &str) -> Result<Duration, ValueError> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| ValueError::Duration)?;
    let duration = Duration::try_from_secs_f64(number * unit).map_err(|_| ValueError::Duration)?;
    if duration.is_zero() {
        Err(ValueError::Duration)
    } else {
        Ok(duration)
    }
}

/// An environment variable: `NAME=VALUE`.
pub fn variable(text: &str) -> Result<String, ValueError> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err(ValueError::Variable),
    }
}

/// A volume: `HOST:GUEST` or `HOST:GUEST:ro`.
pub fn volume(text: &str) -> Result<Volume, ValueError> {
    let (text, read_only) = match text.strip_suffix(":ro") {
        Some(text) => (text, true),
        None => (text.strip_suffix(":rw").unwrap_or(text), false),
    };
    match text.rsplit_once(':') {
        Some((host, guest)) if !host.is_empty() && guest.starts_with('/') => Ok(Volume {
            host: host.into(),
            guest: guest.into(),
            read_only,
        }),
        _ => Err(ValueError::Volume),
    }
}

/// Where something is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file, made or truncated.
    File(PathBuf),
    /// An open descriptor.
    Descriptor(RawFd),
}

/// A destination: a path, or `fd:N`.
pub fn destination(text: &str) -> Result<Destination, ValueError> {
    match text.strip_prefix("fd:") {
        Some(number) => match number.parse() {
            Ok(number) if number >= 0 => Ok(Destination::Descriptor(number)),
            _ => Err(ValueError::Descriptor),
        },
        None => Ok(Destination::File(text.into())),
    }
}

#[cfg(test)]
mod tests;
