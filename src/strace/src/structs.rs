//! The structures behind pointers, x86-64 layout.

use crate::printer::Printer;

mod file;
mod list;
mod process;
mod socket;
mod terminal;
mod time;
mod wait;

pub(crate) use file::{
    BINARY_TIMES, FILE_LOCK, FILE_STATUS, FILE_STATUS_EXTENDED, FILE_SYSTEM_STATUS, OPEN_HOW,
    device, directory_entries, mode,
};
pub(crate) use list::{descriptors, processors, strings, vectors};
pub(crate) use process::{
    ALTERNATE_STACK, ARGUMENTS_OF_CLONE, CAPABILITIES, CAPABILITY_HEADER, RESOURCE_LIMIT,
    SIGNAL_ACTION, SIGNAL_INFORMATION, SIGNAL_SET, SIGNAL_SET_AND_SIZE, SYSTEM_INFORMATION,
    SYSTEM_NAME, TIMER_EVENT, USAGE, WAIT_STATUS,
};
pub(crate) use socket::{
    ERROR, LINGER, MESSAGE, MESSAGE_COUNTED, MESSAGE_COUNTED_READ, MESSAGE_READ, address,
};
pub(crate) use terminal::{TERMINAL, WINDOW};
pub(crate) use time::{
    CLOCK_TICKS, INTERVAL, INTERVAL_SECONDS, SECONDS, SET_TIME, SET_TIMEVAL, TIMESPEC, TIMEVAL,
    moment,
};
pub(crate) use wait::{EPOLL_EVENT, POLL, returned_poll};

/// A structure: its size in bytes, and how it prints.
pub(crate) struct Layout {
    /// In bytes, at most 4,096.
    pub(crate) size: usize,
    /// Prints the bytes.
    pub(crate) print: fn(&mut Printer, &Record),
}

/// The bytes of a structure. Reading past the end gives 0.
pub(crate) struct Record<'a>(pub(crate) &'a [u8]);

impl Record<'_> {
    fn field<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0
            .get(offset..)
            .and_then(|bytes| bytes.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }

    pub(crate) fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.field(offset))
    }

    pub(crate) fn i32(&self, offset: usize) -> i32 {
        i32::from_le_bytes(self.field(offset))
    }

    pub(crate) fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.field(offset))
    }

    pub(crate) fn i64(&self, offset: usize) -> i64 {
        i64::from_le_bytes(self.field(offset))
    }

    pub(crate) fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.field(offset))
    }

    /// `length` bytes from `offset`, or as many as there are.
    pub(crate) fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        let rest = self.0.get(offset..).unwrap_or_default();
        rest.get(..length).unwrap_or(rest)
    }
}

/// `[1]`: a number the kernel reads or writes through a pointer.
pub(crate) const INT: &Layout = &Layout {
    size: 4,
    print: |printer, record| printer.put(format_args!("[{}]", record.i32(0))),
};

/// `[1]`, unsigned.
pub(crate) const UNSIGNED: &Layout = &Layout {
    size: 4,
    print: |printer, record| printer.put(format_args!("[{}]", record.u32(0))),
};

/// `[1]`, 64 bits.
pub(crate) const LONG: &Layout = &Layout {
    size: 8,
    print: |printer, record| printer.put(format_args!("[{}]", record.i64(0))),
};

/// `[0x1f]`, 64 bits.
pub(crate) const ADDRESS: &Layout = &Layout {
    size: 8,
    print: |printer, record| printer.put(format_args!("[{:#x}]", record.u64(0))),
};

/// One element of an array of numbers.
pub(crate) const ELEMENT: &Layout = &Layout {
    size: 4,
    print: |printer, record| printer.put(record.u32(0)),
};

/// `[3, 4]`: two file descriptors.
pub(crate) const PAIR: &Layout = &Layout {
    size: 8,
    print: |printer, record| printer.put(format_args!("[{}, {}]", record.i32(0), record.i32(4))),
};
