use std::collections::BTreeMap;

use proptest::prelude::*;
use syscalls::Sysno as S;

use super::*;
use crate::line::LINE;

/// Memory that holds only what a test put there.
#[derive(Default)]
struct Cells(BTreeMap<u64, u8>);

impl Cells {
    fn put(mut self, address: u64, bytes: &[u8]) -> Self {
        self.0.extend((address..).zip(bytes.iter().copied()));
        self
    }
}

impl Memory for Cells {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        buffer.iter_mut().enumerate().all(|(offset, byte)| {
            let known = address
                .checked_add(offset as u64)
                .and_then(|address| self.0.get(&address));
            known.map(|known| *byte = *known).is_some()
        })
    }
}

/// Memory that can be read everywhere, with the same word over and over.
struct Filled([u8; 8]);

impl Memory for Filled {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        for (offset, byte) in buffer.iter_mut().enumerate() {
            *byte = self.0[(address.wrapping_add(offset as u64) % 8) as usize];
        }
        true
    }
}

fn call(number: S, arguments: &[u64], result: Option<i64>) -> Call {
    let mut registers = [0; 6];
    registers[..arguments.len()].copy_from_slice(arguments);
    Call {
        number: number as u64,
        arguments: registers,
        result,
    }
}

fn number(text: &str) -> u64 {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .unwrap()
}

