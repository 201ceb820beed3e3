//! What the syscalls of a sequence are, and the memory that they point into.

use std::ops::Range;
use std::sync::LazyLock;

use agentrt_linux::dispatch;
use agentrt_linux::mm::{STACK_TOP, TRANSFER_MAX};
use agentrt_shim_abi::{PAGE_SIZE, RING0_BASE, SHIM_BASE, USER_END, USER_START};
use proptest::prelude::*;
use proptest::sample::select;

use crate::elf;

/// Memory that calls point into: pages to read and write, with nothing behind them.
pub const ARENA: u64 = 0x10_0000_0000;
pub const ARENA_SIZE: u64 = 16 * PAGE_SIZE;
/// Pieces of the arena whose contents are chosen.
pub const SLOTS: u64 = 32;
pub const SLOT_SIZE: u64 = ARENA_SIZE / SLOTS;
/// Which slots hold what, most often; what calls write goes to the last ones.
const PATHS: Range<u64> = 0..12;
const NAMES: Range<u64> = 12..14;
const BUFFERS: Range<u64> = 14..18;
const TIMES: Range<u64> = 18..20;
const POINTERS: Range<u64> = 20..22;
const WORDS: Range<u64> = 22..SLOTS;
/// Pages of other kinds, each with nothing around it: to be read only, not at all, executed, of a
/// file, of a volume's file and shared.
pub const OTHERS: u64 = ARENA + 0x10_0000;
pub const OTHER_STRIDE: u64 = 4 * PAGE_SIZE;

/// `AT_FDCWD` in a register.
const AT_FDCWD: u64 = libc::AT_FDCWD as i64 as u64;

/// Calls and what they expect, a letter for each argument as [`expected`] reads it.
const SHAPES: &[(i64, &str)] = &[
    (libc::SYS_read, "fbn"),
    (libc::SYS_write, "fbn"),
    (libc::SYS_pread64, "fbnu"),
    (libc::SYS_pwrite64, "fbnu"),
    (libc::SYS_readv, "fvx"),
    (libc::SYS_writev, "fvx"),
    (libc::SYS_preadv2, "fvxu_x"),
    (libc::SYS_pwritev2, "fvxu_x"),
    (libc::SYS_sendfile, "ffbn"),
    (libc::SYS_copy_file_range, "fbfbnx"),
    (libc::SYS_open, "pom"),
    (libc::SYS_openat, "dpom"),
    (libc::SYS_openat2, "dpb2"),
    (libc::SYS_creat, "pm"),
    (libc::SYS_close, "f"),
    (libc::SYS_close_range, "ffx"),
    (libc::SYS_dup2, "ff"),
    (libc::SYS_fcntl, "fxf"),
    (libc::SYS_ioctl, "fxb"),
    (libc::SYS_lseek, "fux"),
    (libc::SYS_getdents64, "fbn"),
    (libc::SYS_newfstatat, "dpbx"),
    (libc::SYS_statx, "dpxxb"),
    (libc::SYS_stat, "pb"),
    (libc::SYS_statfs, "pb"),
    (libc::SYS_faccessat2, "dpxx"),
    (libc::SYS_readlinkat, "dpbn"),
    (libc::SYS_chdir, "p"),
    (libc::SYS_fchdir, "f"),
    (libc::SYS_getcwd, "bn"),
    (libc::SYS_mkdirat, "dpm"),
    (libc::SYS_mknodat, "dpmx"),
    (libc::SYS_symlinkat, "pdp"),
    (libc::SYS_linkat, "dpdpx"),
    (libc::SYS_unlinkat, "dpx"),
    (libc::SYS_rmdir, "p"),
    (libc::SYS_unlink, "p"),
    (libc::SYS_rename, "pp"),
    (libc::SYS_renameat2, "dpdpx"),
    (libc::SYS_truncate, "pu"),
    (libc::SYS_ftruncate, "fu"),
    (libc::SYS_fallocate, "fxun"),
    (libc::SYS_fchmodat, "dpm"),
    (libc::SYS_fchownat, "dpxxx"),
    (libc::SYS_utimensat, "dptx"),
    (libc::SYS_setxattr, "psbnx"),
    (libc::SYS_getxattr, "psbn"),
    (libc::SYS_listxattr, "pbn"),
    (libc::SYS_removexattr, "ps"),
    (libc::SYS_memfd_create, "px"),
    (libc::SYS_pipe2, "bx"),
    (libc::SYS_poll, "bxx"),
    (libc::SYS_ppoll, "bxtb"),
    (libc::SYS_select, "xbbbt"),
    (libc::SYS_mmap, "azrgfu"),
    (libc::SYS_mmap, "azrgfu"),
    (libc::SYS_munmap, "az"),
    (libc::SYS_mprotect, "azr"),
    (libc::SYS_mremap, "azzya"),
    (libc::SYS_madvise, "azx"),
    (libc::SYS_msync, "azx"),
    (libc::SYS_mincore, "azb"),
    (libc::SYS_brk, "_"),
    (libc::SYS_rt_sigaction, "xbb8"),
    (libc::SYS_rt_sigprocmask, "xbb8"),
    (libc::SYS_sigaltstack, "bb"),
    (libc::SYS_nanosleep, "tb"),
    (libc::SYS_clock_nanosleep, "xxtb"),
    (libc::SYS_futex, "bxxt"),
    (libc::SYS_getrandom, "bnx"),
    (libc::SYS_prctl, "xb"),
    (libc::SYS_arch_prctl, "xb"),
    (libc::SYS_prlimit64, "xxbb"),
    (libc::SYS_setgroups, "xb"),
    (libc::SYS_execve, "pqq"),
    (libc::SYS_execveat, "dpqqx"),
];

