//! Sequences of arbitrary syscalls: no handler panics, blocks or hoards, and none reaches out of
//! the guest's file tree.

use std::os::fd::OwnedFd;
use std::time::Duration;

use agentrt_linux::arguments::Arguments;
use agentrt_linux::stop::{Result, Stop};
use agentrt_linux::{Guest, dispatch};
use agentrt_shim_abi::{PAGE_SIZE, SHIM_BASE, USER_START};
use proptest::prelude::*;
use rustix::io::Errno;

use crate::budget::{alone, fuzz as fuzz_for, watched};
use crate::steps::{
    ARENA, ARENA_SIZE, OTHER_STRIDE, OTHERS, SLOT_SIZE, SLOTS, Step, contents, step,
};
use crate::world::{Holding, SECRET, World, has_kvm};

/// Processor time that one call may take. Debug builds are some times slower than what runs.
const CALL_MAX: Duration = Duration::from_secs(1);
/// Most syscalls of a sequence.
const STEPS_MAX: usize = 200;

/// A guest whose memory and descriptors are as the steps expect, and what it reads and writes.
struct Session {
    world: World,
    guest: Guest,
    /// The other end of standard input: reading waits.
    _writer: OwnedFd,
}

impl Session {
    fn new(world: World) -> Session {
        let (guest, writer) = start(&world);
        Session {
            world,
            guest,
            _writer: writer,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Store(slot, bytes) => {
                // The program may have taken the page away.
                let _ = self.guest.task.mm.write(ARENA + slot * SLOT_SIZE, bytes);
            }
            Step::Call(number, arguments) => self.call(*number, arguments),
        }
    }

    fn call(&mut self, number: u64, arguments: &[u64; 6]) {
        match call(&mut self.guest, number, arguments) {
            Ok(_) | Err(Stop::Error(_) | Stop::Wait(_)) => {}
            Err(Stop::Resume) => prepare(&mut self.guest),
            Err(Stop::End(_)) => (self.guest, self._writer) = start(&self.world),
        }
    }
}

fn start(world: &World) -> (Guest, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut config = world.config("/program");
    let output = std::fs::File::options()
        .write(true)
        .open("/dev/null")
        .unwrap();
    let errors = tempfile::tempfile().unwrap();
    config.streams = [Some(reader), Some(output.into()), Some(errors.into())];
    let mut guest = Guest::new(config).unwrap();
    prepare(&mut guest);
    (guest, writer)
}

