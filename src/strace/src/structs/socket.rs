//! Socket addresses and messages.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Layout, Record, vectors};
use crate::errno::errno;
use crate::flags::socket;
use crate::line::quote;
use crate::printer::{Printer, SHOWN};

/// `struct msghdr` that the kernel sends.
pub(crate) const MESSAGE: &Layout = &Layout {
    size: 56,
    print: |printer, record| message(printer, record, u64::MAX),
};

/// `struct msghdr` that the kernel filled.
pub(crate) const MESSAGE_READ: &Layout = &Layout {
    size: 56,
    print: message_read,
};

/// `struct mmsghdr` that the kernel sends.
pub(crate) const MESSAGE_COUNTED: &Layout = &Layout {
    size: 64,
    print: |printer, record| message_counted(printer, record, u64::MAX),
};

/// `struct mmsghdr` that the kernel filled.
pub(crate) const MESSAGE_COUNTED_READ: &Layout = &Layout {
    size: 64,
    print: |printer, record| message_counted(printer, record, u64::from(record.u32(56))),
};

/// `struct linger`.
pub(crate) const LINGER: &Layout = &Layout {
    size: 8,
    print: |printer, record| {
        printer.put(format_args!(
            "{{l_onoff={}, l_linger={}}}",
            record.i32(0),
            record.i32(4)
        ));
    },
};

/// The pending error of a socket, `[ECONNREFUSED]`.
pub(crate) const ERROR: &Layout = &Layout {
    size: 4,
    print: |printer, record| match errno(i64::from(record.i32(0))) {
        Some(error) => printer.put(format_args!("[{}]", error.name)),
        None => printer.put(format_args!("[{}]", record.i32(0))),
    },
};

/// The most bytes of a socket address that are read (`struct sockaddr_storage`).
const ADDRESS: u64 = 128;

/// The most bytes of control messages that are read.
const CONTROL: u64 = 1024;

/// The header of a control message.
const CONTROL_HEADER: usize = 16;

/// `{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}`.
pub(crate) fn address(printer: &mut Printer, address: u64, length: u64) {
    let length = usize::try_from((length & 0xffff_ffff).min(ADDRESS)).unwrap_or(0);
    let readable = printer
        .record(address, length)
        .filter(|bytes| address != 0 && bytes.len() >= 2);
    let Some(bytes) = readable else {
        return printer.pointer(address);
    };
    let record = Record(&bytes);
    let family = record.u16(0);
    printer.put("{sa_family=");
    socket::FAMILY.print(printer, u64::from(family));
    match i32::from(family) {
        libc::AF_UNIX => unix(printer, &record),
        libc::AF_INET if length >= 16 => internet(printer, &record),
        libc::AF_INET6 if length >= 24 => internet_6(printer, &record),
        libc::AF_NETLINK if length >= 12 => {
            printer.put(format_args!(
                ", nl_pid={}, nl_groups={:08x}",
                record.i32(4),
                record.u32(8)
            ));
        }
        _ if length > 2 => {
            printer.put(format_args!(", sa_data={}", quote(record.bytes(2, length))))
        }
        _ => {}
    }
    printer.put("}");
}

/// A path ends at its NUL; an abstract name starts with one and ends with the address.
fn unix(printer: &mut Printer, record: &Record) {
    let path = record.bytes(2, 108);
    match path {
        [] => {}
        [0, name @ ..] => printer.put(format_args!(", sun_path=@{}", quote(name))),
        path => {
            let end = path
                .iter()
                .position(|&byte| byte == 0)
                .unwrap_or(path.len());
            printer.put(format_args!(
                ", sun_path={}",
                quote(path.get(..end).unwrap_or_default())
            ));
        }
    }
}

fn internet(printer: &mut Printer, record: &Record) {
    let host = Ipv4Addr::from(u32::from_be(record.u32(4)));
    printer.put(format_args!(
        ", sin_port=htons({}), sin_addr=inet_addr(\"{host}\")",
        u16::from_be(record.u16(2))
    ));
}

