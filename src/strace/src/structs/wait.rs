//! Structures of poll and epoll.

use super::{Layout, Record};
use crate::flags::wait;
use crate::printer::{Printer, SHOWN};

/// `struct pollfd`, as asked.
pub(crate) const POLL: &Layout = &Layout {
    size: 8,
    print: poll,
};

/// `struct epoll_event`, packed.
pub(crate) const EPOLL_EVENT: &Layout = &Layout {
    size: 12,
    print: epoll_event,
};

fn poll(printer: &mut Printer, record: &Record) {
    printer.put(format_args!("{{fd={}", record.i32(0)));
    if record.i32(0) >= 0 {
        printer.put(", events=");
        wait::POLL.print(printer, u64::from(record.u16(4)));
    }
    printer.put("}");
}

fn epoll_event(printer: &mut Printer, record: &Record) {
    printer.put("{events=");
    wait::EPOLL.print(printer, u64::from(record.u32(0)));
    printer.put(format_args!(
        ", data={{u32={}, u64={}}}}}",
        record.u32(4),
        record.u64(4)
    ));
}

/// `[{fd=3, revents=POLLIN}]`: those of `count` entries that something happened to.
pub(crate) fn returned_poll(printer: &mut Printer, address: u64, count: u64) {
    /// The most entries that are searched.
    const SEARCHED: u64 = 1024;
    let mut shown = 0;
    printer.put("[");
    for index in 0..count.min(SEARCHED) {
        let Some(bytes) = printer.record(address.wrapping_add(index * 8), 8) else {
            break;
        };
        let record = Record(&bytes);
        if record.u16(6) == 0 || record.i32(0) < 0 {
            continue;
        }
        printer.separate(shown);
        if shown == SHOWN {
            printer.put("...");
            break;
        }
        printer.put(format_args!("{{fd={}, revents=", record.i32(0)));
        wait::POLL.print(printer, u64::from(record.u16(6)));
        printer.put("}");
        shown += 1;
    }
    printer.put("]");
}
