//! What the arguments of each syscall are (section 2 of the manual).

use syscalls::Sysno as S;

use crate::choose;
use crate::flags::{file, memory, process, socket, wait};
use crate::kind::Kind::{self, *};
use crate::structs;

/// The kinds of the arguments of a syscall, or None for one that is not decoded.
pub(crate) fn arguments(number: S) -> Option<&'static [Kind]> {
    files(number)
        .or_else(|| directories(number))
        .or_else(|| memory(number))
        .or_else(|| processes(number))
        .or_else(|| signals(number))
        .or_else(|| identity(number))
        .or_else(|| times(number))
        .or_else(|| waiting(number))
        .or_else(|| sockets(number))
        .or_else(|| system(number))
}

/// Calls on open files, and those that open them.
fn files(number: S) -> Option<&'static [Kind]> {
    const READ: &[Kind] = &[Int, OutBytes, Size];
    const WRITE: &[Kind] = &[Int, Bytes(2), Size];
    Some(match number {
        S::read => READ,
        S::write => WRITE,
        S::pread64 => &[Int, OutBytes, Size, Long],
        S::pwrite64 => &[Int, Bytes(2), Size, Long],
        S::readv => &[Int, Scatter(2), Size],
        S::writev => &[Int, Gather(2), Size],
        S::preadv => &[Int, Scatter(2), Size, Long],
        S::pwritev => &[Int, Gather(2), Size, Long],
        S::preadv2 => &[Int, Scatter(2), Size, Long, With(choose::read_write_flags)],
        S::pwritev2 => &[Int, Gather(2), Size, Long, With(choose::read_write_flags)],
        S::open => &[Path, Flags(file::OPEN), Rest(choose::open)],
        S::openat => &[Directory, Path, Flags(file::OPEN), Rest(choose::openat)],
        S::openat2 => &[Directory, Path, In(structs::OPEN_HOW), Size],
        S::creat => &[Path, Permissions],
        S::close => &[Int],
        S::close_range => &[Unsigned, Unsigned, Flags(file::CLOSE_RANGE)],
        S::lseek => &[Int, Long, Choice(file::WHENCE)],
        S::dup => &[Int],
        S::dup2 => &[Int, Int],
        S::dup3 => &[Int, Int, Flags(file::OPEN_ONLY)],
        S::pipe => &[Out(structs::PAIR)],
        S::pipe2 => &[Out(structs::PAIR), Flags(file::OPEN_ONLY)],
        S::fcntl => &[Int, Choice(file::FCNTL), Rest(choose::fcntl)],
        S::ioctl => &[Int, With(choose::ioctl_name), Rest(choose::ioctl)],
        S::flock => &[Int, Flags(file::LOCK)],
        S::fsync | S::fdatasync | S::syncfs => &[Int],
        S::sync_file_range => &[Int, Long, Long, Flags(file::SYNC_RANGE)],
        S::ftruncate => &[Int, Long],
        S::fallocate => &[Int, Flags(file::FALLOCATE), Long, Long],
        S::fadvise64 => &[Int, Long, Size, Choice(file::FADVISE)],
        S::readahead => &[Int, Long, Size],
        S::fstat => &[Int, Out(structs::FILE_STATUS)],
        S::fstatfs => &[Int, Out(structs::FILE_SYSTEM_STATUS)],
        S::fchmod => &[Int, Permissions],
        S::fchown => &[Int, Id, Id],
        S::fchdir => &[Int],
        S::getdents | S::getdents64 => &[Int, With(structs::directory_entries), Unsigned],
        S::sendfile => &[Int, Int, With(choose::offset_moved), Size],
        S::splice => &[
            Int,
            With(choose::offset),
            Int,
            With(choose::offset),
            Size,
            Flags(file::SPLICE),
        ],
        S::tee => &[Int, Int, Size, Flags(file::SPLICE)],
        S::vmsplice => &[Int, Gather(2), Size, Flags(file::SPLICE)],
        S::copy_file_range => &[
            Int,
            With(choose::offset),
            Int,
            With(choose::offset),
            Size,
            Unsigned,
        ],
        S::fgetxattr => &[Int, Text, OutBytes, Size],
        S::fsetxattr => &[Int, Text, Bytes(3), Size, Flags(file::XATTR)],
        S::flistxattr => READ,
        S::fremovexattr => &[Int, Text],
        S::inotify_init => &[],
        S::inotify_init1 => &[Flags(file::INOTIFY_INIT)],
        S::inotify_add_watch => &[Int, Path, Flags(file::INOTIFY)],
        S::inotify_rm_watch => &[Int, Int],
        _ => return None,
    })
}

