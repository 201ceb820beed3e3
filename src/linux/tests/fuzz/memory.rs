//! The memory syscalls against a model: what Linux would have of each page.

use agentrt_linux::Guest;
use agentrt_linux::stop::Stop;
use agentrt_shim_abi::PAGE_SIZE;
use proptest::prelude::*;

use crate::budget::{alone, fuzz as fuzz_for};
use crate::dispatch::{call, check_memory};
use crate::world::{World, has_kvm};

/// Where the pages are that the model follows, and how many.
const WINDOW: u64 = 0x20_0000_0000;
const PAGES: usize = 48;

/// A page that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    protection: i32,
    /// Its first byte.
    value: u8,
}

impl Page {
    fn readable(self) -> bool {
        self.protection != libc::PROT_NONE
    }

    fn writable(self) -> bool {
        self.protection & libc::PROT_WRITE != 0
    }
}

/// A range of pages.
#[derive(Clone, Copy, Debug)]
struct Pages {
    first: usize,
    count: usize,
}

impl Pages {
    fn of(self, model: &[Option<Page>]) -> &[Option<Page>] {
        &model[self.first..self.first + self.count]
    }

    fn address(self) -> u64 {
        WINDOW + self.first as u64 * PAGE_SIZE
    }

    fn length(self) -> u64 {
        self.count as u64 * PAGE_SIZE
    }
}