fn bytes(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The line strace printed, the call, and the memory of one recorded call.
fn golden(text: &str) -> (&str, Call, Cells) {
    let mut lines = text.lines();
    let line = lines
        .next()
        .and_then(|line| line.strip_prefix("strace "))
        .unwrap();
    let words: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let arguments: Vec<u64> = words[2..8].iter().map(|word| number(word)).collect();
    let call = Call {
        number: number(words[1]),
        arguments: arguments.try_into().unwrap(),
        result: words[8].parse().ok(),
    };
    let memory = lines.fold(Cells::default(), |memory, line| {
        let words: Vec<&str> = line.split(' ').collect();
        memory.put(number(words[1]), &bytes(words[2]))
    });
    (line, call, memory)
}

#[test]
fn prints_what_strace_printed() {
    let text = include_str!("goldens.txt");
    let recorded: Vec<&str> = text
        .split("\n\n")
        .filter(|part| part.starts_with("strace "))
        .collect();
    assert!(
        recorded.len() >= 60,
        "only {} recorded calls",
        recorded.len()
    );
    for part in recorded {
        let (line, call, memory) = golden(part);
        assert_eq!(format(&call, &memory), line);
    }
}

#[test]
fn what_strace_knew_before_the_call_prints_as_the_kernel_left_it() {
    // strace: `[110 => 2]`.
    let memory = Cells::default()
        .put(0x1000, &[1, 0])
        .put(0x2000, &2u32.to_le_bytes());
    let line = format(
        &call(S::getsockname, &[3, 0x1000, 0x2000], Some(0)),
        &memory,
    );
    assert_eq!(line, "getsockname(3, {sa_family=AF_UNIX}, [2]) = 0");
}

#[test]
fn an_interrupted_sleep_says_what_is_left() {
    let time = |seconds: u64| [seconds.to_le_bytes(), 5u64.to_le_bytes()].concat();
    let memory = Cells::default().put(0x1000, &time(9)).put(0x2000, &time(4));
    let interrupted = call(S::nanosleep, &[0x1000, 0x2000], Some(-516));
    assert_eq!(
        format(&interrupted, &memory),
        "nanosleep({tv_sec=9, tv_nsec=5}, {tv_sec=4, tv_nsec=5}) = ? ERESTART_RESTARTBLOCK (Interrupted by signal)"
    );
}

#[test]
fn calls_that_do_not_return_end_in_a_question_mark() {
    assert_eq!(
        format(&call(S::exit_group, &[3], None), &Cells::default()),
        "exit_group(3) = ?"
    );
    assert_eq!(
        format(&call(S::read, &[0, 0x1000, 5], None), &Cells::default()),
        "read(0, 0x1000, 5) = ?"
    );
}

#[test]
fn unknown_calls_and_errors_print_as_numbers() {
    let unknown = Call {
        number: 500,
        arguments: [1, 0, 3, 4, 5, 6],
        result: Some(-4000),
    };
    assert_eq!(
        format(&unknown, &Cells::default()),
        "syscall_0x1f4(0x1, 0, 0x3, 0x4, 0x5, 0x6) = -1 (errno 4000)"
    );
    let huge = Call {
        number: u64::MAX,
        arguments: [0; 6],
        result: Some(-38),
    };
    assert!(format(&huge, &Cells::default()).starts_with("syscall_0xffffffffffffffff(0, 0"));
}

#[test]
fn a_path_may_end_where_memory_ends() {
    let memory = Cells::default().put(0x1ffb, b"/etc\0");
    assert_eq!(
        format(&call(S::chdir, &[0x1ffb], Some(0)), &memory),
        "chdir(\"/etc\") = 0"
    );
    let memory = Cells::default().put(0x1ffc, b"/etc");
    assert_eq!(
        format(&call(S::chdir, &[0x1ffc], Some(-14)), &memory),
        "chdir(0x1ffc) = -1 EFAULT (Bad address)"
    );
}

#[test]
fn octal_escapes_are_padded_only_before_a_digit() {
    assert_eq!(line::quote(b"\x011\x01a\0"), "\"\\0011\\1a\\0\"");
}

#[test]
fn arrays_stop_after_32_elements_and_at_memory_that_cannot_be_read() {
    let groups = call(S::setgroups, &[100, 0x1000], Some(0));
    let line = format(&groups, &Filled([7, 0, 0, 0, 7, 0, 0, 0]));
    assert_eq!(line.matches("7, ").count(), 32);
    assert!(line.ends_with("7, ...]) = 0"), "{line}");
    let memory = Cells::default().put(0x1000, &5u32.to_le_bytes());
    assert_eq!(
        format(&groups, &memory),
        "setgroups(100, [5, ... /* 0x1004 */]) = 0"
    );
}

#[test]
fn a_line_is_bounded_and_keeps_its_result() {
    // A path of 4,095 bytes that each print as four characters.
    let line = format(&call(S::open, &[0x1000, 0], Some(-36)), &Filled([0xff; 8]));
    assert!(line.len() <= LINE);
    assert!(
        line.ends_with("...) = -1 ENAMETOOLONG (File name too long)"),
        "{line}"
    );
}

#[test]
fn hostile_lists_end() {
    // Directory entries of no length; arrays of pointers without an end.
    let listing = format(
        &call(S::getdents64, &[3, 0x1000, 4096], Some(i64::MAX)),
        &Filled([0; 8]),
    );
    assert_eq!(
        listing,
        format!("getdents64(3, 0x1000 /* 0 entries */, 4096) = {}", i64::MAX)
    );
    let endless = format(
        &call(S::execve, &[0, 0x1000, 0x1000], Some(-2)),
        &Filled([b'a'; 8]),
    );
    assert!(endless.contains("/* 4096 vars, ... */"), "{endless}");
}

#[test]
fn moments_follow_the_calendar() {
    for (seconds, moment) in [
        (0, "1970-01-01T00:00:00+0000"),
        (-1, "1969-12-31T23:59:59+0000"),
        (951_782_400, "2000-02-29T00:00:00+0000"),
        (4_107_542_400, "2100-03-01T00:00:00+0000"),
        (253_402_300_799, "9999-12-31T23:59:59+0000"),
        (i64::MAX, "?"),
    ] {
        assert_eq!(structs::moment(seconds, 0, 9), moment);
    }
}

#[test]
fn names_numbers_and_errors() {
    assert_eq!(name(0), Some("read"));
    assert_eq!(name(435), Some("clone3"));
    assert_eq!(name(1000), None);
    assert_eq!(
        errno(2),
        Some(Errno {
            name: "ENOENT",
            message: "No such file or directory"
        })
    );
    assert_eq!(errno(11).map(|error| error.name), Some("EAGAIN"));
    assert_eq!((errno(0), errno(-2), errno(41)), (None, None, None));
}

/// What CPython, coreutils, busybox, perl, sqlite3, tar, xz, Node and Go programs call.
#[test]
fn common_calls_are_decoded() {
    let common = "read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction \
        rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield mremap msync \
        mincore madvise dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile socket connect accept sendto \
        recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone \
        fork vfork execve exit wait4 kill uname fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir \
        fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday \
        getrlimit getrusage sysinfo times getuid getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid \
        getgroups setgroups setresuid getresuid setresgid getresgid getpgid getsid rt_sigpending rt_sigtimedwait \
        rt_sigsuspend sigaltstack utime mknod personality statfs fstatfs getpriority setpriority prctl arch_prctl \
        setrlimit chroot sync mount gettid tkill time futex sched_setaffinity sched_getaffinity epoll_create \
        getdents64 set_tid_address fadvise64 clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl \
        tgkill utimes mbind waitid openat mkdirat mknodat fchownat newfstatat unlinkat renameat linkat symlinkat \
        readlinkat fchmodat faccessat pselect6 ppoll set_robust_list get_robust_list splice utimensat epoll_pwait \
        timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 \
        pipe2 inotify_init1 preadv pwritev recvmmsg prlimit64 syncfs sendmmsg getcpu renameat2 getrandom memfd_create \
        execveat membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_alloc statx rseq pidfd_open clone3 close_range \
        openat2 faccessat2 epoll_pwait2";
    for name in common.split_whitespace() {
        let number: S = name
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no syscall"));
        assert!(table::arguments(number).is_some(), "{name} is not decoded");
    }
}

#[test]
fn every_decoded_call_takes_at_most_six_arguments() {
    for number in S::iter() {
        assert!(
            table::arguments(number).unwrap_or_default().len() <= 6,
            "{number}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever the registers and the memory hold, a line comes back, short and printable.
    #[test]
    fn any_call_gives_a_short_printable_line(
        number in 0u64..470,
        arguments in prop::array::uniform6(prop_oneof![
            any::<u64>(), 0u64..64, Just(u64::MAX), (0u64..0x1_0000).prop_map(|low| 0x7fff_0000 + low),
            (0u32..32).prop_map(|bit| 1 << bit),
        ]),
        result in prop_oneof![Just(None), (-4200i64..4200).prop_map(Some), any::<i64>().prop_map(Some)],
        word in any::<[u8; 8]>(),
    ) {
        let call = Call { number, arguments, result };
        for memory in [&Filled(word) as &dyn Memory, &Filled([word[0], 0, 0, 0, word[1], 0, 0, 0]), &Cells::default()] {
            let line = format(&call, memory);
            prop_assert!(line.len() <= LINE, "{}", line);
            prop_assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{}", line);
            prop_assert!(line.contains(") = "), "{}", line);
        }
    }
}
