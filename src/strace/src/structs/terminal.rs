//! Structures of terminal calls.

use super::{Layout, Record};
use crate::flags::device;
use crate::printer::Printer;

/// The kernel's `struct termios`.
pub(crate) const TERMINAL: &Layout = &Layout {
    size: 36,
    print: terminal,
};

/// `struct winsize`.
pub(crate) const WINDOW: &Layout = &Layout {
    size: 8,
    print: window,
};

fn terminal(printer: &mut Printer, record: &Record) {
    let words = [
        ("{c_iflag=", device::INPUT),
        (", c_oflag=", device::OUTPUT),
        (", c_cflag=", device::CONTROL),
        (", c_lflag=", device::LOCAL),
    ];
    for (index, (name, flags)) in words.into_iter().enumerate() {
        printer.put(name);
        flags.print(printer, u64::from(record.u32(index * 4)));
    }
    printer.put(", ...}");
}

fn window(printer: &mut Printer, record: &Record) {
    printer.put(format_args!(
        "{{ws_row={}, ws_col={}, ws_xpixel={}, ws_ypixel={}}}",
        record.u16(0),
        record.u16(2),
        record.u16(4),
        record.u16(6)
    ));
}
