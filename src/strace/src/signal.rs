//! Signal numbers and signal sets, x86-64 numbering (signal(7)).

use crate::printer::Printer;

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The kernel's first real-time signal; glibc keeps it and the next for itself.
const FIRST_REAL_TIME: u64 = 32;
const LAST: u64 = 64;

/// From this many members on, a set prints as what it leaves out.
const INVERT_FROM: u32 = 64 * 2 / 3;

/// The name without `SIG`, or None for a number that is no signal.
fn short_name(signal: u64) -> Option<String> {
    match signal {
        FIRST_REAL_TIME => Some("RTMIN".to_owned()),
        signal if (FIRST_REAL_TIME..=LAST).contains(&signal) => {
            Some(format!("RT_{}", signal - FIRST_REAL_TIME))
        }
        _ => {
            let index = usize::try_from(signal.checked_sub(1)?).ok()?;
            NAMES.get(index).map(|&name| name.to_owned())
        }
    }
}

/// `SIGTERM`, or the number.
pub(crate) fn signal(printer: &mut Printer, value: u64) {
    let number = value & 0xffff_ffff;
    match short_name(number) {
        Some(name) => printer.put(format_args!("SIG{name}")),
        None => printer.put(number as u32 as i32),
    }
}

/// `[INT TERM]`, `[]`, `~[KILL STOP]`.
pub(crate) fn set(printer: &mut Printer, bits: u64) {
    let inverted = bits.count_ones() >= INVERT_FROM;
    let shown = if inverted { !bits } else { bits };
    let names: Vec<String> = (1..=LAST)
        .filter(|signal| shown >> (signal - 1) & 1 == 1)
        .filter_map(short_name)
        .collect();
    printer.put(format_args!(
        "{}[{}]",
        if inverted { "~" } else { "" },
        names.join(" ")
    ));
}