fn internet_6(printer: &mut Printer, record: &Record) {
    let mut host = [0; 16];
    host.copy_from_slice(&[record.u64(8).to_le_bytes(), record.u64(16).to_le_bytes()].concat());
    printer.put(format_args!(
        ", sin6_port=htons({}), ",
        u16::from_be(record.u16(2))
    ));
    printer.put(format_args!(
        "sin6_flowinfo=htonl({}), ",
        u32::from_be(record.u32(4))
    ));
    printer.put(format_args!(
        "inet_pton(AF_INET6, \"{}\", &sin6_addr), ",
        Ipv6Addr::from(host)
    ));
    printer.put(format_args!("sin6_scope_id={}", record.u32(24)));
}

fn message(printer: &mut Printer, record: &Record, filled: u64) {
    let name_length = u64::from(record.u32(8));
    printer.put("{msg_name=");
    address(printer, record.u64(0), name_length);
    printer.put(format_args!(", msg_namelen={name_length}, msg_iov="));
    vectors(printer, record.u64(16), record.u64(24), filled);
    printer.put(format_args!(", msg_iovlen={}", record.u64(24)));
    let length = record.u64(40);
    if length > 0 {
        printer.put(", msg_control=");
        control(printer, record.u64(32), length);
    }
    printer.put(format_args!(", msg_controllen={length}, msg_flags="));
    socket::MESSAGE.print(printer, u64::from(record.u32(48)));
    printer.put("}");
}

fn message_read(printer: &mut Printer, record: &Record) {
    if printer.succeeded() {
        message(printer, record, printer.returned());
    } else {
        printer.put(format_args!("{{msg_namelen={}}}", record.i32(8)));
    }
}

fn message_counted(printer: &mut Printer, record: &Record, filled: u64) {
    printer.put("{msg_hdr=");
    message(printer, record, filled);
    if printer.succeeded() {
        printer.put(format_args!(", msg_len={}", record.u32(56)));
    }
    printer.put("}");
}

/// The control messages in `length` bytes at `address`.
fn control(printer: &mut Printer, address: u64, length: u64) {
    let length = usize::try_from(length.min(CONTROL)).unwrap_or(0);
    let Some(bytes) = printer.record(address, length).filter(|_| address != 0) else {
        return printer.pointer(address);
    };
    let mut offset = 0;
    printer.put("[");
    for index in 0..SHOWN {
        let rest = bytes.get(offset..).unwrap_or_default();
        if rest.len() < CONTROL_HEADER {
            break;
        }
        let header = Record(rest);
        let size = usize::try_from(header.u64(0)).unwrap_or(usize::MAX);
        printer.separate(index);
        control_message(printer, &header, size);
        // A message that claims less than its header would be walked for ever.
        if size < CONTROL_HEADER {
            break;
        }
        offset = offset.saturating_add(size).saturating_add(7) & !7;
    }
    printer.put("]");
}

fn control_message(printer: &mut Printer, header: &Record, size: usize) {
    let (level, kind) = (header.u32(8), header.u32(12));
    printer.put(format_args!("{{cmsg_len={size}, cmsg_level="));
    socket::LEVEL.print(printer, u64::from(level));
    printer.put(", cmsg_type=");
    if level as i32 == libc::SOL_SOCKET {
        socket::CONTROL.print(printer, u64::from(kind));
    } else {
        printer.hex(u64::from(kind));
    }
    let data = Record(header.bytes(CONTROL_HEADER, size.saturating_sub(CONTROL_HEADER)));
    match (level as i32, kind as i32) {
        (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
            let descriptors = data
                .0
                .chunks_exact(4)
                .take(SHOWN)
                .map(|bytes| Record(bytes).i32(0).to_string());
            printer.put(format_args!(
                ", cmsg_data=[{}]",
                descriptors.collect::<Vec<_>>().join(", ")
            ));
        }
        (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
            let (process, user, group) = (data.i32(0), data.u32(4), data.u32(8));
            printer.put(format_args!(
                ", cmsg_data={{pid={process}, uid={user}, gid={group}}}"
            ));
        }
        _ if !data.0.is_empty() => {
            printer.put(format_args!(", cmsg_data={}", quote(data.bytes(0, SHOWN))))
        }
        _ => {}
    }
    printer.put("}");
}
