use std::io;

use rustix::io::Errno;

use super::*;
use crate::sample::{self, Elf, GNU_STACK, Header as SampleHeader, INTERPRETER, load};

/// Text at 0x1000, data of 0x10 bytes in the file and 0x3000 in memory at 0x3010.
fn two_segments() -> Elf {
    let mut data = load(0x2010, 0x3010, 0x10);
    data.flags = 6;
    data.memory_size = 0x3000;
    let mut elf = Elf::new(vec![load(0, 0x1000, 0x1800), data], 0x2020);
    elf.entry = 0x1234;
    elf
}

fn parse_elf(elf: &Elf) -> Result<Image, ElfError> {
    parse(elf.bytes().as_slice())
}

/// What is wrong with the file after a change.
fn error_after(change: impl FnOnce(&mut Elf)) -> ElfError {
    let mut elf = two_segments();
    change(&mut elf);
    parse_elf(&elf).unwrap_err()
}

/// A change to the second segment.
fn error_of_segment(change: impl FnOnce(&mut SampleHeader)) -> ElfError {
    error_after(|elf| change(&mut elf.headers[1]))
}

fn with_interpreter(name: &[u8]) -> Elf {
    let mut elf = two_segments();
    elf.headers.push(SampleHeader {
        kind: INTERPRETER,
        ..load(0x400, 0x1400, name.len() as u64)
    });
    elf.contents.push((0x400, name.to_vec()));
    elf
}

#[test]
fn says_what_to_map() {
    let image = parse_elf(&two_segments()).unwrap();
    assert_eq!(image.kind, Kind::Relocatable);
    assert_eq!(image.entry, 0x1234);
    assert_eq!(image.span(), 0x1000..0x7000);
    assert_eq!(image.alignment(), 0x1000);
    assert_eq!(image.interpreter, None);
    assert!(!image.stack_executable);
    let expected = ProgramHeaders {
        address: Some(0x1040),
        entry_size: 56,
        count: 2,
    };
    assert_eq!(image.program_headers, expected);

    let [text, data] = image.segments.as_slice() else {
        panic!("{} segments", image.segments.len());
    };
    assert_eq!(text.pages(), 0x1000..0x3000);
    assert!(text.protection.read && text.protection.execute && !text.protection.write);
    assert_eq!(data.pages(), 0x3000..0x7000);
    assert!(data.protection.read && data.protection.write && !data.protection.execute);
    assert_eq!((data.vaddr, data.memory_size), (0x3010, 0x3000));
    assert_eq!((data.file_offset, data.file_size), (0x2010, 0x10));
}

#[test]
fn segments_may_come_in_any_order_and_empty_ones_are_dropped() {
    let mut elf = two_segments();
    elf.headers.reverse();
    elf.headers.push(load(0, 0x1000, 0));
    let image = parse_elf(&elf).unwrap();
    assert_eq!(image.segments.len(), 2);
    assert_eq!(image.span(), 0x1000..0x7000);
}

#[test]
fn reads_from_a_file() {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let image = parse(&file).unwrap();
    assert!(image.interpreter.is_some());
    assert!(image.span().contains(&image.entry));
}

#[test]
fn a_stack_is_executable_only_if_asked_for() {
    let mut elf = two_segments();
    elf.headers.push(SampleHeader {
        kind: GNU_STACK,
        flags: 7,
        ..load(0, 0, 0)
    });
    assert!(parse_elf(&elf).unwrap().stack_executable);
    elf.headers[2].flags = 6;
    assert!(!parse_elf(&elf).unwrap().stack_executable);
}

#[test]
fn the_alignment_is_that_of_the_most_demanding_segment() {
    let mut elf = two_segments();
    elf.headers[0].align = 0x20_0000;
    assert_eq!(parse_elf(&elf).unwrap().alignment(), 0x20_0000);
}

