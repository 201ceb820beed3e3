//! Calls whose arguments depend on a command or on flags, and arguments that only one call takes.

use crate::Call;
use crate::answers::F_GETSIG;
use crate::flags::{device, file, memory, process, socket};
use crate::kind::Kind::{self, *};
use crate::printer::Printer;
use crate::signal;
use crate::structs::{self, Record};

/// The mode of open, only if it creates.
pub(crate) fn open(call: &Call) -> &'static [Kind] {
    creates(call.arguments[1])
}

/// The mode of openat, only if it creates.
pub(crate) fn openat(call: &Call) -> &'static [Kind] {
    creates(call.arguments[2])
}

fn creates(flags: u64) -> &'static [Kind] {
    let flags = flags as i32;
    let creates = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
    if creates { &[Permissions] } else { &[] }
}

/// The device of mknod, only if it makes one.
pub(crate) fn mknod(call: &Call) -> &'static [Kind] {
    makes_device(call.arguments[1])
}

/// The device of mknodat, only if it makes one.
pub(crate) fn mknodat(call: &Call) -> &'static [Kind] {
    makes_device(call.arguments[2])
}

fn makes_device(mode: u64) -> &'static [Kind] {
    if matches!(mode as u32 & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK) {
        &[Device]
    } else {
        &[]
    }
}

/// The new address of mremap, only if it is fixed.
pub(crate) fn mremap(call: &Call) -> &'static [Kind] {
    // MREMAP_DONTUNMAP takes the address as a hint.
    if call.arguments[3] & (libc::MREMAP_FIXED as u64 | 4) != 0 {
        &[Pointer]
    } else {
        &[]
    }
}

/// The fcntl command that sets the signal that announces readiness; libc has no name for it.
const F_SETSIG: i32 = 10;

/// The argument of an fcntl command (fcntl(2)).
pub(crate) fn fcntl(call: &Call) -> &'static [Kind] {
    match call.arguments[1] as i32 {
        libc::F_GETFD | libc::F_GETFL | libc::F_GETOWN | libc::F_GETLEASE => &[],
        libc::F_GETPIPE_SZ | libc::F_GET_SEALS | F_GETSIG => &[],
        libc::F_SETFD => &[Flags(file::FD)],
        libc::F_SETFL => &[Flags(file::OPEN)],
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETOWN | libc::F_SETPIPE_SZ => &[Int],
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            &[In(structs::FILE_LOCK)]
        }
        libc::F_GETLK | libc::F_OFD_GETLK => &[Out(structs::FILE_LOCK)],
        libc::F_ADD_SEALS => &[Flags(file::SEALS)],
        libc::F_SETLEASE => &[Choice(file::LOCK_TYPE)],
        libc::F_NOTIFY => &[Flags(file::NOTIFY)],
        F_SETSIG => &[Signal],
        _ => &[Hex],
    }
}

/// `TCGETS`, or the parts of the number.
pub(crate) fn ioctl_name(printer: &mut Printer, value: u64) {
    const DIRECTIONS: [&str; 4] = [
        "_IOC_NONE",
        "_IOC_WRITE",
        "_IOC_READ",
        "_IOC_READ|_IOC_WRITE",
    ];
    let request = value as u32;
    if let Some(name) = device::IOCTL.name(u64::from(request)) {
        return printer.put(name);
    }
    // Direction, size, type and number: include/uapi/asm-generic/ioctl.h.
    let direction = DIRECTIONS
        .get((request >> 30) as usize)
        .copied()
        .unwrap_or_default();
    printer.put(format_args!("_IOC({direction}"));
    for part in [request >> 8 & 0xff, request & 0xff, request >> 16 & 0x3fff] {
        printer.put(", ");
        printer.hex(u64::from(part));
    }
    printer.put(")");
}

