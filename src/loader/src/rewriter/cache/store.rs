//! The cache's files.
//!
//! One file per entry: `<hash of the file>.sites` holds an analysis as JSON, and
//! `<hash of the identity>.hash` the 32 bytes of a file's hash. Each starts with a header:
//!
//! ```text
//!  0  8  magic
//!  8  4  version, little-endian
//! 12 32  BLAKE3 hash of the key and the payload
//! 44     payload
//! ```
//!
//! Files are written under a temporary name and renamed, so that a reader sees a whole one. Before a
//! file is written, the oldest ones make room for it. Several processes may do so at once: each may
//! find that another has already removed a file, and together they may exceed the bounds by what
//! they are just writing.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use blake3::{Hash, Hasher};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::Analysis;
use super::{CacheError, Identity};

const MAGIC: [u8; 8] = *b"agentrtS";
/// Raised whenever the format changes or the analysis gives other results for the same file.
const VERSION: u32 = 1;
const HASH_SIZE: usize = 32;
const HEADER_SIZE: u64 = (MAGIC.len() + size_of::<u32>() + HASH_SIZE) as u64;
/// Largest entry that is written or read, in bytes. An analysis in which all candidates are sites with
/// the longest runs has 11 MB.
const ENTRY_MAX: u64 = 16 << 20;
/// Most bytes in all entries together.
pub(super) const DIRECTORY_MAX: u64 = 64 << 20;
/// Most entries.
pub(super) const ENTRIES_MAX: usize = 1024;
const _: () = assert!(ENTRY_MAX <= DIRECTORY_MAX);
const OTHERS_WRITE: u32 = 0o022;
const PERMISSIONS: u32 = 0o7777;

/// A directory that only this user can write to.
#[derive(Debug)]
pub(super) struct Store {
    directory: OwnedFd,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, CacheError> {
        let failed = |source: io::Error| CacheError::Open {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let stat = rustix::fs::fstat(&directory).map_err(|error| failed(error.into()))?;
        let user = rustix::process::geteuid().as_raw();
        if stat.st_uid != user {
            return Err(CacheError::Owner {
                path: path.to_owned(),
                owner: stat.st_uid,
                user,
            });
        }
        if stat.st_mode & OTHERS_WRITE != 0 {
            return Err(CacheError::WritableByOthers {
                path: path.to_owned(),
                mode: stat.st_mode & PERMISSIONS,
            });
        }
        Ok(Self { directory })
    }

    pub(super) fn load_analysis(&self, hash: Hash) -> Option<Analysis> {
        let payload = self.load(&analysis_name(hash))?;
        let analysis: Analysis = serde_json::from_slice(&payload).ok()?;
        analysis.is_well_formed().then_some(analysis)
    }

    pub(super) fn save_analysis(&self, hash: Hash, analysis: &Analysis) {
        if let Ok(payload) = serde_json::to_vec(analysis) {
            self.save(&analysis_name(hash), &payload);
        }
    }

    pub(super) fn load_hash(&self, identity: &Identity) -> Option<Hash> {
        let payload = self.load(&hash_name(identity))?;
        Some(Hash::from_bytes(payload.try_into().ok()?))
    }

    pub(super) fn save_hash(&self, identity: &Identity, hash: Hash) {
        self.save(&hash_name(identity), hash.as_bytes());
    }

    fn load(&self, name: &str) -> Option<Vec<u8>> {
        // Without NONBLOCK, a FIFO of this name would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        File::from(file)
            .take(ENTRY_MAX)
            .read_to_end(&mut bytes)
            .ok()?;
        let rest = bytes.strip_prefix(&MAGIC)?;
        let rest = rest.strip_prefix(&VERSION.to_le_bytes())?;
        let (sum, payload) = rest.split_at_checked(HASH_SIZE)?;
        (checksum(name, payload).as_bytes() == sum).then(|| payload.to_vec())
    }

    /// Writes an entry; a failure is of no consequence but that the entry is made again next time.
    fn save(&self, name: &str, payload: &[u8]) {
        let size = HEADER_SIZE.saturating_add(payload.len() as u64);
        if size > ENTRY_MAX || self.make_room(size).is_err() {
            return;
        }
        let temporary = temporary_name();
        let written = self.write(&temporary, name, payload).and_then(|()| {
            rustix::fs::renameat(&self.directory, &temporary, &self.directory, name)
                .map_err(io::Error::from)
        });
        if written.is_err() {
            let _ = self.remove(&temporary);
        }
    }

    /// Removes the oldest entries until one of `size` bytes more is within the bounds.
    fn make_room(&self, size: u64) -> Result<(), Errno> {
        let mut entries = self.entries()?;
        entries.sort_by_key(|entry| entry.modified);
        let mut count = entries.len();
        let mut total = entries
            .iter()
            .fold(size, |total, entry| total.saturating_add(entry.size));
        for entry in &entries {
            if count < ENTRIES_MAX && total <= DIRECTORY_MAX {
                break;
            }
            self.remove(&entry.name)?;
            count -= 1;
            total = total.saturating_sub(entry.size);
        }
        Ok(())
    }

    /// What the directory holds of this cache's files, temporary ones and those that a crash left
    /// behind too.
    fn entries(&self) -> Result<Vec<Entry>, Errno> {
        let mut entries = Vec::new();
        for found in Dir::read_from(&self.directory)? {
            let found = found?;
            if !is_own_name(found.file_name()) {
                continue;
            }
            let name = found.file_name().to_owned();
            let stat = match rustix::fs::statat(&self.directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                entries.push(Entry {
                    name,
                    size: u64::try_from(stat.st_size).unwrap_or(0),
                    modified: (stat.st_mtime, stat.st_mtime_nsec),
                });
            }
        }
        Ok(entries)
    }

    /// Removes a file, unless another process was faster.
    fn remove(&self, name: impl rustix::path::Arg) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    fn write(&self, temporary: &str, name: &str, payload: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(rustix::fs::openat(
            &self.directory,
            OsStr::new(temporary),
            flags,
            mode,
        )?);
        file.write_all(&MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(checksum(name, payload).as_bytes())?;
        file.write_all(payload)
    }
}

/// A file of the directory.
struct Entry {
    name: CString,
    size: u64,
    modified: (i64, u64),
}

/// Whether a name is one that this module gives: a directory may hold other files too.
fn is_own_name(name: &CStr) -> bool {
    let Some((stem, extension)) = name.to_str().ok().and_then(|name| name.split_once('.')) else {
        return false;
    };
    match extension {
        "sites" | "hash" => Hash::from_hex(stem).is_ok(),
        "tmp" => {
            let numbers = stem.split('-');
            numbers.clone().count() == 3
                && numbers
                    .flat_map(str::bytes)
                    .all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

/// Covers the name too: a file put under another name is not what it claims to be.
fn checksum(name: &str, payload: &[u8]) -> Hash {
    Hasher::new()
        .update(name.as_bytes())
        .update(payload)
        .finalize()
}

pub(super) fn analysis_name(hash: Hash) -> String {
    format!("{}.sites", hash.to_hex())
}

pub(super) fn hash_name(identity: &Identity) -> String {
    format!("{}.hash", blake3::hash(&identity.to_bytes()).to_hex())
}

fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = rustix::process::getpid().as_raw_nonzero();
    // Process ids recur, and a crash may have left a file behind.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_nanos());
    format!("{process}-{now}-{count}.tmp")
}