#[test]
fn headers_of_other_kinds_are_refused() {
    let with_byte = |offset: usize, byte: u8| {
        let mut bytes = two_segments().bytes();
        bytes[offset] = byte;
        parse(bytes.as_slice()).unwrap_err()
    };
    assert!(matches!(with_byte(0, b'E'), ElfError::NotElf));
    assert!(matches!(with_byte(4, 1), ElfError::Class(1)));
    assert!(matches!(with_byte(5, 2), ElfError::Endianness(2)));
    assert!(matches!(error_after(|elf| elf.kind = 1), ElfError::Type(1)));
    assert!(matches!(
        error_after(|elf| elf.machine = 183),
        ElfError::Machine(183)
    ));
    assert!(matches!(
        error_after(|elf| elf.entry = USER_END),
        ElfError::Entry(USER_END)
    ));
    assert!(matches!(
        error_after(|elf| elf.entry_size = 64),
        ElfError::ProgramHeaderSize(64)
    ));
}

#[test]
fn the_number_of_program_headers_is_bounded() {
    assert!(matches!(
        error_after(|elf| elf.headers.clear()),
        ElfError::ProgramHeaderCount(0)
    ));
    let filled = |count| {
        let mut elf = Elf::new(vec![load(0, 0x1000, 0x1000)], 0x2_0000);
        elf.headers.resize(count, load(0, 0, 0));
        parse_elf(&elf)
    };
    assert!(filled(1170).is_ok());
    assert!(matches!(
        filled(1171),
        Err(ElfError::ProgramHeaderCount(1171))
    ));
}

#[test]
fn files_that_end_early_are_refused() {
    let bytes = two_segments().bytes();
    let error = |length: usize| parse(&bytes[..length]).unwrap_err();
    assert!(matches!(error(0), ElfError::HeaderTruncated));
    assert!(matches!(error(63), ElfError::HeaderTruncated));
    assert!(matches!(error(64), ElfError::ProgramHeadersTruncated));
    assert!(matches!(error(175), ElfError::ProgramHeadersTruncated));
    assert!(matches!(
        error(176),
        ElfError::SegmentTruncated { index: 0 }
    ));
    assert!(matches!(
        error(bytes.len() - 1),
        ElfError::SegmentTruncated { index: 1 }
    ));
    assert!(parse(bytes.as_slice()).is_ok());
}

#[test]
fn segments_outside_user_space_are_refused() {
    for (vaddr, size) in [
        (USER_END - 0xff0, 0xff1),
        (u64::MAX - 0xfef, 0x2000),
        (0x10, u64::MAX),
    ] {
        let error = error_of_segment(|segment| {
            segment.vaddr = vaddr;
            segment.memory_size = size;
        });
        assert!(matches!(error, ElfError::OutsideUserSpace { index: 1 }));
    }
    let mut elf = two_segments();
    elf.headers[1].vaddr = USER_END - 0xff0;
    elf.headers[1].memory_size = 0xff0;
    assert_eq!(parse_elf(&elf).unwrap().span().end, USER_END);
}

#[test]
fn segments_that_contradict_themselves_are_refused() {
    assert!(matches!(
        error_of_segment(|segment| segment.memory_size = 0xf),
        ElfError::FileSizeAboveMemorySize { index: 1 }
    ));
    assert!(matches!(
        error_of_segment(|segment| segment.align = 0x1001),
        ElfError::Alignment {
            index: 1,
            align: 0x1001
        }
    ));
    assert!(matches!(
        error_of_segment(|segment| segment.offset -= 8),
        ElfError::OffsetNotCongruent { index: 1 }
    ));
    assert!(matches!(
        error_of_segment(|segment| segment.offset = u64::MAX - 0xfef),
        ElfError::SegmentTruncated { index: 1 }
    ));
}

#[test]
fn zero_filled_segments_need_nothing_of_the_file() {
    let mut elf = two_segments();
    elf.headers[1].offset = 7;
    elf.headers[1].file_size = 0;
    elf.headers[1].align = 0;
    let image = parse_elf(&elf).unwrap();
    assert_eq!(
        (image.segments[1].file_size, image.segments[1].align),
        (0, 1)
    );
}