/// The argument of an ioctl.
pub(crate) fn ioctl(call: &Call) -> &'static [Kind] {
    match device::IOCTL.name(call.arguments[1] & 0xffff_ffff) {
        Some("FIOCLEX" | "FIONCLEX" | "TIOCNOTTY" | "TIOCEXCL" | "TIOCNXCL") => &[],
        Some("TCGETS") => &[Out(structs::TERMINAL)],
        Some(name) if name.contains("TCSETS") => &[In(structs::TERMINAL)],
        Some("TIOCGWINSZ") => &[Out(structs::WINDOW)],
        Some("TIOCSWINSZ") => &[In(structs::WINDOW)],
        Some("TIOCSPGRP" | "TIOCSPTLCK" | "FIONBIO" | "FIOASYNC") => &[In(structs::INT)],
        Some("TIOCGPGRP" | "TIOCGSID" | "TIOCGPTN" | "TIOCGPTLCK" | "TIOCOUTQ" | "FIONREAD") => {
            &[Out(structs::INT)]
        }
        Some("FIOQSIZE") => &[Out(structs::LONG)],
        Some("TCFLSH") => &[Choice(device::FLUSH)],
        Some("TCXONC") => &[Choice(device::FLOW)],
        Some("TCSBRK" | "TIOCSCTTY") => &[Int],
        Some(name) if name.contains("FICLONE") => &[Int],
        _ => &[Hex],
    }
}

/// `FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME`.
pub(crate) fn futex_name(printer: &mut Printer, value: u64) {
    let operation = value as i32;
    match process::FUTEX.name(u64::from(value as u32) & libc::FUTEX_CMD_MASK as u32 as u64) {
        None => process::FUTEX.print(printer, value & 0xffff_ffff),
        Some(name) => {
            let private = if operation & libc::FUTEX_PRIVATE_FLAG != 0 {
                "_PRIVATE"
            } else {
                ""
            };
            let clock = if operation & libc::FUTEX_CLOCK_REALTIME != 0 {
                "|FUTEX_CLOCK_REALTIME"
            } else {
                ""
            };
            printer.put(format_args!("{name}{private}{clock}"));
        }
    }
}

/// The arguments of a futex operation (futex(2)).
pub(crate) fn futex(call: &Call) -> &'static [Kind] {
    match call.arguments[1] as i32 & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT => &[Unsigned, In(structs::TIMESPEC)],
        libc::FUTEX_WAIT_BITSET => &[Unsigned, In(structs::TIMESPEC), With(bit_set)],
        libc::FUTEX_WAKE => &[Unsigned],
        libc::FUTEX_WAKE_BITSET => &[Unsigned, With(bit_set)],
        libc::FUTEX_REQUEUE => &[Unsigned, Unsigned, Pointer],
        libc::FUTEX_CMP_REQUEUE | libc::FUTEX_CMP_REQUEUE_PI => {
            &[Unsigned, Unsigned, Pointer, Unsigned]
        }
        libc::FUTEX_WAKE_OP => &[Unsigned, Unsigned, Pointer, With(wake_operation)],
        libc::FUTEX_LOCK_PI | 13 => &[With(lock_timeout)],
        libc::FUTEX_UNLOCK_PI | libc::FUTEX_TRYLOCK_PI => &[],
        libc::FUTEX_WAIT_REQUEUE_PI => &[Unsigned, In(structs::TIMESPEC), Pointer],
        _ => &[Unsigned, Hex, Hex, Hex],
    }
}

/// The set is the sixth argument; the operation ignores those between.
fn bit_set(printer: &mut Printer, _: u64) {
    match printer.argument(5) as u32 {
        u32::MAX => printer.put("FUTEX_BITSET_MATCH_ANY"),
        bits => printer.hex(u64::from(bits)),
    }
}

/// The timeout is the fourth argument; the third is not used.
fn lock_timeout(printer: &mut Printer, _: u64) {
    printer.structure(structs::TIMESPEC, printer.argument(3));
}

/// `FUTEX_OP_SET<<28|0<<12|FUTEX_OP_CMP_GT<<24|0x1`.
fn wake_operation(printer: &mut Printer, value: u64) {
    if value >> 31 & 1 == 1 {
        printer.put("FUTEX_OP_OPARG_SHIFT<<28|");
    }
    process::FUTEX_OPERATION.print(printer, value >> 28 & 7);
    printer.put("<<28|");
    printer.hex(value >> 12 & 0xfff);
    printer.put("<<12|");
    process::FUTEX_COMPARISON.print(printer, value >> 24 & 0xf);
    printer.put("<<24|");
    printer.hex(value & 0xfff);
}

