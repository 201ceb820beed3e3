//! Analyses by content, in memory and on disk.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use blake3::{Hash, Hasher};
use thiserror::Error;

use super::{Analysis, AnalysisError, FILE_MAX, analyse};
use crate::elf::{self, ElfError, ReadAt, read_exact};

mod store;

use store::Store;

/// Candidates whose analyses are kept in memory at most, about 80 bytes each; the oldest analysis is
/// dropped first.
const MEMORY_CANDIDATES_MAX: usize = 1 << 19;
/// Files known by their identity that are kept in memory at most.
const MEMORY_FILES_MAX: usize = 4096;
/// A file changed less than this many seconds ago may change again without its time stamps showing
/// it (they advance with the kernel's tick), so its content is not tied to them. That a patch is
/// placed only over the bytes it expects does not make up for it: those are the displaced
/// instructions alone, and the next version of the file may have them without the `syscall` behind
/// them, or with a branch between them. A failure is tied all the same, since the worst it can do is
/// to leave every site of the next version alone.
const SETTLED_SECONDS: u64 = 2;
/// Bytes that are read at a time to hash a file.
const HASH_CHUNK: usize = 1 << 20;

/// Remembers analyses, in the process and, if it has a directory, from run to run.
///
/// Analyses are keyed by the BLAKE3 hash of the whole file. A second key, the file's identity and
/// time stamps, leads to the hash without reading the file. What the directory holds is only ever
/// an optimisation: an entry that is missing, damaged or of another version is made anew, and a
/// failure to write one is no error.
#[derive(Debug)]
pub struct Cache {
    store: Option<Store>,
    memory: Mutex<Memory>,
}

/// Why a cache directory is not used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The directory can be neither opened nor made.
    #[error("cannot open the cache directory {path}")]
    Open {
        /// The directory.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// Somebody else owns the directory.
    #[error(
        "the cache directory {path} belongs to user {owner}, not to user {user}: \
         choose another directory or change its owner with chown"
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// Who this process is.
        user: u32,
    },
    /// Others could plant entries.
    #[error(
        "the cache directory {path} has mode {mode:03o} and can be written by others: \
         take that right away with chmod go-w"
    )]
    WritableByOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// Why there is no analysis of a file.