#[test]
fn segments_that_share_a_page_are_refused() {
    let mut elf = two_segments();
    elf.headers[0].memory_size = 0x2001;
    assert!(matches!(
        parse_elf(&elf),
        Err(ElfError::SegmentsOverlap {
            lower: 0x1000,
            upper: 0x3010
        })
    ));
    elf.headers[0].memory_size = 0x2000;
    assert!(parse_elf(&elf).is_ok());
}

#[test]
fn a_file_without_segments_is_refused() {
    let error = error_after(|elf| elf.headers = vec![load(0, 0x1000, 0)]);
    assert!(matches!(error, ElfError::NoSegments));
}

#[test]
fn the_table_has_an_address_only_inside_a_segment() {
    let mut elf = two_segments();
    elf.headers.remove(0);
    let image = parse_elf(&elf).unwrap();
    assert_eq!(image.program_headers.address, None);
}

#[test]
fn takes_the_interpreter_name() {
    let image = parse_elf(&with_interpreter(b"/lib/ld.so\0")).unwrap();
    assert_eq!(image.interpreter.as_deref(), Some(b"/lib/ld.so".as_slice()));
    // Linux takes what is before the first NUL.
    let image = parse_elf(&with_interpreter(b"/ld\0/other\0")).unwrap();
    assert_eq!(image.interpreter.as_deref(), Some(b"/ld".as_slice()));
}

#[test]
fn bad_interpreter_names_are_refused() {
    let error = |elf: &Elf| parse_elf(elf).unwrap_err();
    let bad = |name: &[u8]| error(&with_interpreter(name));
    assert!(matches!(bad(b"\0"), ElfError::InterpreterSize(1)));
    assert!(matches!(bad(b"\0\0"), ElfError::InterpreterEmpty));
    assert!(matches!(bad(b"/ld"), ElfError::InterpreterNotTerminated));

    let mut elf = with_interpreter(b"/ld\0");
    elf.headers[2].file_size = 4097;
    assert!(matches!(error(&elf), ElfError::InterpreterSize(4097)));
    elf.headers[2].file_size = 4;
    elf.headers[2].offset = u64::MAX;
    assert!(matches!(error(&elf), ElfError::InterpreterTruncated));

    let mut elf = with_interpreter(b"/ld\0");
    elf.headers.push(elf.headers[2]);
    assert!(matches!(
        error(&elf),
        ElfError::SecondInterpreter { index: 3 }
    ));
}

/// A source that gives one byte at a time, with interruptions, and fails at an offset.
struct Trickle {
    bytes: Vec<u8>,
    interrupted: std::cell::Cell<bool>,
    fails_at: u64,
}

impl ReadAt for Trickle {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset == self.fails_at {
            return Err(io::Error::from_raw_os_error(Errno::NODEV.raw_os_error()));
        }
        if !self.interrupted.replace(!self.interrupted.get()) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = buffer.len().min(1);
        self.bytes.read_at(offset, &mut buffer[..length])
    }

    fn size(&self) -> u64 {
        self.bytes.size()
    }
}

#[test]
fn short_reads_go_on_and_failures_are_passed_on() {
    let mut source = Trickle {
        bytes: two_segments().bytes(),
        interrupted: false.into(),
        fails_at: u64::MAX,
    };
    assert_eq!(parse(&source).unwrap().segments.len(), 2);
    source.fails_at = 100;
    assert_eq!(parse(&source).unwrap_err().errno(), Errno::NODEV);
}

#[test]
fn errors_have_the_errno_of_linux() {
    assert_eq!(ElfError::NotElf.errno(), Errno::NOEXEC);
    assert_eq!(ElfError::NotElf.interpreter_errno(), Errno::LIBBAD);
    assert_eq!(ElfError::NoSegments.errno(), Errno::INVAL);
    assert_eq!(ElfError::NoSegments.interpreter_errno(), Errno::INVAL);
    assert_eq!(ElfError::InterpreterEmpty.errno(), Errno::NOENT);
}

#[test]
fn programs_of_the_rewriter_tests_are_well_formed() {
    let file = sample::program(&[0xc3], &[(0, 1)], &[]);
    assert_eq!(parse(file.as_slice()).unwrap().span(), 0x1000..0x2000);
}