/// The numbers that have a handler.
static SERVED: LazyLock<Vec<u64>> = LazyLock::new(|| {
    (0..1024)
        .filter(|&number| dispatch::handler(number).is_some())
        .collect()
});

#[derive(Clone)]
pub enum Step {
    /// Fills a slot of the arena.
    Store(u64, Vec<u8>),
    /// Makes a syscall.
    Call(u64, [u64; 6]),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Store(slot, bytes) => {
                write!(
                    f,
                    "store {:#x} {:?}",
                    ARENA + slot * SLOT_SIZE,
                    bytes.escape_ascii().to_string()
                )
            }
            Step::Call(number, arguments) => {
                let name = agentrt_strace::name(*number).unwrap_or("?");
                write!(f, "{name}[{number}]{arguments:#x?}")
            }
        }
    }
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0..SLOTS).prop_flat_map(|slot| contents(slot).prop_map(move |bytes| Step::Store(slot, bytes))),
        6 => select(SHAPES).prop_flat_map(|(number, shape)| {
            arguments(shape).prop_map(move |arguments| Step::Call(number as u64, arguments))
        }),
        2 => (number(), prop::array::uniform6(argument()))
            .prop_map(|(number, arguments)| Step::Call(number, arguments)),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        30 => select(&SERVED[..]),
        1 => 0..1024_u64,
        1 => any::<u64>(),
    ]
}

/// Arguments of a shape, one letter each: most are what the call expects, some are anything.
fn arguments(shape: &'static str) -> impl Strategy<Value = [u64; 6]> {
    let mut strategies: Vec<BoxedStrategy<u64>> = Vec::new();
    for letter in shape.chars().chain(std::iter::repeat('_')).take(6) {
        let expected = expected(letter);
        strategies.push(prop_oneof![12 => expected, 1 => argument()].boxed());
    }
    strategies.prop_map(|values| std::array::from_fn(|index| values[index]))
}