/// Calls on names of files.
fn directories(number: S) -> Option<&'static [Kind]> {
    const PATH: &[Kind] = &[Path];
    const TWO_PATHS: &[Kind] = &[Path, Path];
    Some(match number {
        S::stat | S::lstat => &[Path, Out(structs::FILE_STATUS)],
        S::newfstatat => &[Directory, Path, Out(structs::FILE_STATUS), Flags(file::AT)],
        S::statx => &[
            Directory,
            Path,
            Flags(file::AT_STATX),
            Flags(file::STATX),
            Out(structs::FILE_STATUS_EXTENDED),
        ],
        S::statfs => &[Path, Out(structs::FILE_SYSTEM_STATUS)],
        S::access => &[Path, Flags(file::ACCESS)],
        S::faccessat => &[Directory, Path, Flags(file::ACCESS)],
        S::faccessat2 => &[Directory, Path, Flags(file::ACCESS), Flags(file::AT_ACCESS)],
        S::getcwd => &[OutText, Size],
        S::chdir | S::chroot | S::rmdir | S::unlink => PATH,
        S::unlinkat => &[Directory, Path, Flags(file::AT)],
        S::mkdir => &[Path, Permissions],
        S::mkdirat => &[Directory, Path, Permissions],
        S::mknod => &[Path, Mode, Rest(choose::mknod)],
        S::mknodat => &[Directory, Path, Mode, Rest(choose::mknodat)],
        S::rename | S::link | S::symlink | S::pivot_root => TWO_PATHS,
        S::renameat => &[Directory, Path, Directory, Path],
        S::renameat2 => &[Directory, Path, Directory, Path, Flags(file::RENAME)],
        S::linkat => &[Directory, Path, Directory, Path, Flags(file::AT)],
        S::symlinkat => &[Path, Directory, Path],
        S::readlink => &[Path, OutBytes, Size],
        S::readlinkat => &[Directory, Path, OutBytes, Size],
        S::truncate => &[Path, Long],
        S::chmod => &[Path, Permissions],
        S::fchmodat => &[Directory, Path, Permissions],
        S::chown | S::lchown => &[Path, Id, Id],
        S::fchownat => &[Directory, Path, Id, Id, Flags(file::AT)],
        S::umask => &[With(choose::mask)],
        S::utime => &[Path, In(structs::BINARY_TIMES)],
        S::utimes => &[Path, In(structs::SET_TIMEVAL)],
        S::futimesat => &[Directory, Path, In(structs::SET_TIMEVAL)],
        S::utimensat => &[Directory, Path, In(structs::SET_TIME), Flags(file::AT)],
        S::getxattr | S::lgetxattr => &[Path, Text, OutBytes, Size],
        S::setxattr | S::lsetxattr => &[Path, Text, Bytes(3), Size, Flags(file::XATTR)],
        S::listxattr | S::llistxattr => &[Path, OutBytes, Size],
        S::removexattr | S::lremovexattr => &[Path, Text],
        S::mount => &[Text, Path, Text, Flags(file::MOUNT), Text],
        S::umount2 => &[Path, Flags(file::UNMOUNT)],
        S::sync => &[],
        _ => return None,
    })
}

/// Calls on the address space.
fn memory(number: S) -> Option<&'static [Kind]> {
    const RANGE: &[Kind] = &[Pointer, Size];
    Some(match number {
        S::brk => &[Pointer],
        S::mmap => &[
            Pointer,
            Size,
            Flags(memory::PROTECTION),
            Flags(memory::MAP),
            Int,
            Hex,
        ],
        S::munmap | S::mlock | S::munlock => RANGE,
        S::mprotect => &[Pointer, Size, Flags(memory::PROTECTION)],
        S::pkey_mprotect => &[Pointer, Size, Flags(memory::PROTECTION), Int],
        S::pkey_alloc => &[Hex, Flags(memory::KEY)],
        S::pkey_free => &[Int],
        S::mremap => &[
            Pointer,
            Size,
            Size,
            Flags(memory::REMAP),
            Rest(choose::mremap),
        ],
        S::madvise => &[Pointer, Size, Choice(memory::ADVICE)],
        S::msync => &[Pointer, Size, Flags(memory::SYNC)],
        S::mincore => &[Pointer, Size, Pointer],
        S::mlock2 => &[Pointer, Size, Flags(memory::LOCK)],
        S::mlockall => &[Flags(memory::LOCK_ALL)],
        S::munlockall => &[],
        S::memfd_create => &[Text, Flags(memory::MEMFD)],
        S::membarrier => &[Choice(memory::BARRIER), Unsigned],
        S::mbind => &[
            Pointer,
            Size,
            Choice(memory::POLICY),
            Pointer,
            Size,
            Flags(memory::BIND),
        ],
        S::set_mempolicy => &[Choice(memory::POLICY), Pointer, Size],
        S::get_mempolicy => &[With(choose::policy), Pointer, Size, Pointer, Hex],
        S::userfaultfd => &[Flags(file::OPEN_ONLY)],
        _ => return None,
    })
}