/// The arguments of a prctl option (prctl(2)).
pub(crate) fn prctl(call: &Call) -> &'static [Kind] {
    match call.arguments[0] as i32 {
        libc::PR_GET_DUMPABLE
        | libc::PR_GET_KEEPCAPS
        | libc::PR_GET_SECCOMP
        | libc::PR_GET_TIMERSLACK => &[],
        libc::PR_GET_TIMING | libc::PR_GET_SECUREBITS => &[],
        libc::PR_SET_PDEATHSIG => &[Signal],
        libc::PR_GET_PDEATHSIG => &[Out(structs::INT)],
        libc::PR_GET_CHILD_SUBREAPER | libc::PR_GET_TSC => &[Out(structs::INT)],
        libc::PR_SET_DUMPABLE => &[Choice(process::DUMPABLE)],
        libc::PR_SET_NAME => &[Text],
        libc::PR_GET_NAME => &[OutText],
        libc::PR_CAPBSET_READ | libc::PR_CAPBSET_DROP => &[Choice(process::CAPABILITY)],
        libc::PR_SET_KEEPCAPS | libc::PR_SET_CHILD_SUBREAPER | libc::PR_SET_TIMERSLACK => &[Size],
        libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_THP_DISABLE => &[Size, Hex, Hex, Hex],
        libc::PR_GET_NO_NEW_PRIVS | libc::PR_GET_THP_DISABLE => &[Hex, Hex, Hex, Hex],
        libc::PR_GET_TID_ADDRESS => &[Out(structs::ADDRESS)],
        0x5356_4d41 => &[Choice(process::NAMED_AREA), Pointer, Size, Text],
        _ => &[Hex, Hex, Hex, Hex],
    }
}

/// The argument of an arch_prctl operation.
pub(crate) fn arch_prctl(call: &Call) -> &'static [Kind] {
    match process::ARCH.name(call.arguments[0] & 0xffff_ffff) {
        Some("ARCH_GET_FS" | "ARCH_GET_GS") => &[Out(structs::ADDRESS)],
        Some("ARCH_SET_FS" | "ARCH_SET_GS") => &[Pointer],
        Some("ARCH_GET_CPUID") => &[],
        _ => &[Hex],
    }
}

/// `PER_LINUX|ADDR_NO_RANDOMIZE`; all ones ask without setting.
pub(crate) fn personality(printer: &mut Printer, value: u64) {
    match value as u32 {
        u32::MAX => printer.put("0xffffffff"),
        value => process::PERSONALITY.print(printer, u64::from(value)),
    }
}

/// `022`, three digits at least.
pub(crate) fn mask(printer: &mut Printer, value: u64) {
    printer.octal(value & 0xffff);
}

/// `RWF_HIPRI`, of preadv2: the offset takes two registers, and the flags the sixth.
pub(crate) fn read_write_flags(printer: &mut Printer, _: u64) {
    file::READ_WRITE.print(printer, printer.argument(5) & 0xffff_ffff);
}

/// `[2]`: a file offset before the call. The kernel has moved it by the result, which is taken off again.
pub(crate) fn offset(printer: &mut Printer, address: u64) {
    match printer.record(address, 8) {
        Some(bytes) if address != 0 => {
            let before = Record(&bytes).u64(0).wrapping_sub(printer.returned());
            printer.put(format_args!("[{}]", before as i64));
        }
        _ => printer.pointer(address),
    }
}

/// `[2] => [12]`: the same with what it became, if it moved.
pub(crate) fn offset_moved(printer: &mut Printer, address: u64) {
    offset(printer, address);
    if address != 0 && printer.returned() > 0 {
        printer.put(" => ");
        printer.structure(structs::LONG, address);
    }
}

/// `[MPOL_DEFAULT]`, as get_mempolicy wrote it.
pub(crate) fn policy(printer: &mut Printer, address: u64) {
    match printer.record(address, 4) {
        Some(bytes) if address != 0 && printer.succeeded() => {
            printer.put("[");
            memory::POLICY.print(printer, u64::from(Record(&bytes).u32(0)));
            printer.put("]");
        }
        _ => printer.pointer(address),
    }
}

