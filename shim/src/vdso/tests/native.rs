//! Calls the functions in this very process, over a time page of the test's own.

use std::arch::asm;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agentrt_shim_abi::{
    ClockMode, ENTRY_PATCHED, MULTIPLIER_SHIFT, PAGE_SIZE, TIME_PAGE, TimePage, VDSO_BASE,
};

use super::object::Object;

const SIZE: usize = (VDSO_BASE + PAGE_SIZE - ENTRY_PATCHED) as usize;

/// mov %rcx,%r8; syscall; jmp *%r8: what a forwarding shim does, for a process.
const SHIM: [u8; 8] = *b"\x49\x89\xc8\x0f\x05\x41\xff\xe0";

type ClockFunction = unsafe extern "C" fn(i32, *mut libc::timespec) -> i32;
type DayFunction = unsafe extern "C" fn(*mut libc::timeval, *mut [i32; 2]) -> i32;
type TimeFunction = unsafe extern "C" fn(*mut i64) -> i64;
type CpuFunction = unsafe extern "C" fn(*mut u32, *mut u32, *mut u8) -> i32;

/// Shim, time page and vDSO at the distances that they have in a guest.
struct Mapped {
    base: *mut u8,
}

// SAFETY: the memory is written only through volatile stores to the time page, and read only by
// the vDSO, which is made to be read while that happens.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new() -> Mapped {
        let (read, write, execute) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping anywhere harms nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), SIZE, read | write, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base.cast::<u8>();
        let vdso = super::super::image();
        // SAFETY: both copies end inside the new mapping, and the pages that are made executable
        // are those that were filled.
        unsafe {
            base.copy_from(SHIM.as_ptr(), SHIM.len());
            let vdso_page = base.add((VDSO_BASE - ENTRY_PATCHED) as usize);
            vdso_page.copy_from(vdso.as_ptr(), vdso.len());
            for page in [base, vdso_page] {
                let done = libc::mprotect(page.cast(), PAGE_SIZE as usize, read | execute);
                assert_eq!(done, 0);
            }
        }
        Mapped { base }
    }

    fn set(&self, page: TimePage) {
        let place = self.base.wrapping_add((TIME_PAGE - ENTRY_PATCHED) as usize);
        let place = place.cast::<TimePage>();
        // SAFETY: the time page is inside the mapping, writable, aligned, and written by one thread
        // at a time. The processor keeps stores in order, and volatile keeps the compiler from
        // changing it.
        unsafe {
            let sequence = (&raw const (*place).sequence).read_volatile();
            (&raw mut (*place).sequence).write_volatile(sequence.wrapping_add(1));
            (&raw mut (*place).mode).write_volatile(page.mode);
            (&raw mut (*place).tsc).write_volatile(page.tsc);
            (&raw mut (*place).multiplier).write_volatile(page.multiplier);
            (&raw mut (*place).monotonic).write_volatile(page.monotonic);
            (&raw mut (*place).realtime).write_volatile(page.realtime);
            (&raw mut (*place).sequence).write_volatile(sequence.wrapping_add(2));
        }
    }

    fn function(&self, name: &str) -> *const u8 {
        let object = Object::parse(super::super::image());
        let symbol = object.find(name, "LINUX_2.6").unwrap();
        self.base
            .wrapping_add((VDSO_BASE - ENTRY_PATCHED + symbol.value) as usize)
    }

    fn clock_function(&self, name: &str) -> ClockFunction {
        // SAFETY: the functions by these names have this C signature.
        unsafe { transmute::<*const u8, ClockFunction>(self.function(name)) }
    }

    fn clock(&self, clock: i32) -> u64 {
        read(self.clock_function("__vdso_clock_gettime"), clock)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.base.cast(), SIZE) };
    }
}

