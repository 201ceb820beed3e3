//! Lists that are no plain arrays of structures: strings, iovecs, and sets of bits.

use super::Record;
use crate::printer::{Printer, SHOWN};

/// The most bytes of a set of bits that are read: 8,192 processors or descriptors.
const SET: u64 = 1024;

/// `["ls", "-l"]`: a NULL-terminated array of strings.
pub(crate) fn strings(printer: &mut Printer, address: u64) {
    if address == 0 || printer.record(address, 8).is_none() {
        return printer.pointer(address);
    }
    printer.put("[");
    for index in 0..=SHOWN {
        let element = address.wrapping_add(index as u64 * 8);
        let string = printer
            .record(element, 8)
            .map(|bytes| Record(&bytes).u64(0));
        if string == Some(0) {
            break;
        }
        printer.separate(index);
        match string {
            None => {
                printer.put(format_args!("... /* {element:#x} */"));
                break;
            }
            Some(_) if index == SHOWN => printer.put("..."),
            Some(string) => printer.text(string, SHOWN),
        }
    }
    printer.put("]");
}

/// `[{iov_base="…", iov_len=5}]`: `count` iovecs that hold `filled` bytes in all.
pub(crate) fn vectors(printer: &mut Printer, address: u64, count: u64, filled: u64) {
    let mut left = filled;
    // Buffers that the kernel should have filled hold nothing yet if the call failed.
    let readable = filled == u64::MAX || printer.succeeded();
    printer.list(address, 16, count, |printer, record| {
        let (base, length) = (record.u64(0), record.u64(8));
        let held = length.min(left);
        left -= held;
        printer.put("{iov_base=");
        if readable {
            printer.bytes(base, held)
        } else {
            printer.pointer(base)
        }
        printer.put(format_args!(", iov_len={length}}}"));
    });
}

/// `[3 5]`: the descriptors below `count` in an fd_set.
pub(crate) fn descriptors(printer: &mut Printer, address: u64, count: u64) {
    let count = u64::try_from(count as i32).unwrap_or(0);
    members(printer, address, count.div_ceil(64) * 8, count);
}

/// `[0 1]`: the processors in a set of `size` bytes.
pub(crate) fn processors(printer: &mut Printer, address: u64, size: u64) {
    members(printer, address, size, u64::MAX);
}

fn members(printer: &mut Printer, address: u64, size: u64, end: u64) {
    let size = usize::try_from(size.min(SET)).unwrap_or(0);
    let Some(bytes) = printer.record(address, size).filter(|_| address != 0) else {
        return printer.pointer(address);
    };
    let bits = (0..end.min(size as u64 * 8)).filter(|bit| {
        let byte = usize::try_from(bit / 8)
            .ok()
            .and_then(|index| bytes.get(index));
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    });
    let mut shown: Vec<String> = bits.take(SHOWN + 1).map(|bit| bit.to_string()).collect();
    if shown.len() > SHOWN {
        shown.truncate(SHOWN);
        shown.push("...".to_owned());
    }
    printer.put(format_args!("[{}]", shown.join(" ")));
}
