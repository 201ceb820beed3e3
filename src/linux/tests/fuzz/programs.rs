//! Damaged programs, interpreters and scripts: they run or are refused, and what is said of a
//! refusal names the file and the rule that it breaks.

use std::fs;

use agentrt_linux::{End, StartError};
use proptest::prelude::*;
use proptest::sample::select;

use crate::budget::{alone, fuzz as fuzz_for, watched};
use crate::elf::{self, field, header, program_header, put};
use crate::processor::{catch_signal, run_for_a_moment};
use crate::world::{Holding, World, has_kvm};

/// Real files that are damaged: a program, its interpreter, its library; and where they belong.
const PROGRAM: &str = "bin/true";
const INTERPRETER: &str = "lib64/ld-linux-x86-64.so.2";
const LIBRARY: &str = "lib/x86_64-linux-gnu/libc.so.6";
/// Program headers that are aimed at.
const HEADERS_MAX: usize = 14;

#[derive(Clone, Copy, Debug)]
enum Victim {
    /// A static program of two segments.
    Small,
    /// A dynamic program.
    Program,
    /// The dynamic program's interpreter.
    Interpreter,
}

#[derive(Clone, Debug)]
enum Change {
    Byte {
        offset: usize,
        value: u8,
    },
    FileHeader {
        offset: usize,
        value: u16,
    },
    ProgramHeader {
        index: usize,
        offset: usize,
        value: u64,
    },
    Kind {
        index: usize,
        value: u32,
    },
    /// Keeps so many 256ths of the file.
    Truncate(u8),
}

#[derive(Clone, Debug)]
enum Case {
    Damaged(Victim, Vec<Change>),
    Bytes(Vec<u8>),
    /// First lines of scripts `s0`, `s1`, …; the first one runs.
    Scripts(Vec<String>),
}

fn case() -> impl Strategy<Value = Case> {
    let victim = select(&[Victim::Small, Victim::Program, Victim::Interpreter][..]);
    let line = prop_oneof![
        6 => (0..8_u32, select(&["", " x", " x y\t", "\t"][..]))
            .prop_map(|(index, tail)| format!("#!/s{index}{tail}\n")),
        1 => Just("#!/bin/true\n".to_owned()),
        1 => Just("#! script\n".to_owned()),
        1 => "#![ -~]{0,300}\n?",
        1 => ".{0,80}",
    ];
    prop_oneof![
        8 => (victim, prop::collection::vec(change(), 1..6))
            .prop_map(|(victim, changes)| Case::Damaged(victim, changes)),
        1 => prop::collection::vec(any::<u8>(), 0..600).prop_map(Case::Bytes),
        1 => prop::collection::vec(line, 1..8).prop_map(Case::Scripts),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let word = prop_oneof![
        (0..64_u32, -1..2_i64).prop_map(|(bit, off)| (1_u64 << bit).wrapping_add_signed(off)),
        (0..0x800_u64).prop_map(|page| page << 12),
        0..0x1000_u64,
        Just(u64::MAX),
        Just(agentrt_shim_abi::SHIM_BASE),
        Just(agentrt_shim_abi::USER_END - 4096),
        any::<u64>(),
    ];
    let offset = prop_oneof![3 => 0..1024_usize, 1 => 0..200_000_usize];
    prop_oneof![
        3 => (offset, any::<u8>()).prop_map(|(offset, value)| Change::Byte { offset, value }),
        1 => (0..32_usize, any::<u16>())
            .prop_map(|(half, value)| Change::FileHeader { offset: 2 * half, value }),
        6 => (0..HEADERS_MAX, 1..7_usize, word)
            .prop_map(|(index, word, value)| Change::ProgramHeader { index, offset: 8 * word, value }),
        2 => (0..HEADERS_MAX, 0..8_u32).prop_map(|(index, value)| Change::Kind { index, value }),
        1 => any::<u8>().prop_map(Change::Truncate),
    ]
}

fn apply(file: &mut Vec<u8>, change: &Change) {
    let (offset, bytes) = match *change {
        Change::Byte { offset, value } => (offset, vec![value]),
        Change::FileHeader { offset, value } => (offset, value.to_le_bytes().to_vec()),
        Change::ProgramHeader {
            index,
            offset,
            value,
        } => (program_header(index) + offset, value.to_le_bytes().to_vec()),
        Change::Kind { index, value } => (program_header(index), value.to_le_bytes().to_vec()),
        Change::Truncate(part) => return file.truncate(file.len() * usize::from(part) / 256),
    };
    if let Some(place) = file.get_mut(offset..offset + bytes.len()) {
        place.copy_from_slice(&bytes);
    }
}

/// The real files, by where they belong.
struct Files {
    program: Vec<u8>,
    interpreter: Vec<u8>,
}

impl Files {
    fn read() -> Files {
        let read = |name: &str| fs::read(format!("/{name}")).unwrap();
        Files {
            program: read(PROGRAM),
            interpreter: read(INTERPRETER),
        }
    }

    /// Puts the files of a case into the image; returns what to run.
    fn place(&self, world: &World, case: &Case) -> &'static str {
        world.add_program(PROGRAM, &self.program);
        world.add_program(INTERPRETER, &self.interpreter);
        match case {
            Case::Damaged(victim, changes) => {
                let (name, original) = match victim {
                    Victim::Small => ("small", elf::program(b"\xeb\xfe")),
                    Victim::Program => (PROGRAM, self.program.clone()),
                    Victim::Interpreter => (INTERPRETER, self.interpreter.clone()),
                };
                let mut file = original;
                changes.iter().for_each(|change| apply(&mut file, change));
                world.add_program(name, &file);
                if name == "small" {
                    "/small"
                } else {
                    "/bin/true"
                }
            }
            Case::Bytes(bytes) => {
                world.add_program("small", bytes);
                "/small"
            }
            Case::Scripts(lines) => {
                for (index, line) in lines.iter().enumerate() {
                    world.add_program(&format!("s{index}"), line.as_bytes());
                }
                "/s0"
            }
        }
    }
}

