use std::cell::Cell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use super::store::{DIRECTORY_MAX, ENTRIES_MAX, analysis_name, hash_name};
use super::*;
use crate::rewriter::CANDIDATES_MAX;
use crate::sample::{Elf, Header, load, program};

/// mov eax, 39; syscall; ret
const GETPID: [u8; 8] = [0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3];

struct Fixture {
    directory: TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let bytes = program(&GETPID, &[(0, 8)], &[]);
        fs::write(&path, &bytes).unwrap();
        Self {
            directory,
            path,
            bytes,
        }
    }

    fn cache_path(&self) -> PathBuf {
        self.directory.path().join("a/cache")
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.cache_path()).unwrap()
    }

    fn file(&self) -> File {
        File::open(&self.path).unwrap()
    }

    fn entry(&self) -> PathBuf {
        self.cache_path()
            .join(analysis_name(blake3::hash(&self.bytes)))
    }

    /// Waits until the file's time stamps can be trusted.
    fn settle(&self) {
        while !Identity::of(&self.file()).unwrap().is_settled() {
            sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn one_process_analyses_a_file_once() {
    let fixture = Fixture::new();
    for cache in [Cache::disabled(), fixture.cache()] {
        let first = cache.analysis(&fixture.file()).unwrap();
        assert_eq!(first.sites.len(), 1);
        let second = cache.analysis(&fixture.file()).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }
}

#[test]
fn a_later_process_takes_the_entry_from_disk() {
    let fixture = Fixture::new();
    let made = fixture.cache().analysis(&fixture.file()).unwrap();
    let name = analysis_name(blake3::hash(&fixture.bytes));
    let planted = Analysis {
        unknown: vec![7],
        ..Analysis::default()
    };
    assert_ne!(*made, planted);
    Store::open(&fixture.cache_path())
        .unwrap()
        .save_analysis(blake3::hash(&fixture.bytes), &planted);
    assert!(fixture.cache_path().join(name).exists());
    assert_eq!(*fixture.cache().analysis(&fixture.file()).unwrap(), planted);
}

#[test]
fn a_settled_file_is_known_without_reading_it() {
    let fixture = Fixture::new();
    fixture.settle();
    let made = fixture.cache().analysis(&fixture.file()).unwrap();
    let identity = Identity::of(&fixture.file()).unwrap();
    assert!(fixture.cache_path().join(hash_name(&identity)).exists());
    let known = fixture.cache().recall(&identity);
    assert_eq!(known.unwrap().unwrap(), made);
}

#[test]
fn a_file_just_changed_is_not_tied_to_its_time_stamps() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    fs::write(&fixture.path, &fixture.bytes).unwrap();
    cache.analysis(&fixture.file()).unwrap();
    let identity = Identity::of(&fixture.file()).unwrap();
    assert!(!fixture.cache_path().join(hash_name(&identity)).exists());
}

#[test]
fn changed_content_is_analysed_anew() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert_eq!(cache.analysis(&fixture.file()).unwrap().sites.len(), 1);
    fs::write(&fixture.path, program(&[0xc3], &[(0, 1)], &[])).unwrap();
    assert_eq!(cache.analysis(&fixture.file()).unwrap().sites.len(), 0);
}

#[test]
fn damaged_and_foreign_entries_are_replaced() {
    let fixture = Fixture::new();
    let made = fixture.cache().analysis(&fixture.file()).unwrap();
    let good = fs::read(fixture.entry()).unwrap();

    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut other_version = good.clone();
    other_version[8] ^= 0xff;
    let bad = [
        Vec::new(),
        b"something else".to_vec(),
        good[..good.len() - 1].to_vec(),
        flipped,
        other_version,
    ];
    for bytes in bad {
        fs::write(fixture.entry(), bytes).unwrap();
        let again = fixture.cache().analysis(&fixture.file()).unwrap();
        assert_eq!(again, made);
        assert_eq!(fs::read(fixture.entry()).unwrap(), good);
    }
}

#[test]
fn an_entry_under_another_name_is_not_believed() {
    let fixture = Fixture::new();
    fixture.cache().analysis(&fixture.file()).unwrap();
    let other = blake3::hash(b"another file");
    fs::copy(
        fixture.entry(),
        fixture.cache_path().join(analysis_name(other)),
    )
    .unwrap();
    let store = Store::open(&fixture.cache_path()).unwrap();
    assert_eq!(store.load_analysis(other), None);
}

