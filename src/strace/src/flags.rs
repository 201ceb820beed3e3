//! Named values: sets of flags and lists of choices. The values are those of the kernel's headers, taken from libc
//! where it has them; the order is the one strace prints in.

use crate::printer::Printer;

pub(crate) mod device;
pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod socket;
pub(crate) mod wait;

type Names = &'static [(u64, &'static str)];

/// A word of bits that have names.
pub(crate) struct Flags {
    /// Parts of the word that each hold one of a list of values, and print first: the mask, and the values.
    pub(crate) fields: &'static [(u64, Names)],
    /// The bits; entries of several bits come before their parts.
    pub(crate) bits: Names,
    /// What is noted beside a number of which no bit has a name.
    pub(crate) unknown: &'static str,
}

/// A word that holds one of a list of values.
pub(crate) struct Choice {
    /// The values.
    pub(crate) names: Names,
    /// What is noted beside a number that is not in the list.
    pub(crate) unknown: &'static str,
}

impl Flags {
    /// The names of `value` joined by `|`; leftover bits in hexadecimal.
    pub(crate) fn print(&self, printer: &mut Printer, value: u64) {
        let mut left = value;
        let mut parts: Vec<&str> = Vec::new();
        for (mask, names) in self.fields {
            if let Some(name) = find(names, value & mask) {
                parts.push(name);
                left &= !mask;
            }
        }
        for &(bits, name) in self.bits {
            if bits != 0 && left & bits == bits {
                parts.push(name);
                left &= !bits;
            }
        }
        match (parts.is_empty(), left) {
            (true, 0) => printer.put("0"),
            (true, left) => printer.put(format_args!("{left:#x} /* {} */", self.unknown)),
            (false, 0) => printer.put(parts.join("|")),
            (false, left) => printer.put(format_args!("{}|{left:#x}", parts.join("|"))),
        }
    }
}

impl Choice {
    /// The name of `value`, or the number and a remark.
    pub(crate) fn print(&self, printer: &mut Printer, value: u64) {
        match self.name(value) {
            Some(name) => printer.put(name),
            None => printer.put(format_args!("{value:#x} /* {} */", self.unknown)),
        }
    }

    /// The name of `value`, if it is in the list.
    pub(crate) fn name(&self, value: u64) -> Option<&'static str> {
        find(self.names, value)
    }
}

fn find(names: Names, value: u64) -> Option<&'static str> {
    names
        .iter()
        .find(|(known, _)| *known == value)
        .map(|&(_, name)| name)
}

/// A list of named values: `NAME` alone is libc's, `NAME = value` is given.
macro_rules! names {
    (@value $name:ident) => { libc::$name as u32 as u64 };
    (@value $name:ident $value:expr) => { $value };
    ($($name:ident $(= $value:expr)?),* $(,)?) => {
        &[$(($crate::flags::names!(@value $name $($value)?), stringify!($name))),*]
    };
}

/// A constant set of flags: `flags!(NAME: "O_???", fields, [bits])`.
macro_rules! flags {
    ($constant:ident: $unknown:literal, $([$mask:expr => $($field:tt)*],)* $({$($bits:tt)*})?) => {
        pub(crate) const $constant: &$crate::flags::Flags = &$crate::flags::Flags {
            fields: &[$(($mask, $crate::flags::names!($($field)*))),*],
            bits: $crate::flags::names!($($($bits)*)?),
            unknown: $unknown,
        };
    };
}

/// A constant list of choices: `choice!(NAME: "SEEK_???", {values})`.
macro_rules! choice {
    ($constant:ident: $unknown:literal, {$($names:tt)*}) => {
        pub(crate) const $constant: &$crate::flags::Choice = &$crate::flags::Choice {
            names: $crate::flags::names!($($names)*),
            unknown: $unknown,
        };
    };
}

pub(crate) use {choice, flags, names};
