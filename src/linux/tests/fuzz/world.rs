//! A guest's surroundings, and what must not change in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentrt_linux::guest::Config;
use agentrt_linux::{Guest, StartError};
use agentrt_loader::rewriter::Cache;
use agentrt_vfs::Volume;

use crate::elf;

/// What a file outside the guest's tree contains.
pub const SECRET: &[u8] = b"what no guest may see 5f0c7d31";
/// Bytes of a guest's memory.
pub const MEMORY: u64 = 64 << 20;
/// Bytes that a guest's changes to files may take.
pub const QUOTA: u64 = 16 << 20;
/// Bytes that the process may hold beyond what a guest has a right to: caches, allocator, tables.
const SLACK: u64 = 96 << 20;
/// Most bytes of a file that a test lets a guest write to a volume.
const FILE_SIZE_MAX: u64 = 16 << 20;

/// Can guests run here? Says so if not.
pub fn has_kvm() -> bool {
    let there = Path::new("/dev/kvm").exists();
    if !there {
        eprintln!("skipped: no /dev/kvm");
    }
    there
}

/// A directory with an image, two volumes, and a file that is in none of them.
pub struct World {
    directory: tempfile::TempDir,
    before: BTreeMap<PathBuf, String>,
    rewriter: Arc<Cache>,
}

impl World {
    /// A world with some files of every kind.
    pub fn new() -> World {
        limit_file_sizes();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("canary"), SECRET).unwrap();
        for name in ["image/dir/sub", "image/volume", "volume/dir", "fixed"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["image/file", "image/dir/file", "volume/file", "fixed/file"] {
            fs::write(root.join(name), vec![b'x'; 9000]).unwrap();
        }
        let canary = root.join("canary");
        let links = [
            ("image/link", Path::new("file")),
            ("image/loop", Path::new("loop")),
            ("image/up", Path::new("../canary")),
            ("image/far", canary.as_path()),
            ("volume/up", Path::new("../canary")),
            ("volume/far", canary.as_path()),
        ];
        for (name, target) in links {
            symlink(target, root.join(name)).unwrap();
        }
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("image/fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let world = World {
            directory,
            before: BTreeMap::new(),
            rewriter: Arc::new(Cache::disabled()),
        };
        // exit_group(0)
        world.add_program("program", &elf::program(b"\xb8\xe7\0\0\0\x31\xff\x0f\x05"));
        world.add_program("script", b"#!/program argument\n");
        World {
            before: world.untouchable(),
            ..world
        }
    }

    /// Puts a program into the image; not to be done while a guest runs.
    pub fn add_program(&self, name: &str, contents: &[u8]) {
        let path = self.directory.path().join("image").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A guest that is about to run `program`, without standard streams.
    pub fn guest(&self, program: &str) -> Result<Guest, StartError> {
        Guest::new(self.config(program))
    }

    /// What [`World::guest`] makes a guest of.
    pub fn config(&self, program: &str) -> Config {
        let root = self.directory.path();
        let volume = |host: &str, guest: &str, read_only| Volume {
            host: root.join(host),
            guest: guest.into(),
            read_only,
        };
        let mut files = agentrt_vfs::Config::new(root.join("image"));
        files.overlay_quota = QUOTA;
        files.volumes = vec![
            volume("volume", "/volume", false),
            volume("fixed", "/fixed", true),
        ];
        Config {
            program: program.as_bytes().to_vec(),
            arguments: vec![program.as_bytes().to_vec()],
            environment: vec![b"PATH=/".to_vec()],
            directory: b"/".to_vec(),
            files,
            memory: MEMORY,
            streams: [None, None, None],
            ignored_signals: Vec::new(),
            rewriter: Arc::clone(&self.rewriter),
            trace: None,
        }
    }

    /// Panics if anything but the writable volume has changed.
    pub fn check_untouched(&self) {
        let after = self.untouchable();
        for (path, description) in &self.before {
            assert_eq!(Some(description), after.get(path), "{}", path.display());
        }
        assert_eq!(self.before.len(), after.len(), "files appeared: {after:?}");
    }

    fn untouchable(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        describe(
            self.directory.path(),
            &self.directory.path().join("volume"),
            &mut found,
        );
        found
    }
}

/// Describes every file below `directory` but those in `except`.
fn describe(directory: &Path, except: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path == except {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let contents = if metadata.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        let link = fs::read_link(&path).unwrap_or_default();
        let times = (
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        );
        let owner = (metadata.uid(), metadata.gid(), metadata.nlink());
        let contents = String::from_utf8_lossy(&contents).into_owned();
        let text = format!(
            "{:o} {owner:?} {times:?} {link:?} {contents}",
            metadata.mode()
        );
        if metadata.is_dir() {
            describe(&path, except, found);
        }
        found.insert(path, text);
    }
}

/// Keeps a volume's files small: a guest may fill a volume, a test must not fill the disk.
fn limit_file_sizes() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let limit = rustix::process::Rlimit {
            current: Some(FILE_SIZE_MAX),
            maximum: rustix::process::getrlimit(rustix::process::Resource::Fsize).maximum,
        };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    });
}

/// What this process holds of the host.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    memory: u64,
    descriptors: usize,
}

impl Holding {
    /// As it is now.
    pub fn now() -> Holding {
        let status = fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
        Holding {
            memory: pages * 4096,
            descriptors,
        }
    }

    /// Panics if the process, with one guest, holds more than such a guest may make it hold.
    pub fn check_growth(self) {
        let now = Holding::now();
        let allowed = self.memory + MEMORY + QUOTA + SLACK;
        assert!(
            now.memory <= allowed,
            "{} bytes of memory, {allowed} allowed",
            now.memory
        );
        let allowed = self.descriptors + agentrt_linux::descriptor::DESCRIPTORS_MAX as usize + 64;
        assert!(
            now.descriptors <= allowed,
            "{} descriptors, {allowed} allowed",
            now.descriptors
        );
    }

    /// Panics if the process, without a guest, holds what a guest has left behind.
    pub fn check_return(self) {
        let now = Holding::now();
        assert_eq!(now.descriptors, self.descriptors, "descriptors left open");
        let allowed = self.memory + SLACK;
        assert!(
            now.memory <= allowed,
            "{} bytes of memory, {allowed} allowed",
            now.memory
        );
    }
}
