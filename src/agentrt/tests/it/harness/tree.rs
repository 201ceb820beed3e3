//! Directories whose files are compared.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::scratch;

/// Two directories with the same files: one for the native run, one for the guest's.
pub struct Volume {
    native: PathBuf,
    guest: PathBuf,
    _directory: TempDir,
}

impl Volume {
    /// Two empty directories.
    pub fn new() -> Volume {
        Volume::filled(|_| {})
    }

    /// Two directories that `fill` was called on.
    pub fn filled(fill: impl Fn(&Path)) -> Volume {
        let directory = scratch();
        let volume = Volume {
            native: directory.path().join("native"),
            guest: directory.path().join("guest"),
            _directory: directory,
        };
        for path in [&volume.native, &volume.guest] {
            fs::create_dir(path).expect("a directory for files");
            fill(path);
        }
        volume
    }

    /// The directory for the native run; the guest sees its own at the same path.
    pub fn native(&self) -> &Path {
        &self.native
    }

    /// The directory for the guest's run.
    pub fn guest(&self) -> &Path {
        &self.guest
    }
}

/// Everything below `directory` but its times: a line each with type, mode, links, size, name, and
/// the contents or the target.
pub fn listing(directory: &Path) -> String {
    let mut text = String::new();
    list(directory, directory, &mut text);
    text
}

fn list(base: &Path, directory: &Path, text: &mut String) {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        let metadata = path.symlink_metadata().expect("metadata");
        let name = path.strip_prefix(base).expect("a path below");
        let size = if metadata.is_dir() {
            0
        } else {
            metadata.size()
        };
        let _ = write!(
            text,
            "{:06o} {} {size} {name:?}",
            metadata.mode(),
            metadata.nlink()
        );
        if metadata.is_symlink() {
            let _ = writeln!(text, " -> {:?}", fs::read_link(&path).expect("a link"));
        } else if metadata.is_dir() {
            text.push('\n');
            list(base, &path, text);
        } else if metadata.is_file() {
            let contents = fs::read(&path).expect("a file");
            let sum = contents
                .iter()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
                });
            let start = String::from_utf8_lossy(&contents[..contents.len().min(40)]).into_owned();
            let _ = writeln!(text, " {sum:016x} {start:?}");
        }
    }
}
