use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tempfile::TempDir;

use crate::testing::{Guest, entries, read_all, write};
use crate::{Config, OpenFlags, Volume};

/// An image, a shared directory and a secret beside each other.
fn guest(read_only: bool) -> (TempDir, Guest) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["image", "shared", "shared/sub", "outside"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("shared/file"), "text").unwrap();
    std::fs::write(dir.path().join("shared/sub/name"), "inside").unwrap();
    std::fs::write(dir.path().join("outside/name"), "secret").unwrap();
    std::fs::write(dir.path().join("single"), "single").unwrap();
    let volume = |host: &str, guest: &str| Volume {
        host: dir.path().join(host),
        guest: guest.into(),
        read_only,
    };
    let mut config = Config::new(dir.path().join("image"));
    config.volumes = vec![volume("single", "/etc/single"), volume("shared", "/work")];
    (dir, Guest::new(config))
}

#[test]
fn changes_reach_the_host() {
    let (dir, mut guest) = guest(false);
    let shared = dir.path().join("shared");
    guest.write("work/new", "new").unwrap();
    assert_eq!(std::fs::read(shared.join("new")).unwrap(), b"new");
    guest.mkdir("work/made").unwrap();
    guest.rename("work/new", "work/made/old").unwrap();
    guest.link("work/made/old", "work/second").unwrap();
    guest.symlink("made/old", "work/link").unwrap();
    assert_eq!(guest.read("work/link").unwrap(), "new");
    assert_eq!(guest.stat("work/second").unwrap().nlink, 2);
    guest.unlink("work/second").unwrap();
    assert_eq!(guest.rmdir("work/made").err(), Some(Errno::NOTEMPTY));
    assert_eq!(guest.unlink("work/made").err(), Some(Errno::ISDIR));
    assert_eq!(
        guest.rename("work/file", "elsewhere").err(),
        Some(Errno::XDEV)
    );
    assert_eq!(guest.rmdir("work").err(), Some(Errno::BUSY));
    let mut names = guest.list("work").unwrap();
    names.sort();
    assert_eq!(names, ["file", "link", "made", "sub"]);
    let directory = guest.open("work", libc::O_DIRECTORY).unwrap();
    let mut above = 0;
    let mut note = |entry: crate::DirEntry<'_>| {
        above = if entry.name == b".." {
            entry.ino
        } else {
            above
        };
        true
    };
    directory.read_dir(0, &mut note).unwrap();
    assert_eq!(above, guest.stat("/").unwrap().ino);
    let place = guest.find("work/file").unwrap();
    guest.vfs.set_mode(&place, 0o6711).unwrap();
    let mode = std::fs::metadata(shared.join("file"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o711);
    assert_eq!(guest.stat("work/file").unwrap().uid, 0);
    assert_eq!(guest.vfs.set_owner(&place, Some(0), Some(0)), Ok(()));
    assert_eq!(guest.vfs.set_owner(&place, Some(1), None), Err(Errno::PERM));
    let file = guest
        .open("work/file", libc::O_WRONLY | libc::O_APPEND)
        .unwrap();
    let mut more = *b" more";
    let buffers = [vm_memory::VolatileSlice::from(&mut more[..])];
    assert_eq!(file.append(&buffers), Ok((5, 9)));
    assert_eq!(std::fs::read(shared.join("file")).unwrap(), b"text more");
    assert!(file.host_file().is_some());
    assert_eq!(guest.vfs.path_of(file.location()), b"/work/file");
    guest.view.cwd = guest.find("work/sub").unwrap();
    assert_eq!(guest.read("../../work/sub/name").unwrap(), "inside");
}

#[test]
fn a_file_can_be_mounted() {
    let (dir, mut guest) = guest(false);
    assert_eq!(guest.read("etc/single").unwrap(), "single");
    guest.write("etc/single", "changed").unwrap();
    assert_eq!(
        std::fs::read(dir.path().join("single")).unwrap(),
        b"changed"
    );
    assert_eq!(guest.unlink("etc/single").err(), Some(Errno::BUSY));
    assert_eq!(guest.stat("etc/single/x").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.list("etc").unwrap(), ["single"]);
}

#[test]
fn read_only_volumes_cannot_be_changed() {
    let (_dir, mut guest) = guest(true);
    assert_eq!(guest.read("work/file").unwrap(), "text");
    for result in [
        guest.write("work/file", "").err(),
        guest.write("work/new", "").err(),
        guest.mkdir("work/new").err(),
        guest.unlink("work/file").err(),
        guest.rmdir("work/sub").err(),
        guest.rename("work/file", "work/x").err(),
        guest.link("work/file", "work/x").err(),
        guest.symlink("x", "work/x").err(),
        guest.write("etc/single", "").err(),
        guest
            .open("work/file", libc::O_RDONLY | libc::O_TRUNC)
            .err(),
    ] {
        assert_eq!(result, Some(Errno::ROFS));
    }
    let place = guest.find("work/file").unwrap();
    assert_eq!(guest.vfs.set_mode(&place, 0o600), Err(Errno::ROFS));
}

