//! Structures of process and signal calls.

use super::time::pair;
use super::{Layout, Record};
use crate::flags::process;
use crate::line::quote;
use crate::printer::Printer;
use crate::signal;

/// `sigset_t` of the kernel: 64 bits.
pub(crate) const SIGNAL_SET: &Layout = &Layout {
    size: 8,
    print: |printer, record| signal::set(printer, record.u64(0)),
};

/// What pselect6 takes as its sixth argument: a pointer to a set, and its size.
pub(crate) const SIGNAL_SET_AND_SIZE: &Layout = &Layout {
    size: 16,
    print: set_and_size,
};

/// The kernel's `struct sigaction`.
pub(crate) const SIGNAL_ACTION: &Layout = &Layout {
    size: 32,
    print: action,
};

/// `siginfo_t`.
pub(crate) const SIGNAL_INFORMATION: &Layout = &Layout {
    size: 128,
    print: information,
};

/// `stack_t`.
pub(crate) const ALTERNATE_STACK: &Layout = &Layout {
    size: 24,
    print: alternate_stack,
};

/// `struct sigevent`.
pub(crate) const TIMER_EVENT: &Layout = &Layout {
    size: 64,
    print: timer_event,
};

/// What wait4 says of a child.
pub(crate) const WAIT_STATUS: &Layout = &Layout {
    size: 4,
    print: wait_status,
};

/// `struct rusage`.
pub(crate) const USAGE: &Layout = &Layout {
    size: 144,
    print: usage,
};

/// `struct rlimit64`.
pub(crate) const RESOURCE_LIMIT: &Layout = &Layout {
    size: 16,
    print: resource_limit,
};

/// `struct utsname`: six strings of 65 bytes.
pub(crate) const SYSTEM_NAME: &Layout = &Layout {
    size: 390,
    print: system_name,
};

/// `struct sysinfo`.
pub(crate) const SYSTEM_INFORMATION: &Layout = &Layout {
    size: 112,
    print: system_information,
};

/// `struct clone_args`, first version.
pub(crate) const ARGUMENTS_OF_CLONE: &Layout = &Layout {
    size: 64,
    print: arguments_of_clone,
};

/// `struct __user_cap_header_struct`.
pub(crate) const CAPABILITY_HEADER: &Layout = &Layout {
    size: 8,
    print: capability_header,
};

/// Two of `struct __user_cap_data_struct`, as every version since 3 has them.
pub(crate) const CAPABILITIES: &Layout = &Layout {
    size: 24,
    print: capabilities,
};

fn set_and_size(printer: &mut Printer, record: &Record) {
    printer.put("{sigmask=");
    printer.structure(SIGNAL_SET, record.u64(0));
    printer.put(format_args!(", sigsetsize={}}}", record.u64(8)));
}

fn action(printer: &mut Printer, record: &Record) {
    printer.put("{sa_handler=");
    match record.u64(0) {
        0 => printer.put("SIG_DFL"),
        1 => printer.put("SIG_IGN"),
        handler => printer.pointer(handler),
    }
    printer.put(", sa_mask=");
    signal::set(printer, record.u64(24));
    printer.put(", sa_flags=");
    process::ACTION.print(printer, record.u64(8));
    if record.u64(8) & 0x0400_0000 != 0 {
        printer.put(", sa_restorer=");
        printer.pointer(record.u64(16));
    }
    printer.put("}");
}

fn information(printer: &mut Printer, record: &Record) {
    let number = u64::from(record.u32(0));
    if number == 0 {
        return printer.put("{}");
    }
    printer.put("{si_signo=");
    signal::signal(printer, number);
    printer.put(", si_code=");
    let child = record.i32(0) == libc::SIGCHLD && record.i32(8) > 0;
    let code = u64::from(record.u32(8));
    if child {
        process::CHILD_CODE.print(printer, code)
    } else {
        process::SIGNAL_CODE.print(printer, code)
    }
    if child {
        printer.put(format_args!(
            ", si_pid={}, si_uid={}, si_status=",
            record.i32(16),
            record.u32(20)
        ));
        let exited = record.i32(8) == libc::CLD_EXITED;
        if exited {
            printer.put(record.i32(24))
        } else {
            signal::signal(printer, u64::from(record.u32(24)))
        }
        printer.put(format_args!(
            ", si_utime={}, si_stime={}}}",
            record.i64(32),
            record.i64(40)
        ));
    } else if record.i32(8) <= 0 {
        printer.put(format_args!(
            ", si_pid={}, si_uid={}}}",
            record.i32(16),
            record.u32(20)
        ));
    } else {
        printer.put("}");
    }
}

fn alternate_stack(printer: &mut Printer, record: &Record) {
    printer.put("{ss_sp=");
    printer.pointer(record.u64(0));
    printer.put(", ss_flags=");
    process::ALTERNATE_STACK.print(printer, u64::from(record.u32(8)));
    printer.put(format_args!(", ss_size={}}}", record.u64(16)));
}

fn timer_event(printer: &mut Printer, record: &Record) {
    printer.put("{sigev_signo=");
    signal::signal(printer, u64::from(record.u32(8)));
    printer.put(", sigev_notify=");
    process::NOTIFICATION.print(printer, u64::from(record.u32(12)));
    printer.put("}");
}

