use std::os::unix::fs::symlink;

use rustix::io::Errno;
use tempfile::TempDir;

use crate::testing::{Guest, read};
use crate::{Config, Opened, ResolveFlags, Result, Volume};

/// `image/` beside a `secret` that no guest path may reach.
fn image() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("image");
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/file"), "inside").unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    symlink("../../../../secret", root.join("up")).unwrap();
    symlink(dir.path().join("secret"), root.join("absolute")).unwrap();
    symlink("/a/file", root.join("rooted")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("a", root.join("dir")).unwrap();
    symlink("/proc/self/root/../../secret", root.join("magic")).unwrap();
    dir
}

fn guest(dir: &TempDir) -> Guest {
    Guest::on(&dir.path().join("image"))
}

#[test]
fn no_path_leaves_the_root() {
    let dir = image();
    let mut guest = guest(&dir);
    let outside = dir.path().join("secret").display().to_string();
    for path in [
        "../secret",
        "../../../../../../secret",
        "/../secret",
        "a/b/../../../secret",
        "up",
        "absolute",
        "magic",
        "dir/../../secret",
        "/proc/self/root/../secret",
        "/proc/self/cwd/../secret",
        "/proc/../../secret",
        "/dev/../../secret",
        "/sys/../../secret",
        &outside,
    ] {
        assert_eq!(guest.read(path).err(), Some(Errno::NOENT), "{path}");
    }
    assert_eq!(guest.read("rooted").unwrap(), "inside");
    assert_eq!(guest.read("../../a/b/../file").unwrap(), "inside");
    assert_eq!(guest.stat("/..").unwrap().ino, guest.stat("/").unwrap().ino);
}

#[test]
fn descriptors_lead_to_their_own_node_only() {
    let dir = image();
    let mut guest = guest(&dir);
    let place = guest.find("a/b").unwrap();
    guest.give_fd(3, Some(place), "/a/b");
    guest.give_fd(4, None, "pipe:[1]");
    assert_eq!(guest.read("/proc/self/fd/3/../file").unwrap(), "inside");
    assert_eq!(
        guest.read("/proc/self/fd/3/../../../secret").err(),
        Some(Errno::NOENT)
    );
    assert_eq!(guest.read("/proc/self/fd/4/x").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.read("/proc/self/fd/5").err(), Some(Errno::NOENT));
    assert_eq!(guest.readlink("/proc/self/fd/4").unwrap(), "pipe:[1]");
    let opened = guest.open_raw("/dev/fd/4", libc::O_RDONLY, ResolveFlags::empty());
    assert!(matches!(opened, Ok(Opened::Descriptor(4))));
    assert_eq!(
        guest.stat("/proc/self/fd/4").unwrap().mode & libc::S_IFMT,
        libc::S_IFIFO
    );
}

#[test]
fn links_are_counted() {
    let dir = image();
    let root = dir.path().join("image");
    symlink("a/file", root.join("l0")).unwrap();
    for index in 1..=41 {
        symlink(format!("l{}", index - 1), root.join(format!("l{index}"))).unwrap();
    }
    let mut guest = guest(&dir);
    assert_eq!(guest.read("l39").unwrap(), "inside");
    assert_eq!(guest.read("l40").err(), Some(Errno::LOOP));
    assert_eq!(guest.read("loop").err(), Some(Errno::LOOP));
    assert_eq!(
        guest.lstat("loop").unwrap().mode & libc::S_IFMT,
        libc::S_IFLNK
    );
    assert_eq!(
        guest.open("rooted", libc::O_NOFOLLOW).err(),
        Some(Errno::LOOP)
    );
}

#[test]
fn lengths_and_slashes() {
    let dir = image();
    let mut guest = guest(&dir);
    let long = "n".repeat(256);
    assert_eq!(guest.stat("").err(), Some(Errno::NOENT));
    assert_eq!(guest.stat(&long).err(), Some(Errno::NAMETOOLONG));
    assert_eq!(guest.stat(&long[..255]).err(), Some(Errno::NOENT));
    assert_eq!(
        guest.stat(&"/a".repeat(2048)).err(),
        Some(Errno::NAMETOOLONG)
    );
    assert_eq!(guest.stat("a\0b").err(), Some(Errno::INVAL));
    assert_eq!(guest.stat("a/file/").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.stat("a/file/.").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.stat("a/file/..").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.stat("none/").err(), Some(Errno::NOENT));
    assert!(guest.stat("//a///b//").is_ok());
    // A slash makes the link be followed.
    assert_eq!(
        guest.lstat("dir/").unwrap().mode & libc::S_IFMT,
        libc::S_IFDIR
    );
    assert_eq!(guest.unlink("dir/").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.rmdir("dir/").err(), Some(Errno::NOTDIR));
    assert_eq!(guest.rmdir("a/b/.").err(), Some(Errno::INVAL));
    assert_eq!(guest.rmdir("a/..").err(), Some(Errno::NOTEMPTY));
    assert_eq!(guest.rmdir("/").err(), Some(Errno::BUSY));
    assert_eq!(
        guest.open("new/", libc::O_CREAT | libc::O_WRONLY).err(),
        Some(Errno::ISDIR)
    );
    guest.mkdir("made/").unwrap();
    assert_eq!(guest.mkdir("made").err(), Some(Errno::EXIST));
    assert_eq!(guest.mkdir("/").err(), Some(Errno::EXIST));
    assert_eq!(guest.mkdir("a/.").err(), Some(Errno::EXIST));
}