#[derive(Debug, Error)]
pub enum LookupError {
    /// The file cannot be read.
    #[error("cannot read the file")]
    Read(#[from] io::Error),
    /// The file cannot be analysed.
    #[error("cannot analyse the file")]
    Analysis(#[source] Arc<AnalysisError>),
}

impl From<AnalysisError> for LookupError {
    fn from(error: AnalysisError) -> Self {
        match error {
            AnalysisError::Elf(ElfError::Io(error)) => Self::Read(error),
            error => Self::Analysis(Arc::new(error)),
        }
    }
}

impl Cache {
    /// Keeps analyses in `directory`, which is made if it is missing, accessible to this user only.
    ///
    /// # Errors
    ///
    /// The directory cannot be opened, or others than the effective user could write to it.
    pub fn open(directory: &Path) -> Result<Self, CacheError> {
        Ok(Self {
            store: Some(Store::open(directory)?),
            memory: Mutex::default(),
        })
    }

    /// Keeps analyses in memory only.
    pub fn disabled() -> Self {
        Self {
            store: None,
            memory: Mutex::default(),
        }
    }

    /// The analysis of `file`, from memory, from disk, or made now. This blocks. A file with code
    /// is read unless its identity is known, and held in memory if its content is not known either;
    /// of any other file only the headers are read.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or not be analysed; only the latter is remembered.
    pub fn analysis(&self, file: &File) -> Result<Arc<Analysis>, LookupError> {
        let identity = Identity::of(file)?;
        if let Some(known) = self.recall(&identity) {
            return known;
        }
        // Asked before the first byte is read: by the end of a long read it says nothing of changes
        // at its beginning.
        let is_settled = identity.is_settled();
        let found = self.look_up(file, identity.size);
        if Identity::of(file).is_ok_and(|now| now == identity) {
            match &found {
                Ok(Found {
                    hash: Some(hash), ..
                }) if is_settled => {
                    self.memory().tie(identity, Known::Content(*hash));
                    if let Some(store) = &self.store {
                        store.save_hash(&identity, *hash);
                    }
                }
                Err(LookupError::Analysis(error)) => {
                    let failure = Known::Failure(Arc::clone(error));
                    self.memory().tie(identity, failure);
                }
                _ => {}
            }
        }
        found.map(|found| found.analysis)
    }

    /// The analysis of a file that is not known by its identity.
    fn look_up(&self, file: &impl ReadAt, size: u64) -> Result<Found, LookupError> {
        if size > FILE_MAX {
            return Err(AnalysisError::TooLarge(size).into());
        }
        let image = elf::parse(file).map_err(AnalysisError::from)?;
        let has_code = image
            .segments
            .iter()
            .any(|segment| segment.protection.execute && segment.file_size > 0);
        if !has_code {
            return Ok(Found {
                analysis: Arc::default(),
                hash: None,
            });
        }
        let mut hash = hash(file, size)?;
        let analysis = match self.load(hash) {
            Some(analysis) => analysis,
            None => {
                let bytes = read(file, size)?;
                // The file may have changed since it was hashed.
                hash = blake3::hash(&bytes);
                let analysis = Arc::new(analyse(&bytes)?);
                if let Some(store) = &self.store {
                    store.save_analysis(hash, &analysis);
                }
                analysis
            }
        };
        self.memory().keep(hash, &analysis);
        Ok(Found {
            analysis,
            hash: Some(hash),
        })
    }

    /// What is known of a file by its identity alone.
    fn recall(&self, identity: &Identity) -> Option<Result<Arc<Analysis>, LookupError>> {
        let known = self.memory().files.get(identity).cloned();
        let hash = match known {
            Some(Known::Content(hash)) => hash,
            Some(Known::Failure(error)) => return Some(Err(LookupError::Analysis(error))),
            None => self.store.as_ref()?.load_hash(identity)?,
        };
        let analysis = self.load(hash)?;
        let mut memory = self.memory();
        memory.keep(hash, &analysis);
        memory.tie(*identity, Known::Content(hash));
        Some(Ok(analysis))
    }

    fn load(&self, hash: Hash) -> Option<Arc<Analysis>> {
        if let Some(analysis) = self.memory().analyses.get(&hash) {
            return Some(Arc::clone(analysis));
        }
        self.store.as_ref()?.load_analysis(hash).map(Arc::new)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // The maps are caches: whatever a panicking thread left in them is still true.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An analysis.
#[derive(Debug)]
struct Found {
    analysis: Arc<Analysis>,
    /// The file's, if it was read.
    hash: Option<Hash>,
}

/// What the identity of a file leads to.
#[derive(Clone, Debug)]
enum Known {
    Content(Hash),
    Failure(Arc<AnalysisError>),
}

/// What this process remembers.
#[derive(Debug, Default)]
struct Memory {
    analyses: HashMap<Hash, Arc<Analysis>>,
    analyses_by_age: VecDeque<Hash>,
    /// Sum over `analyses`.
    weight: usize,
    files: HashMap<Identity, Known>,
    files_by_age: VecDeque<Identity>,
}

impl Memory {
    fn keep(&mut self, hash: Hash, analysis: &Arc<Analysis>) {
        if self.analyses.insert(hash, Arc::clone(analysis)).is_none() {
            self.analyses_by_age.push_back(hash);
            self.weight += weight(analysis);
        }
        while self.weight > MEMORY_CANDIDATES_MAX
            && let Some(oldest) = self.analyses_by_age.pop_front()
        {
            if let Some(dropped) = self.analyses.remove(&oldest) {
                self.weight -= weight(&dropped);
            }
        }
    }

    fn tie(&mut self, identity: Identity, known: Known) {
        if self.files.insert(identity, known).is_none() {
            self.files_by_age.push_back(identity);
        }
        if self.files.len() > MEMORY_FILES_MAX
            && let Some(oldest) = self.files_by_age.pop_front()
        {
            self.files.remove(&oldest);
        }
    }
}

/// What an analysis counts for; files without candidates are not free either.
fn weight(analysis: &Analysis) -> usize {
    analysis.sites.len() + analysis.rejected.len() + analysis.unknown.len() + 1
}

/// A file as its file system knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_secs());
        let changed = u64::try_from(self.changed.0).unwrap_or(0);
        changed.saturating_add(SETTLED_SECONDS) <= now
    }

    fn to_bytes(self) -> Vec<u8> {
        let (modified, changed) = (self.modified, self.changed);
        let stamps = [modified.0, modified.1, changed.0, changed.1].map(i64::cast_unsigned);
        [self.device, self.inode, self.size]
            .into_iter()
            .chain(stamps)
            .flat_map(u64::to_le_bytes)
            .collect()
    }
}

/// The hash of the first `size` bytes.
fn hash(file: &impl ReadAt, size: u64) -> io::Result<Hash> {
    let mut hasher = Hasher::new();
    let mut chunk = vec![0; HASH_CHUNK];
    let mut offset = 0;
    while offset < size {
        let length = usize::try_from(size - offset).map_or(HASH_CHUNK, |left| left.min(HASH_CHUNK));
        fill(file, offset, &mut chunk[..length])?;
        hasher.update(&chunk[..length]);
        offset += length as u64;
    }
    Ok(hasher.finalize())
}

/// The first `size` bytes, at most [`FILE_MAX`].
fn read(file: &impl ReadAt, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    fill(file, 0, &mut bytes)?;
    Ok(bytes)
}

fn fill(file: &impl ReadAt, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    if read_exact(file, offset, buffer)? {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests;