fn wait_status(printer: &mut Printer, record: &Record) {
    let status = record.i32(0);
    printer.put("[{");
    if libc::WIFEXITED(status) {
        printer.put(format_args!(
            "WIFEXITED(s) && WEXITSTATUS(s) == {}",
            libc::WEXITSTATUS(status)
        ));
    } else if libc::WIFSIGNALED(status) {
        printer.put("WIFSIGNALED(s) && WTERMSIG(s) == ");
        signal::signal(printer, libc::WTERMSIG(status) as u64);
        if libc::WCOREDUMP(status) {
            printer.put(" && WCOREDUMP(s)");
        }
    } else if libc::WIFCONTINUED(status) {
        printer.put("WIFCONTINUED(s)");
    } else {
        printer.put("WIFSTOPPED(s) && WSTOPSIG(s) == ");
        signal::signal(printer, libc::WSTOPSIG(status) as u64);
    }
    printer.put("}]");
}

fn usage(printer: &mut Printer, record: &Record) {
    printer.put("{ru_utime=");
    pair(printer, record, 0, "usec");
    printer.put(", ru_stime=");
    pair(printer, record, 16, "usec");
    printer.put(", ...}");
}

fn resource_limit(printer: &mut Printer, record: &Record) {
    for (offset, name) in [(0, "{rlim_cur="), (8, ", rlim_max=")] {
        printer.put(name);
        match record.u64(offset) {
            u64::MAX => printer.put("RLIM64_INFINITY"),
            value if value > 1024 && value % 1024 == 0 => {
                printer.put(format_args!("{}*1024", value / 1024))
            }
            value => printer.put(value),
        }
    }
    printer.put("}");
}

fn system_name(printer: &mut Printer, record: &Record) {
    for (index, name) in ["{sysname=", ", nodename="].iter().enumerate() {
        let field = record.bytes(index * 65, 65);
        let end = field
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(field.len());
        printer.put(format_args!(
            "{name}{}",
            quote(field.get(..end).unwrap_or_default())
        ));
    }
    printer.put(", ...}");
}

fn system_information(printer: &mut Printer, record: &Record) {
    let (one, five, fifteen) = (record.u64(8), record.u64(16), record.u64(24));
    printer.put(format_args!(
        "{{uptime={}, loads=[{one}, {five}, {fifteen}]",
        record.i64(0)
    ));
    let sizes = [
        "totalram",
        "freeram",
        "sharedram",
        "bufferram",
        "totalswap",
        "freeswap",
    ];
    for (index, name) in sizes.iter().enumerate() {
        printer.put(format_args!(", {name}={}", record.u64(32 + index * 8)));
    }
    let (high, free) = (record.u64(88), record.u64(96));
    printer.put(format_args!(
        ", procs={}, totalhigh={high}, freehigh={free}",
        record.u16(80)
    ));
    printer.put(format_args!(", mem_unit={}}}", record.u32(104)));
}

fn capability_header(printer: &mut Printer, record: &Record) {
    printer.put("{version=");
    process::CAPABILITY_VERSION.print(printer, u64::from(record.u32(0)));
    printer.put(format_args!(", pid={}}}", record.i32(4)));
}

/// `1<<CAP_CHOWN|1<<CAP_KILL` thrice; the second structure holds the upper halves.
fn capabilities(printer: &mut Printer, record: &Record) {
    for (offset, name) in [
        (0, "{effective="),
        (4, ", permitted="),
        (8, ", inheritable="),
    ] {
        let set = u64::from(record.u32(offset)) | u64::from(record.u32(offset + 12)) << 32;
        let names: Vec<String> = (0..64)
            .filter(|bit| set >> bit & 1 == 1)
            .map(|bit| match process::CAPABILITY.name(bit) {
                Some(name) => format!("1<<{name}"),
                None => format!("{:#x}", 1u64 << bit),
            })
            .collect();
        printer.put(format_args!(
            "{name}{}",
            if names.is_empty() {
                "0".to_owned()
            } else {
                names.join("|")
            }
        ));
    }
    printer.put("}");
}

/// What the kernel wrote through the pointers is shown behind ` => `.
fn arguments_of_clone(printer: &mut Printer, record: &Record) {
    let flags = record.u64(0);
    let has = |flag: i32| flags & (flag as u32 as u64) != 0;
    printer.put("{flags=");
    process::CLONE.print(printer, flags);
    let pointers = [
        (libc::CLONE_PIDFD, ", pidfd=", 8),
        (
            libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID,
            ", child_tid=",
            16,
        ),
        (libc::CLONE_PARENT_SETTID, ", parent_tid=", 24),
    ];
    for (flag, name, offset) in pointers {
        if has(flag) {
            printer.put(name);
            printer.pointer(record.u64(offset));
        }
    }
    printer.put(", exit_signal=");
    signal::signal(printer, record.u64(32));
    printer.put(", stack=");
    printer.pointer(record.u64(40));
    printer.put(", stack_size=");
    printer.hex(record.u64(48));
    if has(libc::CLONE_SETTLS) {
        printer.put(", tls=");
        printer.pointer(record.u64(56));
    }
    printer.put("}");
    if printer.succeeded() && has(libc::CLONE_PARENT_SETTID) {
        printer.put(" => {parent_tid=");
        printer.structure(super::INT, record.u64(24));
        printer.put("}");
    }
}