/// Calls on processes and threads.
fn processes(number: S) -> Option<&'static [Kind]> {
    const NONE: &[Kind] = &[];
    Some(match number {
        S::execve => &[Path, Strings, Environment],
        S::execveat => &[Directory, Path, Strings, Environment, Flags(file::AT)],
        S::fork | S::vfork | S::sched_yield => NONE,
        S::clone => &[With(choose::clone)],
        S::clone3 => &[With(choose::clone3), Size],
        S::exit | S::exit_group => &[Int],
        S::wait4 => &[
            Int,
            With(choose::wait_status),
            Flags(process::WAIT),
            With(choose::wait_usage),
        ],
        S::waitid => &[
            Choice(process::WAIT_FOR),
            Int,
            Out(structs::SIGNAL_INFORMATION),
            Flags(process::WAIT),
            Out(structs::USAGE),
        ],
        S::set_tid_address => &[Pointer],
        S::set_robust_list => &[Pointer, Size],
        S::get_robust_list => &[Int, Out(structs::ADDRESS), Out(structs::LONG)],
        S::rseq => &[Hex, Hex, Flags(process::RSEQ), Hex],
        S::futex => &[Pointer, With(choose::futex_name), Rest(choose::futex)],
        S::prctl => &[Choice(process::PRCTL), Rest(choose::prctl)],
        S::arch_prctl => &[Choice(process::ARCH), Rest(choose::arch_prctl)],
        S::personality => &[With(choose::personality)],
        S::unshare => &[Flags(process::UNSHARE)],
        S::setns => &[Int, Flags(process::UNSHARE)],
        S::seccomp => &[
            Choice(process::SECCOMP_OPERATION),
            Flags(process::SECCOMP),
            Pointer,
        ],
        S::sched_getaffinity => &[Int, Unsigned, OutProcessors],
        S::sched_setaffinity => &[Int, Unsigned, Processors(1)],
        S::sched_getscheduler => &[Int],
        S::sched_setscheduler => &[Int, Flags(process::POLICY_RESET), In(structs::INT)],
        S::sched_getparam => &[Int, Out(structs::INT)],
        S::sched_setparam => &[Int, In(structs::INT)],
        S::sched_get_priority_max | S::sched_get_priority_min => &[Choice(process::SCHEDULER)],
        S::sched_rr_get_interval => &[Int, Out(structs::TIMESPEC)],
        S::getpriority => &[Choice(process::PRIORITY), Int],
        S::setpriority => &[Choice(process::PRIORITY), Int, Int],
        S::getcpu => &[Out(structs::UNSIGNED), Out(structs::UNSIGNED), Pointer],
        S::pidfd_open => &[Int, Flags(process::PIDFD)],
        S::pidfd_getfd => &[Int, Int, Unsigned],
        _ => return None,
    })
}

/// Calls on signals.
fn signals(number: S) -> Option<&'static [Kind]> {
    Some(match number {
        S::rt_sigaction => &[
            Signal,
            In(structs::SIGNAL_ACTION),
            Out(structs::SIGNAL_ACTION),
            Size,
        ],
        S::rt_sigprocmask => &[
            Choice(process::SIGNAL_MASK),
            In(structs::SIGNAL_SET),
            Out(structs::SIGNAL_SET),
            Size,
        ],
        S::rt_sigpending => &[Out(structs::SIGNAL_SET), Size],
        S::rt_sigsuspend => &[In(structs::SIGNAL_SET), Size],
        S::rt_sigtimedwait => &[
            In(structs::SIGNAL_SET),
            Out(structs::SIGNAL_INFORMATION),
            In(structs::TIMESPEC),
            Size,
        ],
        S::rt_sigqueueinfo => &[Int, Signal, In(structs::SIGNAL_INFORMATION)],
        S::rt_tgsigqueueinfo => &[Int, Int, Signal, In(structs::SIGNAL_INFORMATION)],
        S::rt_sigreturn | S::pause | S::restart_syscall => &[],
        S::sigaltstack => &[In(structs::ALTERNATE_STACK), Out(structs::ALTERNATE_STACK)],
        S::kill | S::tkill => &[Int, Signal],
        S::tgkill => &[Int, Int, Signal],
        S::pidfd_send_signal => &[Int, Signal, In(structs::SIGNAL_INFORMATION), Unsigned],
        S::signalfd => &[Int, In(structs::SIGNAL_SET), Size],
        S::signalfd4 => &[Int, In(structs::SIGNAL_SET), Size, Flags(wait::SIGNALFD)],
        _ => return None,
    })
}

