//! Times, and the way strace shows moments of the calendar beside them (in UTC here).

use super::{Layout, Record};
use crate::printer::Printer;

/// `struct timespec`.
pub(crate) const TIMESPEC: &Layout = &Layout {
    size: 16,
    print: |printer, record| pair(printer, record, 0, "nsec"),
};

/// `struct timeval`.
pub(crate) const TIMEVAL: &Layout = &Layout {
    size: 16,
    print: |printer, record| pair(printer, record, 0, "usec"),
};

/// `struct itimerspec`.
pub(crate) const INTERVAL: &Layout = &Layout {
    size: 32,
    print: |printer, record| interval(printer, record, "nsec"),
};

/// `struct itimerval`.
pub(crate) const INTERVAL_SECONDS: &Layout = &Layout {
    size: 32,
    print: |printer, record| interval(printer, record, "usec"),
};

/// `time_t` behind a pointer.
pub(crate) const SECONDS: &Layout = &Layout {
    size: 8,
    print: seconds,
};

/// `struct timespec[2]` of utimensat.
pub(crate) const SET_TIME: &Layout = &Layout {
    size: 32,
    print: set_time,
};

/// `struct timeval[2]` of utimes.
pub(crate) const SET_TIMEVAL: &Layout = &Layout {
    size: 32,
    print: set_timeval,
};

/// `struct tms`.
pub(crate) const CLOCK_TICKS: &Layout = &Layout {
    size: 32,
    print: ticks,
};

/// USER_HZ of x86-64 Linux.
const TICKS_PER_SECOND: i64 = 100;

const SECONDS_OF_A_DAY: i64 = 86_400;

/// From this moment on (the year 10000) a time is shown without its calendar.
const CALENDAR_END: i64 = 253_402_300_800;

/// Prints two consecutive words as `{tv_sec=…, tv_nsec=…}`.
pub(crate) fn pair(printer: &mut Printer, record: &Record, offset: usize, unit: &str) {
    printer.put(format_args!(
        "{{tv_sec={}, tv_{unit}={}}}",
        record.i64(offset),
        record.i64(offset + 8)
    ));
}

fn interval(printer: &mut Printer, record: &Record, unit: &str) {
    printer.put("{it_interval=");
    pair(printer, record, 0, unit);
    printer.put(", it_value=");
    pair(printer, record, 16, unit);
    printer.put("}");
}

fn seconds(printer: &mut Printer, record: &Record) {
    printer.put(format_args!(
        "[{} /* {} */]",
        record.i64(0),
        moment(record.i64(0), 0, 9)
    ));
}

fn set_time(printer: &mut Printer, record: &Record) {
    for (offset, start) in [(0, "["), (16, ", ")] {
        printer.put(start);
        match record.i64(offset + 8) {
            libc::UTIME_NOW => printer.put("UTIME_NOW"),
            libc::UTIME_OMIT => printer.put("UTIME_OMIT"),
            nanoseconds => {
                pair(printer, record, offset, "nsec");
                printer.put(format_args!(
                    " /* {} */",
                    moment(record.i64(offset), nanoseconds, 9)
                ));
            }
        }
    }
    printer.put("]");
}

fn set_timeval(printer: &mut Printer, record: &Record) {
    for (offset, start) in [(0, "["), (16, ", ")] {
        printer.put(start);
        pair(printer, record, offset, "usec");
        printer.put(format_args!(
            " /* {} */",
            moment(record.i64(offset), record.i64(offset + 8), 6)
        ));
    }
    printer.put("]");
}

fn ticks(printer: &mut Printer, record: &Record) {
    for (index, name) in [
        "{tms_utime=",
        ", tms_stime=",
        ", tms_cutime=",
        ", tms_cstime=",
    ]
    .iter()
    .enumerate()
    {
        let ticks = record.i64(index * 8);
        printer.put(format_args!("{name}{ticks}"));
        if ticks != 0 {
            printer.put(format_args!(
                " /* {}.{:02} s */",
                ticks / TICKS_PER_SECOND,
                (ticks % TICKS_PER_SECOND).abs()
            ));
        }
    }
    printer.put("}");
}

/// `2023-11-14T22:13:20.000000005+0000`, the fraction only if it is not zero; `?` outside the years 0 to 9999.
pub(crate) fn moment(seconds: i64, fraction: i64, digits: usize) -> String {
    if !(-62_167_219_200..CALENDAR_END).contains(&seconds) {
        return "?".to_owned();
    }
    let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_A_DAY));
    let second = seconds.rem_euclid(SECONDS_OF_A_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{fraction:0digits$}")
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}+0000")
}

/// Year, month and day of a number of days since 1970, by whole 400-year cycles of the Gregorian calendar, with years
/// that start in March so that the leap day is the last.
fn date(days: i64) -> (i64, i64, i64) {
    const CYCLE: i64 = 146_097;
    let since_march_0000 = days + 719_468;
    let cycle = since_march_0000.div_euclid(CYCLE);
    let day = since_march_0000.rem_euclid(CYCLE);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, over and over: 153 in five.
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (year_shift, month) = if month < 10 {
        (0, month + 3)
    } else {
        (1, month - 9)
    };
    (year + cycle * 400 + year_shift, month, day_of_month)
}
