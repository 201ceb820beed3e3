//! The `#!` line of a script, read the way Linux's `binfmt_script` does.

/// Bytes at the start of a file that Linux looks at (`BINPRM_BUF_SIZE`).
pub const LINE_MAX: usize = 256;

/// Who runs a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Path of the interpreter, not empty.
    pub interpreter: Vec<u8>,
    /// The rest of the line as one argument, if there is a rest.
    pub argument: Option<Vec<u8>>,
}

/// Parses the start of a file: its first [`LINE_MAX`] bytes, or the whole file if it is shorter.
/// Bytes beyond [`LINE_MAX`] are ignored.
///
/// `None` if this is not a script that Linux would run: no `#!`, no interpreter, or a line so long
/// that the interpreter's name may have been cut off. A cut argument is fine.
pub fn parse(start_of_file: &[u8]) -> Option<Script> {
    // As in Linux, short files are padded with NULs and the last byte may be overwritten by one.
    let mut line = [0; LINE_MAX];
    let length = start_of_file.len().min(LINE_MAX);
    line[..length].copy_from_slice(&start_of_file[..length]);
    let rest = line.strip_prefix(b"#!")?;

    let text = match rest.iter().position(|&byte| byte == b'\n' || byte == 0) {
        Some(end) if rest[end] == b'\n' => &rest[..end],
        _ => without_newline(rest)?,
    };
    let text = trim_end(text);
    let text = &text[text.iter().position(|&byte| !is_blank(byte))?..];

    let name_end = text.iter().position(|&byte| is_blank(byte) || byte == 0);
    let (interpreter, rest) = text.split_at(name_end.unwrap_or(text.len()));
    if interpreter.is_empty() {
        return None;
    }
    let argument = rest
        .first()
        .is_some_and(|&byte| is_blank(byte))
        .then(|| rest.iter().position(|&byte| !is_blank(byte)))
        .flatten()
        .map(|start| until_nul(&rest[start..]).to_vec());
    Some(Script {
        interpreter: interpreter.to_vec(),
        argument,
    })
}

/// What counts of a line that has no end: all but the last byte, if the name is surely whole.
fn without_newline(rest: &[u8]) -> Option<&[u8]> {
    let name = rest.iter().position(|&byte| !is_blank(byte))?;
    rest[name..]
        .iter()
        .any(|&byte| is_blank(byte) || byte == 0)
        .then(|| &rest[..rest.len() - 1])
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim_end(text: &[u8]) -> &[u8] {
    let length = text.iter().rposition(|&byte| !is_blank(byte));
    &text[..length.map_or(0, |last| last + 1)]
}

fn until_nul(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == 0);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests;