#[test]
fn fuzz() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    catch_signal();
    let files = Files::read();
    let world = World::new();
    world.add_program(LIBRARY, &fs::read(format!("/{LIBRARY}")).unwrap());
    files.place(&world, &Case::Bytes(Vec::new()));
    drop(world.guest("/bin/true").unwrap());
    let before = Holding::now();
    fuzz_for(&case(), |case| {
        let program = files.place(&world, &case);
        watched(
            || format!("{case:?}"),
            || match world.guest(program) {
                Ok(mut guest) => {
                    let end = run_for_a_moment(&mut guest);
                    assert!(matches!(end, End::Program(_) | End::TimedOut), "{end:?}");
                }
                Err(StartError::Exec(error)) => {
                    let text = error.to_string();
                    assert!(text.starts_with("cannot ") && text.len() > 30, "{text}");
                }
                Err(other) => panic!("{other:?}"),
            },
        );
        before.check_return();
    });
}

/// What is said of `file`, run as `/program`.
fn refusal(world: &World, file: &[u8]) -> String {
    world.add_program("program", file);
    match world.guest("/program") {
        Ok(_) => "started".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_wrong_with_a_malformed_program_is_said() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    let world = World::new();
    let first = program_header(0);
    let second = program_header(1);
    type Patch = (usize, &'static [u8]);
    let table: [(&[Patch], &str); 19] = [
        (&[(0, b"MZ")], "not an ELF file"),
        (
            &[(header::CLASS, b"\x01")],
            "ELF class 1 is not the 64-bit class, 2",
        ),
        (
            &[(header::ENCODING, b"\x02")],
            "ELF data encoding 2 is not little-endian, 1",
        ),
        (
            &[(header::TYPE, b"\x01\x00")],
            "ELF type 1 is neither executable, 2, nor shared object, 3",
        ),
        (
            &[(header::MACHINE, b"\xb7\x00")],
            "ELF machine 183 is not x86-64, 62",
        ),
        (
            &[(header::ENTRY, b"\x00\x00\x00\x00\x00\x80\xff\xff")],
            "entry point 0xffff800000000000 is outside user space",
        ),
        (
            &[(header::TABLE_OFFSET, b"\x00\x00\x01")],
            "the file ends inside the program header table",
        ),
        (
            &[(header::TABLE_ENTRY_SIZE, b"\x20\x00")],
            "program headers of 32 bytes instead of 56",
        ),
        (
            &[(header::TABLE_COUNT, b"\x00\x00")],
            "0 program headers: there must be at least one, and at most 64 KiB of them",
        ),
        (
            &[(header::TABLE_COUNT, b"\xff\xff")],
            "65535 program headers: there must be at least one, and at most 64 KiB of them",
        ),
        (
            &[(first, b"\x00\x00\x00\x00"), (second, b"\x00\x00\x00\x00")],
            "no loadable segment",
        ),
        (
            &[(first + field::MEMORY_SIZE, b"\x01\x00")],
            "segment 0: file size exceeds memory size",
        ),
        (
            &[(second + field::ADDRESS + 4, b"\xff\xff\xff\xff")],
            "segment 1 reaches outside user space",
        ),
        (
            &[(first + field::ALIGNMENT, b"\x03")],
            "segment 0: alignment 0x1003 is not a power of two",
        ),
        (
            &[(first + field::OFFSET, b"\x08")],
            "segment 0: file offset and address differ modulo the page size",
        ),
        (
            &[
                (first + field::FILE_SIZE, b"\xff\xff\x00"),
                (first + field::MEMORY_SIZE, b"\xff\xff\x00"),
            ],
            "segment 0: the file ends inside it",
        ),
        (
            &[(second + field::ADDRESS, b"\x00\x00\x40\x00")],
            "the segments at 0x400000 and 0x400000 share a page",
        ),
        (
            &[(second + field::KIND, b"\x03\x00\x00\x00")],
            "interpreter name of 0 bytes: must be 2 to 4096",
        ),
        (
            &[
                (second + field::KIND, b"\x03\x00\x00\x00"),
                (second + field::OFFSET + 4, b"\x01"),
                (second + field::FILE_SIZE, b"\x10"),
            ],
            "the file ends inside the interpreter's name",
        ),
    ];
    for (patches, reason) in table {
        let mut file = elf::program(&[0; 64]);
        for (offset, bytes) in patches {
            put(&mut file, *offset, bytes);
        }
        assert_eq!(
            refusal(&world, &file),
            format!("cannot execute /program: {reason}; {REBUILD}")
        );
    }
}

/// What can be done about a file that is no program.
const REBUILD: &str = "install or build it anew for x86-64 Linux";

#[test]
fn what_is_wrong_with_a_program_that_needs_another_is_said() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    let world = World::new();
    let mut truncated = elf::program(b"");
    truncated.truncate(40);
    world.add_program("no-elf", b"text");
    world.add_program("empty", b"");
    let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
    let denied = std::io::Error::from_raw_os_error(libc::EACCES);
    let missing = format!("{missing}; check that the image has it");
    let denied = format!("{denied}; it must be a regular file that is executable (chmod +x)");
    let cut = format!("the file ends inside the ELF header; {REBUILD}");
    let needs = "/program: its interpreter";
    let table: [(Vec<u8>, String); 8] = [
        (b"".to_vec(), format!("/program: {cut}")),
        (truncated, format!("/program: {cut}")),
        (
            elf::interpreted("/nothing"),
            format!("{needs} /nothing: {missing}"),
        ),
        (elf::interpreted("/dir"), format!("{needs} /dir: {denied}")),
        (
            elf::interpreted("/file"),
            format!("{needs} /file: {denied}"),
        ),
        (
            elf::interpreted("/no-elf"),
            format!("{needs} /no-elf: {cut}"),
        ),
        (
            b"#!/nothing\n".to_vec(),
            format!("{needs} /nothing: {missing}"),
        ),
        (
            b"#!/program\n".to_vec(),
            "/program: more than 5 scripts are each other's interpreter; name a program behind #!"
                .into(),
        ),
    ];
    for (file, reason) in table {
        assert_eq!(refusal(&world, &file), format!("cannot execute {reason}"));
    }
    for program in ["/nothing", "/dir", "/file", "/fifo", "/loop", "/file/x"] {
        let error = world.guest(program).err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("cannot execute {program}: ")),
            "{error}"
        );
    }
    let error = world.guest("nothing").err().unwrap().to_string();
    let expected =
        "program \"nothing\" not found in the guest's PATH; give its path, or set PATH with --env";
    assert_eq!(error, expected);
}
