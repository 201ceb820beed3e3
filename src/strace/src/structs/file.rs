//! Structures of file calls.

use super::{Layout, Record, moment};
use crate::flags::{Flags, file};
use crate::printer::{Printer, permissions};

/// `struct stat`; strace shows the mode and the size, or the device number.
pub(crate) const FILE_STATUS: &Layout = &Layout {
    size: 144,
    print: status,
};

/// `struct statx`.
pub(crate) const FILE_STATUS_EXTENDED: &Layout = &Layout {
    size: 256,
    print: status_extended,
};

/// `struct statfs`.
pub(crate) const FILE_SYSTEM_STATUS: &Layout = &Layout {
    size: 120,
    print: file_system_status,
};

/// `struct flock`.
pub(crate) const FILE_LOCK: &Layout = &Layout {
    size: 32,
    print: lock,
};

/// `struct open_how`, first version.
pub(crate) const OPEN_HOW: &Layout = &Layout {
    size: 24,
    print: how,
};

/// `struct utimbuf`.
pub(crate) const BINARY_TIMES: &Layout = &Layout {
    size: 16,
    print: binary_times,
};

/// The most bytes of a directory listing that are walked to count its entries.
const LISTING: u64 = 1 << 20;

/// `S_IFREG|0644`.
pub(crate) fn mode(printer: &mut Printer, mode: u32) {
    let kind = u64::from(mode) & u64::from(libc::S_IFMT);
    match file::FILE_TYPE.name(kind) {
        Some(name) => printer.put(format_args!("{name}|")),
        None if kind == 0 => {}
        None => printer.put(format_args!("0{kind:o}|")),
    }
    permissions(printer, mode & 0o7777);
}

/// `makedev(0x1, 0x3)`, from the encoding that stat and mknod use.
pub(crate) fn device(printer: &mut Printer, device: u64) {
    let (major, minor) = (libc::major(device), libc::minor(device));
    printer.put("makedev(");
    printer.hex(u64::from(major));
    printer.put(", ");
    printer.hex(u64::from(minor));
    printer.put(")");
}

fn status(printer: &mut Printer, record: &Record) {
    let bits = record.u32(24);
    printer.put("{st_mode=");
    mode(printer, bits);
    if matches!(bits & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK) {
        printer.put(", st_rdev=");
        device(printer, record.u64(40));
    } else {
        printer.put(format_args!(", st_size={}", record.i64(48)));
    }
    printer.put(", ...}");
}

fn named(printer: &mut Printer, name: &str, flags: &Flags, value: u64) {
    printer.put(name);
    flags.print(printer, value);
}

fn status_extended(printer: &mut Printer, record: &Record) {
    named(printer, "{stx_mask=", file::STATX, u64::from(record.u32(0)));
    named(
        printer,
        ", stx_attributes=",
        file::STATX_ATTRIBUTES,
        record.u64(8),
    );
    printer.put(", stx_mode=");
    mode(printer, u32::from(record.u16(28)));
    printer.put(format_args!(", stx_size={}, ...}}", record.u64(40)));
}

fn file_system_status(printer: &mut Printer, record: &Record) {
    printer.put("{f_type=");
    file::FILE_SYSTEM.print(printer, record.u64(0));
    let counts = [
        "f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree",
    ];
    for (index, name) in counts.iter().enumerate() {
        printer.put(format_args!(", {name}={}", record.u64(8 + index * 8)));
    }
    printer.put(", f_fsid={val=[");
    printer.hex(u64::from(record.u32(56)));
    printer.put(", ");
    printer.hex(u64::from(record.u32(60)));
    printer.put(format_args!(
        "]}}, f_namelen={}, f_frsize={}",
        record.u64(64),
        record.u64(72)
    ));
    named(printer, ", f_flags=", file::MOUNTED, record.u64(80));
    printer.put("}");
}

fn lock(printer: &mut Printer, record: &Record) {
    printer.put("{l_type=");
    file::LOCK_TYPE.print(printer, u64::from(record.u16(0)));
    printer.put(", l_whence=");
    file::WHENCE.print(printer, u64::from(record.u16(2)));
    printer.put(format_args!(
        ", l_start={}, l_len={}",
        record.i64(8),
        record.i64(16)
    ));
    // Only the calls that ask for a lock say who holds it.
    if matches!(
        printer.argument(1) as i32,
        libc::F_GETLK | libc::F_OFD_GETLK
    ) {
        printer.put(format_args!(", l_pid={}", record.i32(24)));
    }
    printer.put("}");
}

fn how(printer: &mut Printer, record: &Record) {
    let flags = record.u64(0);
    named(printer, "{flags=", file::OPEN, flags);
    if record.u64(8) != 0 || flags & (libc::O_CREAT as u64) != 0 {
        printer.put(", mode=");
        permissions(printer, record.u64(8) as u32);
    }
    named(printer, ", resolve=", file::RESOLVE, record.u64(16));
    printer.put("}");
}

fn binary_times(printer: &mut Printer, record: &Record) {
    for (index, name) in ["{actime=", ", modtime="].iter().enumerate() {
        let seconds = record.i64(index * 8);
        printer.put(format_args!(
            "{name}{seconds} /* {} */",
            moment(seconds, 0, 9)
        ));
    }
    printer.put("}");
}

/// `0x55… /* 5 entries */`, as getdents or getdents64 returned them: both keep the length of an entry at byte 16.
pub(crate) fn directory_entries(printer: &mut Printer, address: u64) {
    printer.pointer(address);
    if !printer.succeeded() {
        return;
    }
    let (mut offset, mut count) = (0, 0u32);
    let end = printer.returned().min(LISTING);
    while offset < end {
        let Some(bytes) = printer.record(address.wrapping_add(offset + 16), 2) else {
            break;
        };
        let length = u64::from(Record(&bytes).u16(0));
        // An entry is never shorter than its header; less would walk for ever.
        if length < 19 {
            break;
        }
        offset += length;
        count += 1;
    }
    printer.put(format_args!(" /* {count} entries */"));
}