fn read(function: ClockFunction, clock: i32) -> u64 {
    let mut time = libc::timespec {
        tv_sec: -1,
        tv_nsec: -1,
    };
    // SAFETY: the function writes a timespec to the pointer that it is given.
    assert_eq!(unsafe { function(clock, &raw mut time) }, 0);
    assert!((0..1_000_000_000).contains(&time.tv_nsec));
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn host(clock: i32) -> u64 {
    read(libc::clock_gettime, clock)
}

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A page that tells the host's time.
fn calibrated() -> TimePage {
    let (first_tsc, first) = (tsc(), host(libc::CLOCK_MONOTONIC));
    thread::sleep(Duration::from_millis(20));
    let (tsc, monotonic) = (tsc(), host(libc::CLOCK_MONOTONIC));
    let ratio = (u128::from(monotonic - first) << MULTIPLIER_SHIFT) / u128::from(tsc - first_tsc);
    TimePage {
        sequence: 0,
        mode: ClockMode::Tsc as u32,
        tsc,
        multiplier: ratio as u64,
        monotonic,
        realtime: host(libc::CLOCK_REALTIME),
    }
}

/// Fails unless the vDSO's answer lies between two of the host's, give or take what calibrating for
/// 20 ms on a busy machine errs.
fn assert_near(mapped: &Mapped, clock: i32, same_as: i32) {
    const TOLERANCE: u64 = 2_000_000;
    let (before, time, after) = (host(same_as), mapped.clock(clock), host(same_as));
    let allowed = before - TOLERANCE..after + TOLERANCE;
    assert!(
        allowed.contains(&time),
        "clock {clock}: {time}, not in {allowed:?}"
    );
}

#[test]
fn clocks_tell_the_host_s_time() {
    let mapped = Mapped::new();
    mapped.set(calibrated());
    for clock in [
        libc::CLOCK_MONOTONIC,
        libc::CLOCK_MONOTONIC_RAW,
        libc::CLOCK_MONOTONIC_COARSE,
        libc::CLOCK_BOOTTIME,
    ] {
        assert_near(&mapped, clock, libc::CLOCK_MONOTONIC);
    }
    for clock in [
        libc::CLOCK_REALTIME,
        libc::CLOCK_REALTIME_COARSE,
        libc::CLOCK_TAI,
    ] {
        assert_near(&mapped, clock, libc::CLOCK_REALTIME);
    }
}

#[test]
fn a_million_reads_never_go_back() {
    let mapped = Mapped::new();
    mapped.set(calibrated());
    let function = mapped.clock_function("clock_gettime");
    let mut last = 0;
    for _ in 0..1_000_000 {
        let now = read(function, libc::CLOCK_MONOTONIC);
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
}

#[test]
fn the_three_forms_of_the_time_of_day_agree() {
    let mapped = Mapped::new();
    mapped.set(calibrated());
    let mut day = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut zone = [-1; 2];
    let mut stored = 0;
    // SAFETY: the functions by these names have these C signatures, and take these pointers or
    // null.
    let seconds = unsafe {
        let gettimeofday =
            transmute::<*const u8, DayFunction>(mapped.function("__vdso_gettimeofday"));
        assert_eq!(gettimeofday(&raw mut day, ptr::null_mut()), 0);
        assert_eq!(gettimeofday(ptr::null_mut(), &raw mut zone), 0);
        let time = transmute::<*const u8, TimeFunction>(mapped.function("__vdso_time"));
        assert!(time(ptr::null_mut()) >= day.tv_sec);
        time(&raw mut stored)
    };
    assert_eq!((zone, stored), ([0, 0], seconds));
    assert!((0..1_000_000).contains(&day.tv_usec));
    let microseconds = day.tv_sec as u64 * 1_000_000 + day.tv_usec as u64;
    let later = mapped.clock(libc::CLOCK_REALTIME) / 1000;
    assert!((microseconds..microseconds + 1_000_000).contains(&later));
    assert!((seconds as u64..=seconds as u64 + 1).contains(&(later / 1_000_000)));
}

#[test]
fn what_the_page_cannot_tell_is_a_syscall() {
    let mapped = Mapped::new();
    // The page is empty: everything.
    assert_near(&mapped, libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC);
    assert_near(&mapped, libc::CLOCK_REALTIME, libc::CLOCK_REALTIME);
    mapped.set(calibrated());
    for clock in [
        libc::CLOCK_PROCESS_CPUTIME_ID,
        libc::CLOCK_THREAD_CPUTIME_ID,
    ] {
        let (before, used, after) = (host(clock), mapped.clock(clock), host(clock));
        assert!((before..=after).contains(&used));
    }
    for name in ["clock_gettime", "clock_getres"] {
        let function = mapped.clock_function(name);
        for clock in [31, 32, 64, 1000, i32::MAX] {
            let mut time = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: as in `read`; with a number that is no clock it fails.
            let result = unsafe { function(clock, &raw mut time) };
            assert_eq!(result, -libc::EINVAL, "{name}({clock})");
        }
    }
}

#[test]
fn resolution_and_processor() {
    let mapped = Mapped::new();
    let getres = mapped.clock_function("__vdso_clock_getres");
    for clock in [
        libc::CLOCK_REALTIME,
        libc::CLOCK_MONOTONIC,
        libc::CLOCK_BOOTTIME,
    ] {
        assert_eq!(read(getres, clock), 1);
        // SAFETY: a null pointer only asks whether there is such a clock.
        assert_eq!(unsafe { getres(clock, ptr::null_mut()) }, 0);
    }
    let (mut cpu, mut node) = (9, 9);
    let nothing = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the function has this C signature and takes these pointers or null.
    unsafe {
        let getcpu = transmute::<*const u8, CpuFunction>(mapped.function("__vdso_getcpu"));
        assert_eq!(getcpu(&raw mut cpu, &raw mut node, ptr::null_mut()), 0);
        assert_eq!(getcpu(nothing.0, nothing.1, ptr::null_mut()), 0);
    }
    assert_eq!((cpu, node), (0, 0));
}

#[test]
fn a_read_during_a_change_begins_anew() {
    let mapped = Mapped::new();
    let first = calibrated();
    let ticks = 1 << 30;
    // The same time told from another point: a mixture of both is off by most of a second.
    let second = TimePage {
        tsc: first.tsc - ticks,
        monotonic: first.monotonic - first.nanoseconds_since(first.tsc + ticks),
        ..first
    };
    mapped.set(first);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                mapped.set(second);
                mapped.set(first);
            }
        });
        let start = mapped.clock(libc::CLOCK_MONOTONIC);
        for _ in 0..100_000 {
            let (before, now) = (tsc(), mapped.clock(libc::CLOCK_MONOTONIC));
            let exact = first.monotonic + first.nanoseconds_since(before);
            // The two pages differ by the rounding.
            assert!(
                (exact - 2..exact + 100_000_000).contains(&now),
                "{now} for {exact}"
            );
        }
        assert!(mapped.clock(libc::CLOCK_MONOTONIC) > start);
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn vector_registers_stay() {
    let mapped = Mapped::new();
    mapped.set(calibrated());
    let function = mapped.function("clock_gettime");
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_THREAD_CPUTIME_ID] {
        let mut vectors = [[0u8; 16]; 2];
        // SAFETY: calls a C function, for which the compiler has aligned the stack; everything that
        // it may change is stated.
        unsafe {
            asm!(
                "pcmpeqd %xmm7, %xmm7",
                "pxor %xmm8, %xmm8",
                "call *{function}",
                "movdqu %xmm7, ({vectors})",
                "movdqu %xmm8, 16({vectors})",
                function = in(reg) function,
                vectors = in(reg) &raw mut vectors,
                inout("rdi") clock => _, inout("rsi") &raw mut time => _,
                out("rax") _, out("rcx") _, out("rdx") _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                out("xmm7") _, out("xmm8") _,
                options(att_syntax),
            );
        }
        assert_eq!(vectors, [[0xff; 16], [0; 16]]);
    }
}
