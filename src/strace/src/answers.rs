//! What the results are, where they are no plain numbers.

use syscalls::Sysno as S;

use crate::Call;
use crate::flags::{file, memory, process};
use crate::kind::Answer;
use crate::printer::Printer;
use crate::signal;
use crate::structs::{self, moment, returned_poll};

/// What the result of `call` is when it succeeds.
pub(crate) fn answer(number: S, call: &Call) -> Answer {
    let command = call.arguments[if number == S::fcntl { 1 } else { 0 }] as i32;
    match number {
        S::mmap | S::brk | S::mremap | S::shmat => Answer::Hex,
        S::umask => Answer::Mask,
        S::time => Answer::With(|printer, value| {
            printer.put(format_args!(" ({})", moment(value as i64, 0, 9)));
        }),
        S::fcntl => fcntl(command),
        S::prctl if command == libc::PR_GET_DUMPABLE => Answer::Choice(process::DUMPABLE),
        S::membarrier if command == 0 => Answer::Flags("", memory::BARRIERS),
        S::personality => Answer::Flags("", process::PERSONALITY),
        S::sched_getscheduler => Answer::Choice(process::SCHEDULER),
        S::rt_sigtimedwait => Answer::With(in_parentheses),
        S::poll | S::ppoll => Answer::With(polled),
        S::select | S::pselect6 => Answer::With(selected),
        _ => Answer::Number,
    }
}

/// The fcntl command that asks which signal announces readiness; libc has no name for it.
pub(crate) const F_GETSIG: i32 = 11;

fn fcntl(command: i32) -> Answer {
    match command {
        libc::F_GETFD => Answer::Flags("flags ", file::FD),
        libc::F_GETFL => Answer::Flags("flags ", file::OPEN),
        libc::F_GET_SEALS => Answer::Flags("seals ", file::SEALS),
        libc::F_GETLEASE => Answer::Flags("", file::LEASE),
        F_GETSIG => Answer::With(in_parentheses),
        _ => Answer::Number,
    }
}

/// ` (SIGIO)`, nothing for no signal.
fn in_parentheses(printer: &mut Printer, value: u64) {
    if value != 0 {
        printer.put(" (");
        signal::signal(printer, value);
        printer.put(")");
    }
}

/// ` ([{fd=3, revents=POLLIN}])` or ` (Timeout)`.
fn polled(printer: &mut Printer, ready: u64) {
    if ready == 0 {
        return printer.put(" (Timeout)");
    }
    printer.put(" (");
    returned_poll(
        printer,
        printer.argument(0),
        u64::from(printer.argument(1) as u32),
    );
    if printer.call.number == S::ppoll as u64 && printer.argument(2) != 0 {
        printer.put(", left ");
        printer.structure(structs::TIMESPEC, printer.argument(2));
    }
    printer.put(")");
}

/// ` (in [3], out [4], left {…})` or ` (Timeout)`.
fn selected(printer: &mut Printer, ready: u64) {
    if ready == 0 {
        return printer.put(" (Timeout)");
    }
    let mut separator = " (";
    for (index, name) in [(1, "in "), (2, "out "), (3, "except ")] {
        if printer.argument(index) != 0 {
            printer.put(format_args!("{separator}{name}"));
            structs::descriptors(printer, printer.argument(index), printer.argument(0));
            separator = ", ";
        }
    }
    if printer.argument(4) != 0 {
        let precise = printer.call.number == S::pselect6 as u64;
        printer.put(format_args!("{separator}left "));
        printer.structure(
            if precise {
                structs::TIMESPEC
            } else {
                structs::TIMEVAL
            },
            printer.argument(4),
        );
        separator = ", ";
    }
    if separator == ", " {
        printer.put(")");
    }
}