#[test]
fn special_files_of_the_host_are_not_opened() {
    let (dir, mut guest) = guest(false);
    let shared = dir.path().join("shared");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, shared.join("fifo"), fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(shared.join("socket")).unwrap();
    for name in ["work/fifo", "work/socket"] {
        assert!(guest.stat(name).is_ok());
        for flags in [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR] {
            assert_eq!(guest.open(name, flags).err(), Some(Errno::NXIO));
        }
    }
    let base = guest.view.cwd.clone();
    let made = guest
        .vfs
        .mknod(&guest.view, &base, b"work/p", libc::S_IFIFO);
    assert_eq!(made, Err(Errno::PERM));
}

#[test]
fn an_exchanged_directory_leads_nowhere() {
    let (dir, mut guest) = guest(false);
    let (sub, kept) = (
        dir.path().join("shared/sub"),
        dir.path().join("shared/kept"),
    );
    let (outside, stop) = (dir.path().join("outside"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(&sub, &kept).unwrap();
                symlink(&outside, &sub).unwrap();
                std::fs::remove_file(&sub).unwrap();
                std::fs::rename(&kept, &sub).unwrap();
            }
        });
        let end = Instant::now() + Duration::from_millis(700);
        let mut seen = 0;
        while Instant::now() < end {
            if let Ok(text) = guest.read("work/sub/name") {
                assert_eq!(text, "inside");
                seen += 1;
            }
            let _ = guest.write("work/sub/made", "made");
            let _ = guest.unlink("work/sub/made");
            if let Ok(place) = guest.find("work/sub/name") {
                let _ = guest.vfs.set_mode(&place, 0o600);
            }
            if let Ok(directory) = guest.open("work/sub", libc::O_DIRECTORY) {
                let _ = entries(&*directory, 0);
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(seen > 0);
    });
    assert_eq!(std::fs::read(outside.join("name")).unwrap(), b"secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    let mode = std::fs::metadata(outside.join("name"))
        .unwrap()
        .permissions()
        .mode();
    assert_ne!(mode & 0o777, 0o600);
}

#[test]
fn files_outlive_their_names() {
    let (dir, mut guest) = guest(false);
    let file = guest.open("work/file", libc::O_RDWR).unwrap();
    std::fs::remove_file(dir.path().join("shared/file")).unwrap();
    write(&*file, 4, b"!").unwrap();
    assert_eq!(read_all(&*file).unwrap(), b"text!");
    assert_eq!(file.set_mode(0o600), Ok(()));
    assert_eq!(file.stat().unwrap().nlink, 0);
    assert_eq!(guest.read("work/file").err(), Some(Errno::NOENT));
}

#[test]
fn a_read_only_volume_is_so_whatever_a_node_seems_to_be() {
    let (dir, mut guest) = guest(true);
    let pipe = dir.path().join("shared/pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
    assert_eq!(
        guest.open("work/pipe", libc::O_WRONLY).err(),
        Some(Errno::ROFS)
    );
    let place = guest.find("work/pipe").unwrap();
    std::fs::remove_file(&pipe).unwrap();
    std::fs::write(&pipe, "text").unwrap();
    for flags in [OpenFlags::RDWR, OpenFlags::WRONLY, OpenFlags::TRUNC] {
        let opened = guest.vfs.reopen(&guest.view, &place, flags);
        assert_eq!(opened.err(), Some(Errno::ROFS));
    }
    assert_eq!(std::fs::read(&pipe).unwrap(), b"text");
}

#[test]
fn other_mounts_of_the_host_do_not_show() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["image", "cover"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("cover/version"), "covered").unwrap();
    let volume = |host: &Path, guest: &str| Volume {
        host: host.to_path_buf(),
        guest: guest.into(),
        read_only: false,
    };
    let mut config = Config::new(dir.path().join("image"));
    config.volumes = vec![volume(Path::new("/"), "/host")];
    let mut guest = Guest::new(config.clone());
    assert!(guest.stat("host/etc").is_ok());
    assert!(guest.list("host").unwrap().contains(&"proc".into()));
    for path in ["host/proc", "host/proc/version", "host/proc/self/environ"] {
        assert_eq!(guest.stat(path).err(), Some(Errno::XDEV), "{path}");
        assert_eq!(guest.read(path).err(), Some(Errno::XDEV), "{path}");
    }
    assert_eq!(guest.list("host/proc").err(), Some(Errno::XDEV));
    let place = guest.find("host/proc").unwrap();
    assert_eq!(guest.vfs.set_mode(&place, 0o700), Err(Errno::XDEV));
    let now = crate::TimeUpdate::Now;
    assert_eq!(guest.vfs.set_times(&place, now, now), Err(Errno::XDEV));
    // What is mounted there can be replaced.
    let cover = dir.path().join("cover");
    config.volumes.push(volume(&cover, "/host/proc"));
    let mut guest = Guest::new(config);
    assert_eq!(guest.read("host/proc/version").unwrap(), "covered");
}
