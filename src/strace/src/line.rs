//! A line of text that cannot outgrow its limit, and the way bytes of a guest are quoted in it.

use std::fmt::{self, Write};

/// The most bytes of a line; what does not fit is cut and marked with `...`.
pub(crate) const LINE: usize = 4096;

/// What the arguments must leave of the line, so that the result is always seen.
const RESULT: usize = 512;

const MARK: &str = "...";

/// A line under construction.
pub(crate) struct Line {
    text: String,
    limit: usize,
    full: bool,
}

impl Line {
    /// An empty line with room for the arguments.
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            limit: LINE - RESULT,
            full: false,
        }
    }

    /// Whether nothing more is taken: loops stop early by it.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Opens the part that was kept for the result.
    pub(crate) fn start_result(&mut self) {
        self.limit = LINE;
        self.full = false;
    }

    /// The finished text, at most [`LINE`] bytes.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.full {
            return Err(fmt::Error);
        }
        let room = self
            .limit
            .saturating_sub(MARK.len())
            .saturating_sub(self.text.len());
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        self.text.push_str(
            text.get(..text.floor_char_boundary(room))
                .unwrap_or_default(),
        );
        self.text.push_str(MARK);
        self.full = true;
        Err(fmt::Error)
    }
}

/// `bytes` between double quotes, with C escapes; octal escapes are as short as the next byte allows.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for (index, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ if bytes.get(index + 1).is_some_and(u8::is_ascii_digit) => {
                text.push_str(&format!("\\{byte:03o}"));
            }
            _ => text.push_str(&format!("\\{byte:o}")),
        }
    }
    text.push('"');
    text
}

/// `bytes` between double quotes, each in hexadecimal.
pub(crate) fn quote_hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{digits}\"")
}