/// All of clone's arguments, in the order and with the names strace gives them.
pub(crate) fn clone(printer: &mut Printer, flags: u64) {
    let has = |flag: i32| flags & flag as u32 as u64 != 0;
    printer.put("child_stack=");
    printer.pointer(printer.argument(1));
    printer.put(", flags=");
    let (bits, exit_signal) = (flags & 0xffff_ff00, flags & 0xff);
    if bits != 0 || exit_signal == 0 {
        process::CLONE.print(printer, bits);
    }
    if exit_signal != 0 {
        printer.put(if bits != 0 { "|" } else { "" });
        signal::signal(printer, exit_signal);
    }
    if has(libc::CLONE_PARENT_SETTID | libc::CLONE_PIDFD) {
        printer.put(", parent_tid=");
        let address = printer.argument(2);
        if printer.succeeded() {
            printer.structure(structs::INT, address)
        } else {
            printer.pointer(address)
        }
    }
    if has(libc::CLONE_SETTLS) {
        printer.put(", tls=");
        printer.hex(printer.argument(4));
    }
    if has(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) {
        printer.put(", child_tidptr=");
        printer.pointer(printer.argument(3));
    }
}

/// The structure of clone3, if it is not shorter than its first version.
pub(crate) fn clone3(printer: &mut Printer, address: u64) {
    if printer.argument(1) < structs::ARGUMENTS_OF_CLONE.size as u64 {
        return printer.pointer(address);
    }
    printer.structure(structs::ARGUMENTS_OF_CLONE, address);
}

/// The status is written only if a child was found.
pub(crate) fn wait_status(printer: &mut Printer, address: u64) {
    if printer.returned() > 0 {
        printer.structure(structs::WAIT_STATUS, address)
    } else {
        printer.pointer(address)
    }
}

/// So is the usage.
pub(crate) fn wait_usage(printer: &mut Printer, address: u64) {
    if printer.returned() > 0 {
        printer.structure(structs::USAGE, address)
    } else {
        printer.pointer(address)
    }
}

/// What is left of a sleep, only if a signal ended it.
pub(crate) fn time_left(printer: &mut Printer, address: u64) {
    // -516 is ERESTART_RESTARTBLOCK, which the kernel turns into EINTR for the program.
    let interrupted = matches!(printer.call.result, Some(result) if [-i64::from(libc::EINTR), -516].contains(&result));
    if interrupted {
        printer.structure(structs::TIMESPEC, address)
    } else {
        printer.pointer(address)
    }
}

/// The event of epoll_ctl; a deletion ignores it.
pub(crate) fn epoll_event(printer: &mut Printer, address: u64) {
    if printer.argument(1) as i32 == libc::EPOLL_CTL_DEL {
        return printer.pointer(address);
    }
    printer.structure(structs::EPOLL_EVENT, address);
}

/// The protocol, whose names depend on the family.
pub(crate) fn protocol(printer: &mut Printer, value: u64) {
    let value = value & 0xffff_ffff;
    match printer.argument(0) as i32 {
        libc::AF_INET | libc::AF_INET6 => socket::INTERNET.print(printer, value),
        libc::AF_NETLINK => socket::NETLINK.print(printer, value),
        _ => printer.put(value as i32),
    }
}

/// The name of a socket option, which depends on the level.
pub(crate) fn option_name(printer: &mut Printer, value: u64) {
    let value = value & 0xffff_ffff;
    match printer.argument(1) as i32 {
        libc::SOL_SOCKET => socket::SOCKET_OPTION.print(printer, value),
        libc::IPPROTO_TCP => socket::TCP_OPTION.print(printer, value),
        libc::IPPROTO_IP => socket::IP_OPTION.print(printer, value),
        libc::IPPROTO_IPV6 => socket::IPV6_OPTION.print(printer, value),
        _ => printer.hex(value),
    }
}

/// The value of a socket option that is set.
pub(crate) fn option(printer: &mut Printer, address: u64) {
    option_value(printer, address, printer.argument(4) & 0xffff_ffff);
}

/// The value of a socket option that was read; the kernel wrote its length too.
pub(crate) fn option_read(printer: &mut Printer, address: u64) {
    match printer.record(printer.argument(4), 4) {
        Some(bytes) if printer.succeeded() => {
            option_value(printer, address, u64::from(Record(&bytes).u32(0)))
        }
        _ => printer.pointer(address),
    }
}

fn option_value(printer: &mut Printer, address: u64, length: u64) {
    let socket = printer.argument(1) as i32 == libc::SOL_SOCKET;
    match (printer.argument(2) as i32, length) {
        (libc::SO_LINGER, 8) if socket => printer.structure(structs::LINGER, address),
        (libc::SO_ERROR, 4) if socket => printer.structure(structs::ERROR, address),
        (_, 4) => printer.structure(structs::INT, address),
        _ => printer.bytes(address, length),
    }
}