/// What a call expects that has `letter` in its shape.
fn expected(letter: char) -> BoxedStrategy<u64> {
    let slot = |slots: Range<u64>| slots.prop_map(|slot| ARENA + slot * SLOT_SIZE);
    match letter {
        'p' => slot(PATHS).boxed(),
        'd' => prop_oneof![3 => Just(AT_FDCWD), 1 => 0..10_u64].boxed(),
        'f' => prop_oneof![4 => 0..16_u64, 1 => 0..64_u64].boxed(),
        'v' => slot(BUFFERS).boxed(),
        't' => prop_oneof![3 => slot(TIMES), 1 => Just(0)].boxed(),
        'q' => prop_oneof![2 => slot(POINTERS), 1 => Just(0)].boxed(),
        'b' => prop_oneof![4 => slot(WORDS), 1 => slot(0..SLOTS), 1 => address()].boxed(),
        'n' => prop_oneof![4 => 0..300_u64, 1 => length()].boxed(),
        'o' => open_flags().boxed(),
        'm' => prop_oneof![3 => 0..0o1000_u64, 1 => 0..0o20_0000_u64].boxed(),
        'a' => prop_oneof![6 => page(), 1 => Just(0), 1 => address()].boxed(),
        'z' => prop_oneof![6 => (1..9_u64).prop_map(|pages| pages * PAGE_SIZE), 2 => length()].boxed(),
        'r' => select(&[0, 1, 3, 3, 5, 7_u64][..]).boxed(),
        'g' => select(&[0x22, 0x32, 0x21, 0x31, 0x02, 0x12, 0x01, 0x11, 0x4022, 0x8032, 0x10_0022][..]).boxed(),
        'u' => select(&[0, 0, 0, 4096, 8192, 1 << 20, 1 << 40, i64::MAX as u64 & !0xfff][..]).boxed(),
        'x' => prop_oneof![4 => Just(0), 4 => 0..8_u64, 1 => (0..32_u32).prop_map(|bit| 1 << bit), 1 => flags()].boxed(),
        'y' => select(&[0, 1, 1, 3, 3_u64][..]).boxed(),
        's' => prop_oneof![4 => slot(NAMES), 1 => slot(PATHS)].boxed(),
        '8' => Just(8).boxed(),
        '2' => Just(24).boxed(),
        _ => argument().boxed(),
    }
}

fn open_flags() -> impl Strategy<Value = u64> {
    const FLAGS: [i32; 8] = [
        libc::O_CREAT,
        libc::O_TRUNC,
        libc::O_APPEND,
        libc::O_DIRECTORY,
        libc::O_PATH,
        libc::O_NOFOLLOW,
        libc::O_EXCL,
        libc::O_CLOEXEC,
    ];
    (0..3_u64, prop::collection::vec(select(&FLAGS[..]), 0..3)).prop_map(|(access, flags)| {
        flags
            .into_iter()
            .fold(access, |all, flag| all | flag as u64)
    })
}

/// A page to map things at: one of the others, or near them.
fn page() -> impl Strategy<Value = u64> {
    (0..40_u64).prop_map(|page| OTHERS + page * PAGE_SIZE)
}

fn argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..20_u64,
        2 => select(&[AT_FDCWD, AT_FDCWD & 0xffff_ffff, u64::MAX, 0xffff_ffff][..]),
        6 => (0..SLOTS).prop_map(|slot| ARENA + slot * SLOT_SIZE),
        3 => address(),
        2 => length(),
        2 => flags(),
        1 => any::<u64>(),
    ]
}

fn address() -> impl Strategy<Value = u64> {
    let around = |place: u64| (place - 2 * PAGE_SIZE)..(place + 2 * PAGE_SIZE);
    let pages = |range: Range<u64>| {
        (range.start / PAGE_SIZE..range.end / PAGE_SIZE).prop_map(|page| page * PAGE_SIZE)
    };
    prop_oneof![
        4 => ARENA..ARENA + ARENA_SIZE,
        4 => ARENA + ARENA_SIZE - 64..ARENA + ARENA_SIZE + 8,
        4 => pages(ARENA..ARENA + 2 * ARENA_SIZE),
        4 => (0..6_u64, 0..PAGE_SIZE).prop_map(|(kind, at)| OTHERS + kind * OTHER_STRIDE + at),
        2 => (0..8_u64).prop_map(|kind| OTHERS + kind * OTHER_STRIDE),
        1 => around(elf::BASE + 2 * PAGE_SIZE),
        1 => around(elf::DATA),
        1 => around(STACK_TOP),
        1 => pages(STACK_TOP - (16 << 20)..STACK_TOP),
        1 => around(SHIM_BASE),
        1 => around(SHIM_BASE + 17 * PAGE_SIZE),
        1 => around(USER_END),
        1 => around(RING0_BASE),
        1 => around(USER_START),
        1 => 0..USER_START,
        1 => any::<u16>().prop_map(|distance| u64::MAX - u64::from(distance)),
        1 => any::<u16>().prop_map(|distance| (1 << 63) + u64::from(distance) - (1 << 15)),
    ]
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..64_u32, -1..2_i64).prop_map(|(bit, off)| (1_u64 << bit).wrapping_add_signed(off)),
        (0..40_u64).prop_map(|pages| pages * PAGE_SIZE),
        select(
            &[
                TRANSFER_MAX as u64,
                1 << 30,
                1 << 40,
                1 << 46,
                USER_END,
                i64::MAX as u64
            ][..]
        ),
    ]
}

