//! Prints the arguments and the result of one call.

use std::fmt::{Display, Write};

use crate::errno::{errno, restarts};
use crate::flags::file;
use crate::kind::{Answer, Kind};
use crate::line::{Line, quote, quote_hex};
use crate::structs::{Layout, Record, device};
use crate::{Call, Memory, signal, structs};

/// The most elements of an array, and bytes of a string, that are shown (strace's own default for both).
pub(crate) const SHOWN: usize = 32;

/// The most bytes of a path, with its NUL (PATH_MAX, `include/uapi/linux/limits.h`).
const PATH: usize = 4096;

/// The most pointers of an environment that are counted.
const COUNTED: usize = 4096;

/// The largest number the kernel returns as an error, negated (MAX_ERRNO, `include/linux/err.h`).
const LAST_ERROR: i64 = 4095;

/// Strings are read in aligned pieces of this many bytes, which never straddle a page.
const PIECE: u64 = 64;

/// A NUL-terminated string of the guest's.
struct Text {
    bytes: Vec<u8>,
    terminated: bool,
}

/// Prints one call.
pub(crate) struct Printer<'a> {
    pub(crate) call: &'a Call,
    memory: &'a dyn Memory,
    line: Line,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(call: &'a Call, memory: &'a dyn Memory) -> Self {
        Self {
            call,
            memory,
            line: Line::new(),
        }
    }

    /// The finished line.
    pub(crate) fn finish(self) -> String {
        self.line.finish()
    }

    /// Adds text. A full line takes no more; that is no error.
    pub(crate) fn put(&mut self, text: impl Display) {
        let _ = write!(self.line, "{text}");
    }

    /// The argument at `index`.
    pub(crate) fn argument(&self, index: usize) -> u64 {
        self.call.arguments.get(index).copied().unwrap_or(0)
    }

    /// Whether the call returned and did not fail.
    pub(crate) fn succeeded(&self) -> bool {
        self.call
            .result
            .is_some_and(|result| !(-LAST_ERROR..0).contains(&result))
    }

    /// What the call returned if it is a count, or 0.
    pub(crate) fn returned(&self) -> u64 {
        self.call
            .result
            .and_then(|result| u64::try_from(result).ok())
            .unwrap_or(0)
    }

    /// The arguments, separated by commas.
    pub(crate) fn arguments(&mut self, kinds: &'static [Kind]) {
        let mut index = 0;
        for kind in kinds {
            let rest = std::slice::from_ref(kind);
            let kinds = if let Kind::Rest(choose) = kind {
                choose(self.call)
            } else {
                rest
            };
            for kind in kinds {
                self.separate(index);
                self.kind(kind, self.argument(index));
                index += 1;
            }
        }
    }

    /// The comma before every element but the first.
    pub(crate) fn separate(&mut self, index: usize) {
        if index > 0 {
            self.put(", ");
        }
    }

    /// One argument.
    fn kind(&mut self, kind: &Kind, value: u64) {
        match *kind {
            Kind::Int => self.put(value as i32),
            Kind::Unsigned => self.put(value as u32),
            Kind::Long => self.put(value as i64),
            Kind::Size => self.put(value),
            Kind::Hex => self.hex(value),
            Kind::Pointer => self.pointer(value),
            Kind::Id => self.id(value as u32),
            Kind::Permissions => self.octal(u64::from(value as u32)),
            Kind::Mode => structs::mode(self, value as u32),
            Kind::Device => device(self, value & 0xffff_ffff),
            Kind::Directory => self.directory(value as i32),
            Kind::Flags(flags) => flags.print(self, value & 0xffff_ffff),
            Kind::Choice(choice) => choice.print(self, value & 0xffff_ffff),
            Kind::Signal => signal::signal(self, value),
            Kind::Path => self.text(value, PATH),
            Kind::Text => self.text(value, SHOWN),
            Kind::OutText if self.succeeded() => self.text(value, PATH),
            Kind::Bytes(length) => self.bytes(value, self.argument(length)),
            Kind::OutBytes if self.succeeded() => self.bytes(value, self.returned()),
            Kind::OutRandom if self.succeeded() => self.random(value),
            Kind::Strings => structs::strings(self, value),
            Kind::Environment => self.environment(value),
            Kind::In(layout) => self.structure(layout, value),
            Kind::Out(layout) if self.succeeded() => self.structure(layout, value),
            Kind::InArray(layout, count) => {
                self.array(layout, value, u64::from(self.argument(count) as u32))
            }
            Kind::Returned(layout) if self.succeeded() => {
                self.array(layout, value, self.returned())
            }
            Kind::Gather(count) => structs::vectors(self, value, self.argument(count), u64::MAX),
            Kind::Scatter(count) => {
                let filled = self.returned();
                structs::vectors(self, value, self.argument(count), filled);
            }
            Kind::Descriptors(count) => structs::descriptors(self, value, self.argument(count)),
            Kind::Processors(size) => structs::processors(self, value, self.argument(size)),
            Kind::OutProcessors if self.succeeded() => {
                structs::processors(self, value, self.returned())
            }
            Kind::Address(length) => structs::address(self, value, self.argument(length)),
            Kind::OutAddress(length) if self.succeeded() => {
                let length = self
                    .record(self.argument(length), 4)
                    .map_or(0, |bytes| Record(&bytes).u32(0));
                structs::address(self, value, u64::from(length));
            }
            Kind::With(print) => print(self, value),
            // Out kinds of a call that failed or did not return; a Rest never yields another Rest.
            _ => self.pointer(value),
        }
    }

    /// `0x1f`, zero as `0`.
    pub(crate) fn hex(&mut self, value: u64) {
        if value == 0 {
            self.put("0")
        } else {
            self.put(format_args!("{value:#x}"))
        }
    }

    /// `0755`, at least three digits.
    pub(crate) fn octal(&mut self, value: u64) {
        self.put(format_args!("0{value:02o}"));
    }

    /// `0x1f`, zero as `NULL`.
    pub(crate) fn pointer(&mut self, value: u64) {
        if value == 0 {
            self.put("NULL")
        } else {
            self.put(format_args!("{value:#x}"))
        }
    }

    fn id(&mut self, value: u32) {
        if value == u32::MAX {
            self.put("-1")
        } else {
            self.put(value)
        }
    }

    /// `AT_FDCWD` or the descriptor.
    pub(crate) fn directory(&mut self, value: i32) {
        if value == libc::AT_FDCWD {
            self.put("AT_FDCWD")
        } else {
            self.put(value)
        }
    }

    /// `length` bytes at `address` (at most 4,096), or None if they cannot all be read.
    pub(crate) fn record(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        address.checked_add(length as u64)?;
        let mut bytes = vec![0; length.min(PATH)];
        self.memory.read(address, &mut bytes).then_some(bytes)
    }

    /// The structure at `address`, or the pointer if it cannot be read.
    pub(crate) fn structure(&mut self, layout: &Layout, address: u64) {
        match self.record(address, layout.size) {
            Some(bytes) if address != 0 => (layout.print)(self, &Record(&bytes)),
            _ => self.pointer(address),
        }
    }

    /// `count` structures from `address` on.
    pub(crate) fn array(&mut self, layout: &Layout, address: u64, count: u64) {
        self.list(address, layout.size, count, |printer, record| {
            (layout.print)(printer, record)
        });
    }

    /// `[…]` of `count` elements of `size` bytes from `address` on; elements that cannot be read end it.
    pub(crate) fn list(
        &mut self,
        address: u64,
        size: usize,
        count: u64,
        mut print: impl FnMut(&mut Self, &Record),
    ) {
        if address == 0 || (count > 0 && self.record(address, size).is_none()) {
            return self.pointer(address);
        }
        self.put("[");
        for index in 0..usize::try_from(count).unwrap_or(usize::MAX) {
            if self.line.is_full() {
                return;
            }
            self.separate(index);
            if index == SHOWN {
                self.put("...");
                break;
            }
            let element = address.wrapping_add((index * size) as u64);
            let Some(bytes) = self.record(element, size) else {
                self.put(format_args!("... /* {element:#x} */"));
                break;
            };
            print(self, &Record(&bytes));
        }
        self.put("]");
    }

    /// Quoted bytes, the first 32 of `length`; the pointer if they cannot be read.
    pub(crate) fn bytes(&mut self, address: u64, length: u64) {
        let shown = usize::try_from(length).unwrap_or(usize::MAX).min(SHOWN);
        match self.record(address, shown) {
            Some(bytes) if address != 0 => self.abbreviated(quote(&bytes), length > SHOWN as u64),
            _ => self.pointer(address),
        }
    }

    fn random(&mut self, address: u64) {
        let length = usize::try_from(self.returned()).unwrap_or(usize::MAX);
        match self.record(address, length.min(SHOWN)) {
            Some(bytes) if address != 0 => self.abbreviated(quote_hex(&bytes), length > SHOWN),
            _ => self.pointer(address),
        }
    }

    fn abbreviated(&mut self, quoted: String, cut: bool) {
        self.put(format_args!("{quoted}{}", if cut { "..." } else { "" }));
    }

    /// A NUL-terminated string, quoted, at most `limit` bytes of it; the pointer if it cannot be read.
    pub(crate) fn text(&mut self, address: u64, limit: usize) {
        match self.read_text(address, limit) {
            Some(text) if address != 0 => self.abbreviated(quote(&text.bytes), !text.terminated),
            _ => self.pointer(address),
        }
    }

    /// Reads piece by piece: a string may end just before memory that cannot be read.
    fn read_text(&self, address: u64, limit: usize) -> Option<Text> {
        let mut bytes = Vec::new();
        // One byte more than is shown tells whether the string ends there.
        while bytes.len() <= limit {
            let from = address.checked_add(bytes.len() as u64)?;
            let piece = usize::try_from(PIECE - from % PIECE).unwrap_or(0);
            let chunk = self.record(from, piece.min(limit + 1 - bytes.len()))?;
            if let Some(end) = chunk.iter().position(|&byte| byte == 0) {
                bytes.extend(chunk.get(..end)?);
                return Some(Text {
                    bytes,
                    terminated: true,
                });
            }
            bytes.extend(chunk);
        }
        bytes.truncate(limit);
        Some(Text {
            bytes,
            terminated: false,
        })
    }

    /// `0x7ffd… /* 35 vars */`.
    fn environment(&mut self, address: u64) {
        self.pointer(address);
        if address == 0 {
            return;
        }
        let mut count = 0;
        while count < COUNTED {
            let Some(bytes) = self.record(address.wrapping_add(count as u64 * 8), 8) else {
                return self.put(" /* ... */");
            };
            if Record(&bytes).u64(0) == 0 {
                return self.put(format_args!(
                    " /* {count} var{} */",
                    if count == 1 { "" } else { "s" }
                ));
            }
            count += 1;
        }
        self.put(format_args!(" /* {count} vars, ... */"));
    }

    /// `) = 3`, `) = -1 ENOENT (No such file or directory)`, `) = ?`.
    pub(crate) fn result(&mut self, answer: Answer) {
        self.line.start_result();
        self.put(") = ");
        match self.call.result {
            None => self.put("?"),
            Some(result) if (-LAST_ERROR..0).contains(&result) => self.failure(-result),
            Some(result) => self.answer(answer, result),
        }
    }

    fn failure(&mut self, number: i64) {
        let sign = if restarts(number) { "?" } else { "-1" };
        match errno(number) {
            Some(error) => self.put(format_args!("{sign} {} ({})", error.name, error.message)),
            None => self.put(format_args!("-1 (errno {number})")),
        }
    }

    fn answer(&mut self, answer: Answer, result: i64) {
        let value = result as u64;
        match answer {
            Answer::Number => self.put(result),
            Answer::Hex => self.hex(value),
            Answer::Mask => self.octal(value),
            Answer::Flags(_, flags) if value == 0 && flags.fields.is_empty() => self.put("0"),
            Answer::Flags(label, flags) => {
                self.hex(value);
                self.put(format_args!(" ({label}"));
                flags.print(self, value);
                self.put(")");
            }
            Answer::Choice(choice) => {
                self.put(result);
                if let Some(name) = choice.name(value) {
                    self.put(format_args!(" ({name})"));
                }
            }
            Answer::With(print) => {
                self.put(result);
                print(self, value);
            }
        }
    }
}

/// `S_ISUID|0755`: the permission bits of a mode, at least three digits.
pub(crate) fn permissions(printer: &mut Printer, mode: u32) {
    let special = u64::from(mode & 0o7000);
    if special != 0 {
        file::SPECIAL_BITS.print(printer, special);
        printer.put("|");
    }
    printer.octal(u64::from(mode & 0o777));
}