#[test]
fn nothing_temporary_is_left() {
    let fixture = Fixture::new();
    fixture.cache().analysis(&fixture.file()).unwrap();
    let names = fs::read_dir(fixture.cache_path()).unwrap();
    for name in names {
        let name = name.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".tmp"), "{name}");
    }
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.cache_path();
    fs::create_dir_all(&path).unwrap();
    for mode in [0o770, 0o702, 0o777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = Cache::open(&path).unwrap_err();
        assert!(matches!(error, CacheError::WritableByOthers { mode: found, .. } if found == mode));
        assert!(error.to_string().contains("chmod go-w"));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    assert!(Cache::open(&path).is_ok());
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.cache_path();
    fs::create_dir_all(&path).unwrap();
    // Giving a directory away takes root; without it, the root directory serves as the example.
    let path = match std::os::unix::fs::chown(&path, Some(12345), None) {
        Ok(()) => path,
        Err(_) => PathBuf::from("/"),
    };
    let error = Cache::open(&path).unwrap_err();
    assert!(matches!(error, CacheError::Owner { .. }), "{error}");
    assert!(error.to_string().contains("chown"));
}

#[test]
fn a_directory_made_is_private() {
    let fixture = Fixture::new();
    let _ = fixture.cache();
    let mode = fs::metadata(fixture.cache_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_path_that_is_no_directory_is_refused() {
    let fixture = Fixture::new();
    assert!(matches!(
        Cache::open(&fixture.path),
        Err(CacheError::Open { .. })
    ));
}

#[test]
fn what_cannot_be_analysed_is_an_error_each_time() {
    let fixture = Fixture::new();
    fs::write(&fixture.path, b"#!/bin/sh\n").unwrap();
    let cache = fixture.cache();
    for _ in 0..2 {
        assert!(matches!(
            cache.analysis(&fixture.file()),
            Err(LookupError::Analysis(error)) if matches!(*error, AnalysisError::Elf(_))
        ));
    }
}

#[test]
fn memory_is_bounded() {
    let large = Arc::new(Analysis {
        unknown: (0..MEMORY_CANDIDATES_MAX as u64 / 4).collect(),
        ..Analysis::default()
    });
    let mut memory = Memory::default();
    for number in 0..20_u8 {
        memory.keep(blake3::hash(&[number]), &large);
    }
    assert_eq!(memory.analyses.len(), 3);
    assert_eq!(memory.analyses_by_age.len(), 3);
    assert!(memory.analyses.contains_key(&blake3::hash(&[19])));
}

/// A sparse file of [`FILE_MAX`] bytes that counts what is read of it.
struct Large {
    start: Vec<u8>,
    read: Cell<usize>,
}

impl ReadAt for Large {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read.set(self.read.get() + buffer.len());
        buffer.fill(0);
        self.start.as_slice().read_at(offset, buffer)?;
        Ok(buffer.len())
    }

    fn size(&self) -> u64 {
        FILE_MAX
    }
}

#[test]
fn of_a_file_without_code_only_the_headers_are_read() {
    let data = Header {
        flags: 6,
        ..load(0, 0, 0x1000)
    };
    let starts = [
        (b"some data".to_vec(), false),
        (Elf::new(vec![], 64).bytes(), false),
        (Elf::new(vec![data], 0x1000).bytes(), true),
    ];
    for (start, is_usable) in starts {
        let file = Large {
            start,
            read: Cell::new(0),
        };
        let found = Cache::disabled().look_up(&file, FILE_MAX);
        assert_eq!(found.is_ok(), is_usable);
        assert!(file.read.get() <= 4096, "{} bytes read", file.read.get());
    }
}

#[test]
fn a_file_too_large_is_not_read() {
    let file = Large {
        start: program(&GETPID, &[(0, 8)], &[]),
        read: Cell::new(0),
    };
    let error = Cache::disabled().look_up(&file, FILE_MAX + 1).unwrap_err();
    assert!(matches!(
        error,
        LookupError::Analysis(error) if matches!(*error, AnalysisError::TooLarge(_))
    ));
    assert_eq!(file.read.get(), 0);
}

#[test]
fn known_content_is_read_once_and_in_chunks() {
    let start = program(&GETPID, &[(0, 8)], &[]);
    let size = 4 * HASH_CHUNK as u64 + 1;
    let file = Large {
        start,
        read: Cell::new(0),
    };
    let cache = Cache::disabled();
    let first = cache.look_up(&file, size).unwrap();
    let whole = read(&file, size).unwrap();
    assert_eq!(first.hash, Some(blake3::hash(&whole)));
    file.read.set(0);
    let second = cache.look_up(&file, size).unwrap();
    assert!(Arc::ptr_eq(&first.analysis, &second.analysis));
    let read = file.read.get() as u64;
    assert!((size..size + 4096).contains(&read), "{read} bytes read");
}

#[test]
fn failures_are_remembered_even_of_files_just_changed() {
    let fixture = Fixture::new();
    let text = [0x0f, 0x05].repeat(CANDIDATES_MAX + 1);
    let contents = [b"#!/bin/sh\n".to_vec(), program(&text, &[], &[])];
    for (number, bytes) in contents.iter().enumerate() {
        let path = fixture.directory.path().join(number.to_string());
        fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        let cache = fixture.cache();
        let made = cache.analysis(&file).unwrap_err();
        let known = cache.recall(&Identity::of(&file).unwrap());
        match (made, known) {
            (LookupError::Analysis(made), Some(Err(LookupError::Analysis(known)))) => {
                assert!(Arc::ptr_eq(&made, &known));
            }
            other => panic!("{other:?}"),
        }
        // Content that can be analysed after all has another identity.
        fs::write(&path, &fixture.bytes).unwrap();
        assert!(cache.analysis(&file).is_ok());
    }
}

#[test]
fn what_is_known_of_files_is_bounded() {
    let fixture = Fixture::new();
    let identity = Identity::of(&fixture.file()).unwrap();
    let failure = Known::Failure(Arc::new(AnalysisError::TooManyCandidates));
    let mut memory = Memory::default();
    for inode in 0..MEMORY_FILES_MAX as u64 + 10 {
        memory.tie(Identity { inode, ..identity }, failure.clone());
    }
    assert_eq!(memory.files.len(), MEMORY_FILES_MAX);
    assert_eq!(memory.files_by_age.len(), MEMORY_FILES_MAX);
}

/// Plants `count` entries of `size` bytes, each a second older than the next, and tells their paths.
fn plant(directory: &Path, count: usize, size: u64) -> Vec<PathBuf> {
    let now = SystemTime::now();
    (0..count)
        .map(|number| {
            let name = analysis_name(blake3::hash(&number.to_le_bytes()));
            let path = directory.join(name);
            let file = File::create(&path).unwrap();
            file.set_len(size).unwrap();
            let age = Duration::from_secs((count - number) as u64);
            file.set_modified(now - age).unwrap();
            path
        })
        .collect()
}

fn present(paths: &[PathBuf]) -> Vec<bool> {
    paths.iter().map(|path| path.exists()).collect()
}

#[test]
fn the_oldest_entries_make_room_when_there_are_too_many_bytes() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let planted = plant(&fixture.cache_path(), 5, DIRECTORY_MAX / 4);
    cache.analysis(&fixture.file()).unwrap();
    assert!(fixture.entry().exists());
    assert_eq!(present(&planted), [false, false, true, true, true]);
}