#[derive(Clone, Debug)]
enum Step {
    Map {
        pages: Pages,
        protection: i32,
        replace: bool,
    },
    Unmap {
        pages: Pages,
    },
    Protect {
        pages: Pages,
        protection: i32,
    },
    Discard {
        pages: Pages,
    },
    Move {
        pages: Pages,
        target: usize,
        count: usize,
    },
    Write {
        page: usize,
        value: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let protection = || {
        prop_oneof![
            1 => Just(libc::PROT_NONE),
            1 => Just(libc::PROT_READ),
            3 => Just(libc::PROT_READ | libc::PROT_WRITE),
            1 => Just(libc::PROT_READ | libc::PROT_EXEC),
        ]
    };
    prop_oneof![
        3 => (pages(), protection(), any::<bool>())
            .prop_map(|(pages, protection, replace)| Step::Map { pages, protection, replace }),
        2 => pages().prop_map(|pages| Step::Unmap { pages }),
        2 => (pages(), protection())
            .prop_map(|(pages, protection)| Step::Protect { pages, protection }),
        1 => pages().prop_map(|pages| Step::Discard { pages }),
        2 => (pages(), pages()).prop_map(|(pages, target)| Step::Move {
            pages,
            target: target.first,
            count: target.count,
        }),
        8 => (0..PAGES, any::<u8>()).prop_map(|(page, value)| Step::Write { page, value }),
    ]
}

fn pages() -> impl Strategy<Value = Pages> {
    (0..PAGES, 1..12_usize).prop_map(|(first, count)| Pages {
        first,
        count: count.min(PAGES - first),
    })
}

/// What is so, and what ought to be.
struct Compared {
    guest: Guest,
    model: Vec<Option<Page>>,
}

impl Compared {
    /// Makes a call; None if it fails.
    fn value(&mut self, number: i64, arguments: [u64; 6]) -> Option<u64> {
        match call(&mut self.guest, number as u64, &arguments) {
            Ok(value) => Some(value),
            Err(Stop::Error(_)) => None,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn call(&mut self, number: i64, arguments: [u64; 6]) -> bool {
        self.value(number, arguments).is_some()
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Map {
                pages,
                protection,
                replace,
            } => self.map(pages, protection, replace),
            Step::Unmap { pages } => self.unmap(pages),
            Step::Protect { pages, protection } => self.protect(pages, protection),
            Step::Discard { pages } => {
                let advice = libc::MADV_DONTNEED as u64;
                let arguments = [pages.address(), pages.length(), advice, 0, 0, 0];
                let done = self.call(libc::SYS_madvise, arguments);
                let all = pages.of(&self.model).iter().all(Option::is_some);
                assert_eq!(done, all);
                for page in self.pages_mut(pages).iter_mut().flatten() {
                    page.value = 0;
                }
            }
            Step::Move {
                pages,
                target,
                count,
            } => self.move_pages(pages, target, count),
            Step::Write { page, value } => {
                let address = WINDOW + page as u64 * PAGE_SIZE;
                let written = self.guest.task.mm.write(address, &[value]).is_ok();
                assert_eq!(written, self.model[page].is_some_and(Page::writable));
                if let Some(page) = self.model[page].as_mut().filter(|page| page.writable()) {
                    page.value = value;
                }
            }
        }
    }

    fn map(&mut self, pages: Pages, protection: i32, replace: bool) {
        let fixed = if replace {
            libc::MAP_FIXED
        } else {
            libc::MAP_FIXED_NOREPLACE
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
        let arguments = [
            pages.address(),
            pages.length(),
            protection as u64,
            flags as u64,
            u64::MAX,
            0,
        ];
        let done = self.call(libc::SYS_mmap, arguments);
        let free = pages.of(&self.model).iter().all(Option::is_none);
        assert_eq!(done, replace || free);
        if done {
            self.pages_mut(pages).fill(Some(Page {
                protection,
                value: 0,
            }));
        }
    }

    fn unmap(&mut self, pages: Pages) {
        assert!(self.call(
            libc::SYS_munmap,
            [pages.address(), pages.length(), 0, 0, 0, 0]
        ));
        self.pages_mut(pages).fill(None);
    }

    fn protect(&mut self, pages: Pages, protection: i32) {
        let arguments = [pages.address(), pages.length(), protection as u64, 0, 0, 0];
        let done = self.call(libc::SYS_mprotect, arguments);
        assert_eq!(done, pages.of(&self.model).iter().all(Option::is_some));
        if !done {
            // How much of it was changed is not promised: start anew.
            return self.unmap(pages);
        }
        for page in self.pages_mut(pages).iter_mut().flatten() {
            page.protection = protection;
        }
    }

    fn move_pages(&mut self, pages: Pages, target: usize, count: usize) {
        let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
        let target = Pages {
            first: target,
            count,
        };
        let arguments = [
            pages.address(),
            pages.length(),
            target.length(),
            flags,
            target.address(),
            0,
        ];
        let old = pages.of(&self.model).to_vec();
        let apart =
            pages.first + pages.count <= target.first || target.first + target.count <= pages.first;
        let before = self.guest.task.mm.areas_text();
        if !self.call(libc::SYS_mremap, arguments) {
            // It may refuse pages of more than one area.
            let rights = |page: &Option<Page>| page.map(|page| page.protection);
            let one_area =
                apart && old[0].is_some() && old.iter().all(|page| rights(page) == rights(&old[0]));
            let text = String::from_utf8_lossy(&before);
            assert!(!one_area, "{pages:?} to {target:?} refused:\n{text}");
            return;
        }
        assert!(apart && old.iter().all(Option::is_some));
        self.pages_mut(pages).fill(None);
        let grown = old[0].map(|page| Page { value: 0, ..page });
        self.pages_mut(target).fill(grown);
        for (index, page) in old.into_iter().take(count).enumerate() {
            self.model[target.first + index] = page;
        }
    }

    fn pages_mut(&mut self, pages: Pages) -> &mut [Option<Page>] {
        &mut self.model[pages.first..pages.first + pages.count]
    }

    fn check(&mut self) {
        for (index, page) in self.model.iter().enumerate() {
            let address = WINDOW + index as u64 * PAGE_SIZE;
            assert_eq!(
                self.guest.task.mm.is_mapped(address..address + PAGE_SIZE),
                page.is_some()
            );
            let mut byte = [0];
            let read = self.guest.task.mm.read(address, &mut byte).is_ok();
            assert_eq!(
                read,
                page.is_some_and(Page::readable),
                "page {index}: {page:?}"
            );
            if read {
                assert_eq!(byte[0], page.map_or(0, |page| page.value), "page {index}");
            }
        }
        check_memory(&self.guest);
    }
}

#[test]
fn fuzz() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    let world = World::new();
    fuzz_for(&prop::collection::vec(step(), 1..120), |steps| {
        let guest = world.guest("/program").unwrap();
        let mut compared = Compared {
            guest,
            model: vec![None; PAGES],
        };
        for step in &steps {
            compared.step(step);
        }
        compared.check();
    });
}

/// Ranges as large as the address space cost no more than what is in them.
#[test]
fn huge_ranges_cost_little() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    let world = World::new();
    const READ_EXECUTE: u64 = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let private = libc::MAP_PRIVATE as u64;
    let shared = libc::MAP_SHARED as u64;
    let reserved = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
    let populated = reserved | libc::MAP_POPULATE as u64;
    let kinds = [
        ("/program", libc::O_RDONLY, READ_EXECUTE, private),
        ("/volume/file", libc::O_RDWR, READ_WRITE, shared),
        ("/program", libc::O_RDONLY, READ_WRITE, reserved),
        ("/program", libc::O_RDONLY, READ_WRITE, populated),
        (
            "/program",
            libc::O_RDONLY,
            libc::PROT_NONE as u64,
            populated,
        ),
    ];
    for (path, access, protection, flags) in kinds {
        for shift in [32, 40, 45] {
            let guest = world.guest("/program").unwrap();
            let mut compared = Compared {
                guest,
                model: Vec::new(),
            };
            let length = 1_u64 << shift;
            let scratch = [0, 1 << 20, READ_WRITE, reserved, u64::MAX, 0];
            let scratch = compared.value(libc::SYS_mmap, scratch).unwrap();
            compared
                .guest
                .task
                .mm
                .write(scratch, format!("{path}\0").as_bytes())
                .unwrap();
            let file = compared
                .value(libc::SYS_open, [scratch, access as u64, 0, 0, 0, 0])
                .unwrap();
            let Some(start) =
                compared.value(libc::SYS_mmap, [0, length, protection, flags, file, 0])
            else {
                continue;
            };
            for (number, rest) in [
                (libc::SYS_msync, [libc::MS_SYNC as u64, 0]),
                (libc::SYS_mincore, [scratch, 0]),
                (libc::SYS_mprotect, [READ_EXECUTE, 0]),
                (libc::SYS_madvise, [libc::MADV_DONTNEED as u64, 0]),
                (libc::SYS_mlock, [0, 0]),
                (libc::SYS_mremap, [length / 2, libc::MREMAP_MAYMOVE as u64]),
                (libc::SYS_munmap, [0, 0]),
            ] {
                compared.value(number, [start, length, rest[0], rest[1], 0, 0]);
            }
        }
    }
}