/// Ids of processes and users.
fn identity(number: S) -> Option<&'static [Kind]> {
    const NONE: &[Kind] = &[];
    Some(match number {
        S::getpid | S::getppid | S::gettid | S::getpgrp | S::setsid => NONE,
        S::getuid | S::geteuid | S::getgid | S::getegid => NONE,
        S::getpgid | S::getsid => &[Int],
        S::setpgid => &[Int, Int],
        S::setuid | S::setgid | S::setfsuid | S::setfsgid => &[Id],
        S::setreuid | S::setregid => &[Id, Id],
        S::setresuid | S::setresgid => &[Id, Id, Id],
        S::getresuid | S::getresgid => &[
            Out(structs::UNSIGNED),
            Out(structs::UNSIGNED),
            Out(structs::UNSIGNED),
        ],
        S::getgroups => &[Int, Returned(structs::ELEMENT)],
        S::setgroups => &[Int, InArray(structs::ELEMENT, 0)],
        S::capget => &[In(structs::CAPABILITY_HEADER), Out(structs::CAPABILITIES)],
        S::capset => &[In(structs::CAPABILITY_HEADER), In(structs::CAPABILITIES)],
        _ => return None,
    })
}

/// Clocks, sleeps and timers.
fn times(number: S) -> Option<&'static [Kind]> {
    Some(match number {
        S::time => &[Out(structs::SECONDS)],
        S::gettimeofday => &[Out(structs::TIMEVAL), Pointer],
        S::settimeofday => &[In(structs::TIMEVAL), Pointer],
        S::clock_gettime | S::clock_getres => &[Choice(process::CLOCK), Out(structs::TIMESPEC)],
        S::clock_settime => &[Choice(process::CLOCK), In(structs::TIMESPEC)],
        S::nanosleep => &[In(structs::TIMESPEC), With(choose::time_left)],
        S::clock_nanosleep => &[
            Choice(process::CLOCK),
            Flags(process::TIMER),
            In(structs::TIMESPEC),
            With(choose::time_left),
        ],
        S::times => &[Out(structs::CLOCK_TICKS)],
        S::alarm => &[Unsigned],
        S::getitimer => &[
            Choice(process::INTERVAL_TIMER),
            Out(structs::INTERVAL_SECONDS),
        ],
        S::setitimer => &[
            Choice(process::INTERVAL_TIMER),
            In(structs::INTERVAL_SECONDS),
            Out(structs::INTERVAL_SECONDS),
        ],
        S::timer_create => &[
            Choice(process::CLOCK),
            In(structs::TIMER_EVENT),
            Out(structs::INT),
        ],
        S::timer_settime => &[
            Int,
            Flags(process::TIMER),
            In(structs::INTERVAL),
            Out(structs::INTERVAL),
        ],
        S::timer_gettime => &[Int, Out(structs::INTERVAL)],
        S::timer_delete | S::timer_getoverrun => &[Int],
        S::timerfd_create => &[Choice(process::CLOCK), Flags(wait::TIMERFD)],
        S::timerfd_settime => &[
            Int,
            Flags(wait::TIMERFD_SET),
            In(structs::INTERVAL),
            Out(structs::INTERVAL),
        ],
        S::timerfd_gettime => &[Int, Out(structs::INTERVAL)],
        _ => return None,
    })
}