#[test]
fn the_oldest_entries_make_room_when_there_are_too_many() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let planted = plant(&fixture.cache_path(), ENTRIES_MAX + 2, 0);
    // The index counts too.
    fixture.settle();
    cache.analysis(&fixture.file()).unwrap();
    assert!(fixture.entry().exists());
    assert!(present(&planted[..4]).iter().all(|present| !present));
    assert!(present(&planted[4..]).iter().all(|present| *present));
    let names = fs::read_dir(fixture.cache_path()).unwrap();
    assert_eq!(names.count(), ENTRIES_MAX);
}

#[test]
fn only_files_of_the_cache_make_room() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let own = ["1-2-3.tmp".to_owned(), analysis_name(blake3::hash(b""))];
    let others = [
        "notes.txt",
        "a.sites",
        "x-y-z.tmp",
        "1.tmp",
        "1-2-3.tmp.txt",
    ];
    for name in own.iter().map(String::as_str).chain(others) {
        let file = File::create(fixture.cache_path().join(name)).unwrap();
        file.set_len(DIRECTORY_MAX).unwrap();
    }
    cache.analysis(&fixture.file()).unwrap();
    assert!(fixture.entry().exists());
    assert!(
        own.iter()
            .all(|name| !fixture.cache_path().join(name).exists())
    );
    assert!(
        others
            .iter()
            .all(|name| fixture.cache_path().join(name).exists())
    );
}

#[test]
fn processes_that_make_room_at_once_do_not_disturb_each_other() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    plant(&fixture.cache_path(), ENTRIES_MAX, 0);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let store = Store::open(&fixture.cache_path()).unwrap();
            scope.spawn(move || {
                for number in 0..20_u8 {
                    let hash = blake3::hash(&[thread, number]);
                    store.save_analysis(hash, &Analysis::default());
                }
            });
        }
    });
    cache.analysis(&fixture.file()).unwrap();
    assert!(fixture.entry().exists());
    let names = fs::read_dir(fixture.cache_path()).unwrap();
    assert!(names.count() <= ENTRIES_MAX);
}