fn resolved(guest: &mut Guest, base: &str, path: &str, resolve: ResolveFlags) -> Result<()> {
    let base = guest.find(base)?;
    let flags = crate::OpenFlags::empty();
    let opened = guest
        .vfs
        .open(&guest.view, &base, path.as_bytes(), flags, 0, resolve)?;
    match opened {
        Opened::File(file) => {
            let text = read(&*file, 0, 16);
            assert_ne!(text.as_deref(), Ok(&b"secret"[..]));
            Ok(())
        }
        Opened::Descriptor(_) | Opened::Terminal => Ok(()),
    }
}

#[test]
fn openat2_flags() {
    let dir = image();
    let mut guest = guest(&dir);
    let place = guest.find("a/file").unwrap();
    guest.give_fd(3, Some(place), "/a/file");
    let beneath = ResolveFlags::BENEATH;
    assert_eq!(resolved(&mut guest, "a", "b/../file", beneath), Ok(()));
    assert_eq!(
        resolved(&mut guest, "a", "../a/file", beneath),
        Err(Errno::XDEV)
    );
    assert_eq!(
        resolved(&mut guest, "a", "/a/file", beneath),
        Err(Errno::XDEV)
    );
    assert_eq!(
        resolved(&mut guest, "/", "rooted", beneath),
        Err(Errno::XDEV)
    );
    let in_root = ResolveFlags::IN_ROOT;
    assert_eq!(resolved(&mut guest, "a", "../../file", in_root), Ok(()));
    assert_eq!(resolved(&mut guest, "a", "/file", in_root), Ok(()));
    assert_eq!(
        resolved(&mut guest, "a", "/a/file", in_root),
        Err(Errno::NOENT)
    );
    let none = ResolveFlags::NO_SYMLINKS;
    assert_eq!(
        resolved(&mut guest, "/", "dir/file", none),
        Err(Errno::LOOP)
    );
    let magic = ResolveFlags::NO_MAGICLINKS;
    assert_eq!(resolved(&mut guest, "/", "rooted", magic), Ok(()));
    assert_eq!(
        resolved(&mut guest, "/", "/proc/self/fd/3", magic),
        Err(Errno::LOOP)
    );
    let mounts = ResolveFlags::NO_XDEV;
    assert_eq!(
        resolved(&mut guest, "/", "dev/null", mounts),
        Err(Errno::XDEV)
    );
    assert_eq!(
        resolved(&mut guest, "dev", "../a/file", mounts),
        Err(Errno::XDEV)
    );
    let cached = ResolveFlags::CACHED;
    assert_eq!(
        resolved(&mut guest, "/", "a/file", cached),
        Err(Errno::AGAIN)
    );
    let unknown = ResolveFlags::from_bits_retain(1 << 40);
    assert_eq!(
        resolved(&mut guest, "/", "a/file", unknown),
        Err(Errno::INVAL)
    );
    assert_eq!(
        resolved(&mut guest, "/", "a/file", beneath | in_root),
        Err(Errno::INVAL)
    );
}

#[test]
fn a_volume_cannot_be_left() {
    let dir = image();
    let shared = dir.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    symlink("../secret", shared.join("up")).unwrap();
    symlink(dir.path(), shared.join("out")).unwrap();
    let mut config = Config::new(dir.path().join("image"));
    config.volumes.push(Volume {
        host: shared,
        guest: "/work".into(),
        read_only: false,
    });
    let mut guest = Guest::new(config);
    for path in [
        "work/up",
        "work/out/secret",
        "work/../../secret",
        "work/../secret",
    ] {
        assert_eq!(guest.read(path).err(), Some(Errno::NOENT), "{path}");
    }
    assert_eq!(guest.read("work/../a/file").unwrap(), "inside");
}
