use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use super::store::{analysis_name, hash_name};
use super::*;
use crate::sample::program;

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
    assert_eq!(known.as_deref(), Some(&*made));
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
            Err(LookupError::Analysis(AnalysisError::Elf(_)))
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