fn flags() -> impl Strategy<Value = u64> {
    /// Flags and codes that belong to some call: mmap, open, statx, fallocate, ioctl, renameat2.
    const KNOWN: [u64; 22] = [
        0x22, 0x32, 0x11, 0x12, 0x2, 0x1, 0x4022, 0x10_0032, 0x8022, 0x242, 0x441, 0x8_0000,
        0x20_0000, 0x1_0000, 0x1000, 0x100, 0x5401, 0x541b, 0x5421, 0x7ff, 0x3, 0x41_0002,
    ];
    prop_oneof![
        3 => select(&KNOWN[..]),
        1 => (0..32_u32, 0..32_u32).prop_map(|(a, b)| 1 << a | 1 << b),
        1 => any::<u32>().prop_map(u64::from),
    ]
}

/// What a slot holds, most often: a path, buffers, a time, pointers, words; anything else at times.
pub fn contents(slot: u64) -> BoxedStrategy<Vec<u8>> {
    let words = |words: Vec<u64>| {
        words
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect::<Vec<_>>()
    };
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    let usual = if PATHS.contains(&slot) {
        path().boxed()
    } else if NAMES.contains(&slot) {
        select(&["user.a", "user.b", "trusted.a", "security.x", "user.", ""][..])
            .prop_map(|name| format!("{name}\0").into_bytes())
            .boxed()
    } else if BUFFERS.contains(&slot) {
        prop::collection::vec((slot_or_address(), small_or_length()), 0..16)
            .prop_map(move |pairs| words(pairs.into_iter().flat_map(|(a, b)| [a, b]).collect()))
            .boxed()
    } else if TIMES.contains(&slot) {
        (0..3_u64, 0..1_000_000_000_u64)
            .prop_map(move |(s, ns)| words(vec![s, ns, s, ns]))
            .boxed()
    } else if POINTERS.contains(&slot) {
        let pointers = prop::collection::vec(slot_or_address(), 0..8);
        pointers
            .prop_map(move |pointers| words([pointers, vec![0]].concat()))
            .boxed()
    } else {
        prop_oneof![
            prop::collection::vec(argument(), 0..16).prop_map(words),
            bytes(),
        ]
        .boxed()
    };
    prop_oneof![12 => usual, 1 => bytes()].boxed()
}

fn slot_or_address() -> impl Strategy<Value = u64> {
    prop_oneof![3 => (0..SLOTS).prop_map(|slot| ARENA + slot * SLOT_SIZE), 1 => address()]
}

fn small_or_length() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..300_u64, 1 => length()]
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: [&str; 40] = [
        "", ".", "..", "/", "file", "dir", "sub", "link", "loop", "up", "far", "fifo", "volume",
        "fixed", "program", "script", "new", "other", "proc", "self", "fd", "0", "3", "1", "maps",
        "status", "exe", "cwd", "root", "environ", "mem", "dev", "null", "zero", "urandom", "shm",
        "sys", "\u{ff}", "x\n", "nothing",
    ];
    const PATHS: [&str; 26] = [
        "/",
        ".",
        "/file",
        "file",
        "/dir",
        "/dir/file",
        "/dir/sub",
        "/link",
        "/up",
        "/far",
        "/fifo",
        "/volume",
        "/volume/file",
        "/volume/dir",
        "/volume/far",
        "/volume/new",
        "/fixed/file",
        "/program",
        "/script",
        "/new",
        "/new/file",
        "/proc/self/fd/3",
        "/proc/self/exe",
        "/proc/self/maps",
        "/dev/null",
        "/dev/zero",
    ];
    let terminated = |path: &str| format!("{path}\0").into_bytes();
    let parts = prop::collection::vec(select(&PARTS[..]), 1..6);
    let joined = (parts, any::<bool>()).prop_map(move |(parts, absolute)| {
        let start = if absolute { "/" } else { "" };
        terminated(&format!("{start}{}", parts.join("/")))
    });
    prop_oneof![
        20 => select(&PATHS[..]).prop_map(terminated),
        10 => joined,
        1 => (1..500_usize).prop_map(|length| [vec![b'n'; length], vec![0]].concat()),
        1 => (1..200_usize).prop_map(|count| ["../".repeat(count), "\0".into()].concat().into_bytes()),
    ]
}