/// Waiting for several things at once.
fn waiting(number: S) -> Option<&'static [Kind]> {
    Some(match number {
        S::poll => &[InArray(structs::POLL, 1), Unsigned, Int],
        S::ppoll => &[
            InArray(structs::POLL, 1),
            Unsigned,
            In(structs::TIMESPEC),
            In(structs::SIGNAL_SET),
            Size,
        ],
        S::select => &[
            Int,
            Descriptors(0),
            Descriptors(0),
            Descriptors(0),
            In(structs::TIMEVAL),
        ],
        S::pselect6 => &[
            Int,
            Descriptors(0),
            Descriptors(0),
            Descriptors(0),
            In(structs::TIMESPEC),
            In(structs::SIGNAL_SET_AND_SIZE),
        ],
        S::epoll_create => &[Int],
        S::epoll_create1 => &[Flags(wait::EPOLL_CREATE)],
        S::epoll_ctl => &[
            Int,
            Choice(wait::EPOLL_CONTROL),
            Int,
            With(choose::epoll_event),
        ],
        S::epoll_wait => &[Int, Returned(structs::EPOLL_EVENT), Int, Int],
        S::epoll_pwait => &[
            Int,
            Returned(structs::EPOLL_EVENT),
            Int,
            Int,
            In(structs::SIGNAL_SET),
            Size,
        ],
        S::epoll_pwait2 => &[
            Int,
            Returned(structs::EPOLL_EVENT),
            Int,
            In(structs::TIMESPEC),
            In(structs::SIGNAL_SET),
            Size,
        ],
        S::eventfd => &[Unsigned],
        S::eventfd2 => &[Unsigned, Flags(wait::EVENTFD)],
        _ => return None,
    })
}

/// Calls on sockets.
fn sockets(number: S) -> Option<&'static [Kind]> {
    const PEER: &[Kind] = &[Int, OutAddress(2), In(structs::INT)];
    Some(match number {
        S::socket => &[
            Choice(socket::FAMILY),
            Flags(socket::TYPE),
            With(choose::protocol),
        ],
        S::socketpair => &[
            Choice(socket::FAMILY),
            Flags(socket::TYPE),
            With(choose::protocol),
            Out(structs::PAIR),
        ],
        S::bind | S::connect => &[Int, Address(2), Int],
        S::listen => &[Int, Int],
        S::accept | S::getsockname | S::getpeername => PEER,
        S::accept4 => &[Int, OutAddress(2), In(structs::INT), Flags(socket::ACCEPT)],
        S::sendto => &[
            Int,
            Bytes(2),
            Size,
            Flags(socket::MESSAGE),
            Address(5),
            Unsigned,
        ],
        S::recvfrom => &[
            Int,
            OutBytes,
            Size,
            Flags(socket::MESSAGE),
            OutAddress(5),
            In(structs::INT),
        ],
        S::sendmsg => &[Int, In(structs::MESSAGE), Flags(socket::MESSAGE)],
        S::recvmsg => &[Int, In(structs::MESSAGE_READ), Flags(socket::MESSAGE)],
        S::sendmmsg => &[
            Int,
            InArray(structs::MESSAGE_COUNTED, 2),
            Unsigned,
            Flags(socket::MESSAGE),
        ],
        S::recvmmsg => &[
            Int,
            Returned(structs::MESSAGE_COUNTED_READ),
            Unsigned,
            Flags(socket::MESSAGE),
            In(structs::TIMESPEC),
        ],
        S::shutdown => &[Int, Choice(socket::SHUTDOWN)],
        S::setsockopt => &[
            Int,
            Choice(socket::LEVEL),
            With(choose::option_name),
            With(choose::option),
            Int,
        ],
        S::getsockopt => &[
            Int,
            Choice(socket::LEVEL),
            With(choose::option_name),
            With(choose::option_read),
            In(structs::INT),
        ],
        _ => return None,
    })
}

/// The system and its limits.
fn system(number: S) -> Option<&'static [Kind]> {
    Some(match number {
        S::uname => &[Out(structs::SYSTEM_NAME)],
        S::sysinfo => &[Out(structs::SYSTEM_INFORMATION)],
        S::getrandom => &[OutRandom, Size, Flags(process::RANDOM)],
        S::getrusage => &[Choice(process::USAGE), Out(structs::USAGE)],
        S::getrlimit => &[Choice(process::RESOURCE), Out(structs::RESOURCE_LIMIT)],
        S::setrlimit => &[Choice(process::RESOURCE), In(structs::RESOURCE_LIMIT)],
        S::prlimit64 => &[
            Int,
            Choice(process::RESOURCE),
            In(structs::RESOURCE_LIMIT),
            Out(structs::RESOURCE_LIMIT),
        ],
        S::sethostname | S::setdomainname => &[Bytes(1), Size],
        S::io_uring_setup => &[Unsigned, Pointer],
        S::io_uring_enter => &[Int, Unsigned, Unsigned, Hex, Pointer, Size],
        S::io_uring_register => &[Unsigned, Unsigned, Pointer, Unsigned],
        S::process_vm_readv | S::process_vm_writev => &[Int, Pointer, Size, Pointer, Size, Hex],
        S::ptrace => &[Hex, Int, Pointer, Pointer],
        _ => return None,
    })
}