/// Maps the arena and the other pages, and opens descriptors 3 to 8 unless they are open.
fn prepare(guest: &mut Guest) {
    const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    const ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
    mmap(guest, ARENA, ARENA_SIZE, READ_WRITE, ANONYMOUS, 0);
    let opened: [(&[u8], i32); 6] = [
        (b"/program\0", libc::O_RDONLY),
        (b"/dir\0", libc::O_RDONLY | libc::O_DIRECTORY),
        (b"/volume/file\0", libc::O_RDWR),
        (b"/file\0", libc::O_RDWR),
        (b"/proc/self/maps\0", libc::O_RDONLY),
        (b"/fixed/file\0", libc::O_PATH),
    ];
    for (number, (path, flags)) in (3..).zip(opened) {
        if guest.task.descriptors.get(number).is_err() {
            guest.task.mm.write(ARENA, path).unwrap();
            // Fails where the program has used up its descriptors or moved the files away.
            let _ = call(
                guest,
                libc::SYS_open as u64,
                &[ARENA, flags as u64, 0, 0, 0, 0],
            );
        }
    }
    let file = (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64;
    let shared = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
    let pages = [
        (libc::PROT_READ as u64, ANONYMOUS, 0),
        (libc::PROT_NONE as u64, ANONYMOUS, 0),
        ((libc::PROT_READ | libc::PROT_EXEC) as u64, ANONYMOUS, 0),
        ((libc::PROT_READ | libc::PROT_EXEC) as u64, file, 3),
        (READ_WRITE, shared, 5),
        (
            READ_WRITE,
            (libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64,
            0,
        ),
    ];
    for (kind, (protection, flags, descriptor)) in (0..).zip(pages) {
        mmap(
            guest,
            OTHERS + kind * OTHER_STRIDE,
            PAGE_SIZE,
            protection,
            flags,
            descriptor,
        );
    }
}

fn mmap(guest: &mut Guest, address: u64, length: u64, protection: u64, flags: u64, file: u64) {
    // Fails where the program has made of the descriptor what cannot be mapped.
    let arguments = [address, length, protection, flags, file, 0];
    let _ = call(guest, libc::SYS_mmap as u64, &arguments);
}

/// Makes a syscall, as the guest does when its program makes it.
pub fn call(guest: &mut Guest, number: u64, arguments: &[u64; 6]) -> Result<u64> {
    let handler = dispatch::handler(number).ok_or(Errno::NOSYS)?;
    let step = Step::Call(number, *arguments);
    guest.task.sleep = None;
    let before = processor_time();
    let result = watched(
        || format!("{step:?}"),
        || handler(guest, &Arguments(*arguments)),
    );
    let used = processor_time() - before;
    assert!(used < CALL_MAX, "{step:?} took {used:?}");
    result
}

/// Panics unless areas are disjoint, and pages are where areas are and have their rights.
pub fn check_memory(guest: &Guest) {
    let mm = &guest.task.mm;
    let text = String::from_utf8_lossy(&mm.areas_text()).into_owned();
    let (mut position, mut total) = (USER_START, 0);
    let free = |from: u64, to: u64| {
        let pages = (to - from) / PAGE_SIZE;
        assert_eq!(
            mm.space().unmapped_run(from, pages),
            pages,
            "a page outside areas:\n{text}"
        );
        assert!(from == to || !mm.is_mapped(from..to), "{text}");
    };
    for line in text.lines().filter(|line| line.contains('-')) {
        let mut fields = line.split(' ');
        let Some((start, end)) = fields.next().and_then(range) else {
            continue;
        };
        if start >= SHIM_BASE {
            // The vDSO, which no syscall reaches.
            total += end - start;
            continue;
        }
        let rights = fields.next().unwrap_or_default();
        assert!(
            position <= start && start < end && end <= SHIM_BASE,
            "{line}\n{text}"
        );
        assert!(
            start.is_multiple_of(PAGE_SIZE) && end.is_multiple_of(PAGE_SIZE),
            "{line}"
        );
        free(position, start);
        assert!(mm.is_mapped(start..end), "{line}");
        if let Some((_, mapped)) = mm.space().translate(start) {
            assert!(!mapped.write || rights.contains('w'), "{line}: {mapped:?}");
            assert!(
                !mapped.execute || rights.contains('x'),
                "{line}: {mapped:?}"
            );
        }
        (position, total) = (end, total + (end - start));
    }
    free(position, SHIM_BASE);
    assert_eq!(mm.usage().virtual_size, total, "{text}");
}

/// The addresses at the start of a line; names may hold line breaks, so not every line has them.
fn range(text: &str) -> Option<(u64, u64)> {
    let (start, end) = text.split_once('-')?;
    Some((
        u64::from_str_radix(start, 16).ok()?,
        u64::from_str_radix(end, 16).ok()?,
    ))
}

fn check_secret(guest: &mut Guest) {
    let mut bytes = vec![0; ARENA_SIZE as usize];
    for (index, part) in bytes.chunks_exact_mut(PAGE_SIZE as usize).enumerate() {
        // The program may have taken the page away.
        let _ = guest.task.mm.read(ARENA + index as u64 * PAGE_SIZE, part);
    }
    let seen = bytes.windows(SECRET.len()).any(|window| window == SECRET);
    assert!(!seen, "a file outside the tree was read");
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn fuzz() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    drop(Session::new(World::new()));
    let before = Holding::now();
    let arena = (0..SLOTS).map(contents).collect::<Vec<_>>();
    let steps = prop::collection::vec(step(), 1..STEPS_MAX);
    fuzz_for(&(arena, steps), |(arena, steps)| {
        let mut session = Session::new(World::new());
        for (slot, bytes) in (0..).zip(arena) {
            session.step(&Step::Store(slot, bytes));
        }
        for step in &steps {
            session.step(step);
        }
        check_memory(&session.guest);
        check_secret(&mut session.guest);
        before.check_growth();
        session.world.check_untouched();
        drop(session);
        before.check_return();
    });
}
