use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::io::Errno;
use tempfile::TempDir;

use crate::testing::{Guest, entries, read, read_all, write};
use crate::{Config, FileKind, TimeUpdate, Timestamp, XattrSet};

fn image() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::create_dir_all(root.join("dir/sub")).unwrap();
    std::fs::write(root.join("dir/one"), "one").unwrap();
    std::fs::write(root.join("dir/sub/two"), "two").unwrap();
    std::fs::write(root.join("tool"), "#!").unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(root.join("tool"), mode).unwrap();
    symlink("dir/one", root.join("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    dir
}

#[test]
fn the_image_shows_as_it_is_on_the_host() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    let host = std::fs::metadata(dir.path().join("dir/one")).unwrap();
    let stat = guest.stat("/dir/one").unwrap();
    assert_eq!(
        (stat.ino, stat.mode, stat.size),
        (host.ino(), host.mode(), 3)
    );
    assert_eq!(stat.blocks, host.blocks());
    assert_eq!(stat.mtime.seconds, host.mtime());
    assert_eq!(u64::from(stat.nlink), host.nlink());
    assert_eq!(guest.read("link").unwrap(), "one");
    assert_eq!(guest.readlink("link").unwrap(), "dir/one");
    let file = guest.open("dir/one", libc::O_RDONLY).unwrap();
    assert!(file.host_file().is_some());
    assert_eq!(file.kind(), FileKind::Regular);
    assert_eq!(guest.vfs.path_of(file.location()), b"/dir/one");
}

#[test]
fn listings_keep_the_hosts_order_and_can_be_sought() {
    let dir = image();
    for index in 0..300 {
        std::fs::write(dir.path().join(format!("dir/f{index}")), "").unwrap();
    }
    let host: Vec<String> = std::fs::read_dir(dir.path().join("dir"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut guest = Guest::on(dir.path());
    assert_eq!(guest.list("dir").unwrap(), host);
    guest.unlink("dir/f7").unwrap();
    guest.write("dir/zz", "").unwrap();
    guest.write("dir/aa", "").unwrap();
    guest.write("dir/f9", "changed").unwrap();
    let mut expected: Vec<_> = host.into_iter().filter(|name| name != "f7").collect();
    expected.extend(["aa".into(), "zz".into()]);
    assert_eq!(guest.list("dir").unwrap(), expected);
    let directory = guest.open("dir", libc::O_DIRECTORY).unwrap();
    let all = entries(&*directory, 0).unwrap();
    let (_, cookie) = all[100];
    assert_eq!(entries(&*directory, cookie).unwrap(), all[101..]);
    assert_eq!(entries(&*directory, u64::MAX).unwrap(), []);
}

#[test]
fn changes_stay_in_the_writable_layer() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    let before = guest.stat("dir/one").unwrap().ino;
    let reader = guest.open("dir/one", libc::O_RDONLY).unwrap();
    let file = guest.open("dir/one", libc::O_RDWR).unwrap();
    write(&*file, 1, b"NE and more").unwrap();
    assert_eq!(guest.read("dir/one").unwrap(), "oNE and more");
    assert_eq!(read_all(&*reader).unwrap(), b"oNE and more");
    assert!(reader.host_file().is_none());
    assert_eq!(guest.stat("dir/one").unwrap().ino, before);
    guest.unlink("dir/sub/two").unwrap();
    assert_eq!(guest.stat("dir/sub/two").err(), Some(Errno::NOENT));
    guest.rmdir("dir/sub").unwrap();
    guest.mkdir("dir/sub").unwrap();
    assert!(guest.list("dir/sub").unwrap().is_empty());
    let place = guest.find("tool").unwrap();
    guest.vfs.set_mode(&place, 0o4600).unwrap();
    guest.vfs.set_owner(&place, Some(5), None).unwrap();
    assert_eq!(guest.stat("tool").unwrap().mode, libc::S_IFREG | 0o600);
    assert_eq!(guest.stat("tool").unwrap().uid, 5);
    assert_eq!(std::fs::read(dir.path().join("dir/one")).unwrap(), b"one");
    assert!(dir.path().join("dir/sub/two").exists());
}

#[test]
fn renames_move_directories_of_the_image() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    guest.rename("dir", "moved").unwrap();
    assert_eq!(guest.stat("dir").err(), Some(Errno::NOENT));
    assert_eq!(guest.read("moved/sub/two").unwrap(), "two");
    assert_eq!(
        guest.rename("moved", "moved/sub/x").err(),
        Some(Errno::INVAL)
    );
    assert_eq!(
        guest.rename("moved/sub", "moved").err(),
        Some(Errno::NOTEMPTY)
    );
    guest.mkdir("empty").unwrap();
    assert_eq!(guest.rename("empty", "moved").err(), Some(Errno::NOTEMPTY));
    assert_eq!(guest.rename("tool", "empty").err(), Some(Errno::ISDIR));
    assert_eq!(guest.rename("empty", "tool").err(), Some(Errno::NOTDIR));
    guest.rename("moved", "empty").unwrap();
    assert_eq!(guest.read("empty/one").unwrap(), "one");
    let noreplace = libc::RENAME_NOREPLACE;
    assert_eq!(
        guest.rename_with("tool", "link", noreplace).err(),
        Some(Errno::EXIST)
    );
    guest
        .rename_with("tool", "empty", libc::RENAME_EXCHANGE)
        .unwrap();
    assert_eq!(guest.read("tool/one").unwrap(), "one");
    assert_eq!(guest.read("empty").unwrap(), "#!");
    assert_eq!(guest.rename("tool", "/dev/shm/x").err(), Some(Errno::XDEV));
    assert_eq!(guest.rename("proc", "p").err(), Some(Errno::BUSY));
    assert_eq!(guest.rmdir("proc").err(), Some(Errno::BUSY));
    assert_eq!(
        guest.rename_with("tool", "x", libc::RENAME_WHITEOUT).err(),
        Some(Errno::INVAL)
    );
}

#[test]
fn unlinked_files_live_until_they_are_closed() {
    let dir = image();
    let mut config = Config::new(dir.path());
    config.overlay_quota = 64 << 10;
    let mut guest = Guest::new(config);
    let free = guest.vfs.tree.bytes.free();
    let file = guest.open("data", libc::O_CREAT | libc::O_RDWR).unwrap();
    assert_eq!(write(&*file, 0, &[7; 40 << 10]).unwrap(), 40 << 10);
    guest.unlink("data").unwrap();
    assert_eq!(file.stat().unwrap().nlink, 0);
    assert_eq!(guest.vfs.path_of(file.location()), b"/data (deleted)");
    assert_eq!(read(&*file, 40000, 4).unwrap(), [7; 4]);
    // What does not fit is a short write first, then an error.
    let more = guest.open("more", libc::O_CREAT | libc::O_RDWR).unwrap();
    let count = write(&*more, 0, &[1; 40 << 10]).unwrap();
    assert!(
        count > 0 && count < 40 << 10 && count.is_multiple_of(4096),
        "{count}"
    );
    assert_eq!(write(&*more, count as u64, b"x").err(), Some(Errno::NOSPC));
    drop(file);
    assert_eq!(write(&*more, count as u64, b"x"), Ok(1));
    drop(more);
    guest.unlink("more").unwrap();
    assert_eq!(guest.vfs.tree.bytes.free(), free);
}

#[test]
fn nodes_are_bounded() {
    let dir = image();
    let mut config = Config::new(dir.path());
    config.overlay_quota = 32 << 10;
    let mut guest = Guest::new(config);
    let made = (0..1000)
        .take_while(|i| guest.mkdir(&format!("d{i}")).is_ok())
        .count();
    assert!((10..=32).contains(&made), "{made}");
    assert_eq!(guest.mkdir("one-more").err(), Some(Errno::NOSPC));
    assert_eq!(guest.rename("tool", "t").err(), Some(Errno::NOSPC));
    assert!(guest.stat("tool").is_ok());
    guest.rmdir("d0").unwrap();
    guest.rmdir("d1").unwrap();
    guest.unlink("tool").unwrap();
    // Names that come and go leave nothing behind.
    for index in 0..2000 {
        guest.mkdir(&format!("dir/t{index}")).unwrap();
        guest.rmdir(&format!("dir/t{index}")).unwrap();
    }
}

#[test]
fn the_cache_is_bounded_and_saves_the_host() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    let stat = guest.stat("dir/one").unwrap();
    // The image does not change, so that only a cache can still know the file.
    std::fs::remove_file(dir.path().join("dir/one")).unwrap();
    assert_eq!(guest.stat("dir/one"), Ok(stat));
    guest.write("dir/kept", "kept").unwrap();
    let held = guest.find("dir/sub/two").unwrap();
    for index in 0..40_000 {
        assert_eq!(
            guest.stat(&format!("dir/none{index}")).err(),
            Some(Errno::NOENT)
        );
    }
    assert_eq!(guest.stat("dir/one").err(), Some(Errno::NOENT));
    assert_eq!(guest.read("dir/kept").unwrap(), "kept");
    assert_eq!(guest.vfs.path_of(&held), b"/dir/sub/two");
    let place = guest.find("dir").unwrap();
    let crate::mount::NodeRef::Tree(node) = &place.node else {
        panic!("not of the overlay");
    };
    assert!(node.entries().unwrap().borrow().len() <= 16 << 10);
}

#[test]
fn special_files_are_seen_but_not_opened() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    assert_eq!(guest.stat("fifo").unwrap().kind(), FileKind::Fifo);
    assert_eq!(guest.open("fifo", libc::O_RDONLY).err(), Some(Errno::NXIO));
    assert_eq!(guest.open("fifo", libc::O_WRONLY).err(), Some(Errno::NXIO));
    assert!(guest.open("fifo", libc::O_PATH).is_ok());
    let base = guest.view.cwd.clone();
    let device = libc::S_IFCHR | 0o666;
    let made = guest.vfs.mknod(&guest.view, &base, b"null", device);
    assert_eq!(made, Err(Errno::PERM));
    guest
        .vfs
        .mknod(&guest.view, &base, b"p", libc::S_IFIFO)
        .unwrap();
    assert_eq!(guest.open("p", libc::O_RDONLY).err(), Some(Errno::NXIO));
}

#[test]
fn open_flags() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    let create = libc::O_CREAT | libc::O_WRONLY;
    assert_eq!(
        guest.open("dir/one", create | libc::O_EXCL).err(),
        Some(Errno::EXIST)
    );
    assert_eq!(
        guest.open("link", create | libc::O_EXCL).err(),
        Some(Errno::EXIST)
    );
    assert_eq!(guest.open("dir", libc::O_WRONLY).err(), Some(Errno::ISDIR));
    assert_eq!(guest.open("dir", libc::O_CREAT).err(), Some(Errno::ISDIR));
    assert_eq!(
        guest.open("tool", libc::O_DIRECTORY).err(),
        Some(Errno::NOTDIR)
    );
    assert_eq!(guest.open("none/x", create).err(), Some(Errno::NOENT));
    guest.symlink("made", "dangling").unwrap();
    guest.write("dangling", "through").unwrap();
    assert_eq!(guest.read("made").unwrap(), "through");
    let path = guest.open("link", libc::O_PATH | libc::O_NOFOLLOW).unwrap();
    assert_eq!(path.stat().unwrap().kind(), FileKind::Symlink);
    let place = path.location().clone();
    assert_eq!(
        guest.vfs.readlink_of(&guest.view, &place).unwrap(),
        b"dir/one"
    );
}

#[test]
fn temporary_files_can_be_given_a_name() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    let file = guest.open("dir", libc::O_TMPFILE | libc::O_RDWR).unwrap();
    write(&*file, 0, b"text").unwrap();
    let place = file.location().clone();
    let base = guest.view.cwd.clone();
    guest
        .vfs
        .link(&guest.view, &place, &base, b"named")
        .unwrap();
    assert_eq!(guest.read("named").unwrap(), "text");
    let never = guest
        .open("dir", libc::O_TMPFILE | libc::O_RDWR | libc::O_EXCL)
        .unwrap();
    let place = never.location().clone();
    let linked = guest.vfs.link(&guest.view, &place, &base, b"other");
    assert_eq!(linked, Err(Errno::NOENT));
    assert_eq!(guest.open("dir", libc::O_TMPFILE).err(), Some(Errno::INVAL));
    let memfd = guest.vfs.memfd(b"jit").unwrap();
    assert_eq!(guest.vfs.path_of(memfd.location()), b"/memfd:jit (deleted)");
    write(&*memfd, 5000, b"x").unwrap();
    assert_eq!(memfd.size(), Ok(5001));
}

#[test]
fn hard_links_share_their_contents() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    guest.link("dir/one", "again").unwrap();
    assert_eq!(guest.stat("again").unwrap().nlink, 2);
    guest.write("again", "changed").unwrap();
    assert_eq!(guest.read("dir/one").unwrap(), "changed");
    guest.unlink("dir/one").unwrap();
    assert_eq!(guest.stat("again").unwrap().nlink, 1);
    assert_eq!(guest.link("dir", "d").err(), Some(Errno::PERM));
    assert_eq!(guest.link("again", "link").err(), Some(Errno::EXIST));
    assert_eq!(guest.link("again", "/dev/shm/x").err(), Some(Errno::XDEV));
}

#[test]
fn times_access_and_attributes() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    let place = guest.find("dir/one").unwrap();
    let time = Timestamp {
        seconds: 12,
        nanoseconds: 34,
    };
    let update = TimeUpdate::At(time);
    guest
        .vfs
        .set_times(&place, TimeUpdate::Omit, update)
        .unwrap();
    assert_eq!(guest.stat("dir/one").unwrap().mtime, time);
    let base = guest.view.cwd.clone();
    let mut access = |path: &[u8], mode| guest.vfs.access(&guest.view, &base, path, mode, true);
    assert_eq!(access(b"dir/one", libc::X_OK as u32), Err(Errno::ACCESS));
    assert_eq!(access(b"dir/one", libc::W_OK as u32), Ok(()));
    assert_eq!(access(b"tool", libc::X_OK as u32), Ok(()));
    assert_eq!(access(b"dir", libc::X_OK as u32), Ok(()));
    assert_eq!(access(b"/sys/kernel", libc::W_OK as u32), Err(Errno::ROFS));
    assert_eq!(access(b"tool", 8), Err(Errno::INVAL));
    let vfs = &mut guest.vfs;
    assert_eq!(vfs.get_xattr(&place, b"user.a"), Err(Errno::NODATA));
    assert_eq!(
        vfs.get_xattr(&place, b"security.selinux"),
        Err(Errno::NODATA)
    );
    assert_eq!(
        vfs.get_xattr(&place, b"system.posix_acl_access"),
        Err(Errno::OPNOTSUPP)
    );
    vfs.set_xattr(&place, b"user.a", b"1", XattrSet::Create)
        .unwrap();
    let again = vfs.set_xattr(&place, b"user.a", b"2", XattrSet::Create);
    assert_eq!(again, Err(Errno::EXIST));
    assert_eq!(vfs.list_xattr(&place).unwrap(), b"user.a\0");
    assert_eq!(vfs.get_xattr(&place, b"user.a").unwrap(), b"1");
    vfs.remove_xattr(&place, b"user.a").unwrap();
    assert_eq!(vfs.remove_xattr(&place, b"user.a"), Err(Errno::NODATA));
    let ending = vfs.set_xattr(&place, b"trusted.a", b"", XattrSet::Any);
    assert_eq!(ending, Err(Errno::OPNOTSUPP));
}

#[test]
fn deep_directories_do_not_exhaust_the_hosts_stack() {
    let dir = image();
    let mut guest = Guest::on(dir.path());
    for _ in 0..50_000 {
        guest.mkdir("d").unwrap();
        guest.view.cwd = guest.find("d").unwrap();
    }
    // Nobody gets to see more of a path than can be used, nor pays for it.
    let path = guest.vfs.path_of(&guest.view.cwd);
    assert!(path.starts_with(b"(too long)/d/d") && path.ends_with(b"/d/d"));
    assert!(path.len() < 2 * crate::PATH_MAX);
    guest.view.cwd = guest.vfs.root();
    drop(guest);
}

#[test]
fn hidden_directories_are_empty() {
    let dir = image();
    let mut config = Config::new(dir.path());
    config.hide = vec!["/dir".into(), "/absent".into()];
    let mut guest = Guest::new(config);
    assert!(guest.list("dir").unwrap().is_empty());
    assert_eq!(guest.read("dir/one").err(), Some(Errno::NOENT));
    assert_eq!(guest.read("link").err(), Some(Errno::NOENT));
    guest.write("dir/one", "mine").unwrap();
    assert_eq!(guest.list("dir").unwrap(), ["one"]);
    guest.unlink("dir/one").unwrap();
    let host = std::fs::metadata(dir.path().join("dir")).unwrap();
    assert_eq!(guest.stat("dir").unwrap().ino, host.ino());
}

#[test]
fn the_hosts_own_system_directories_never_show() {
    let dir = image();
    for name in ["proc", "dev", "sys"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        std::fs::write(dir.path().join(name).join("host"), "host").unwrap();
    }
    let mut guest = Guest::on(dir.path());
    for name in ["proc", "dev", "sys"] {
        assert_eq!(
            guest.read(&format!("{name}/host")).err(),
            Some(Errno::NOENT)
        );
        let listed = guest.list(name).unwrap();
        assert!(!listed.is_empty() && !listed.contains(&"host".into()));
    }
}

#[test]
fn large_files_of_the_image_are_not_copied_in_vain() {
    let dir = image();
    let sparse = std::fs::File::create(dir.path().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    std::os::unix::fs::FileExt::write_at(&sparse, b"end", (1 << 40) - 3).unwrap();
    std::fs::write(dir.path().join("large"), vec![1; 1 << 20]).unwrap();
    let mut config = Config::new(dir.path());
    config.overlay_quota = 64 << 10;
    let mut guest = Guest::new(config);
    assert_eq!(guest.open("large", libc::O_RDWR).err(), Some(Errno::NOSPC));
    assert_eq!(guest.read("large").unwrap().len(), 1 << 20);
    let file = guest.open("sparse", libc::O_RDWR).unwrap();
    assert_eq!(file.size(), Ok(1 << 40));
    assert_eq!(read(&*file, (1 << 40) - 4, 9).unwrap(), b"\0end");
    assert_eq!(file.seek_data(0), Ok((1 << 40) - 4096));
    guest.write("large", "small").unwrap();
    assert_eq!(guest.read("large").unwrap(), "small");
}

#[test]
fn the_hosts_root_can_be_the_image() {
    let mut config = Config::new("/");
    config.hide = vec!["/tmp".into(), "/run".into(), "/var/tmp".into()];
    let mut guest = Guest::new(config);
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    assert_eq!(guest.read("/etc/passwd").unwrap(), passwd);
    assert_eq!(guest.list("/tmp").unwrap(), [""; 0]);
    assert_eq!(guest.readlink("/proc/self").unwrap(), "7");
    assert_eq!(guest.stat("/dev/kvm").err(), Some(Errno::NOENT));
    guest.write("/tmp/x", "x").unwrap();
    assert_eq!(guest.list("/tmp").unwrap(), ["x"]);
    assert!(!std::path::Path::new("/tmp/x").exists());
}

#[test]
fn statfs_tells_the_quota() {
    let dir = image();
    let mut config = Config::new(dir.path());
    config.overlay_quota = 1 << 20;
    let mut guest = Guest::new(config);
    let root = guest.vfs.root();
    let before = guest.vfs.statfs(&root).unwrap();
    assert_eq!(before.blocks_free, 256);
    guest.write("file", &"x".repeat(8192)).unwrap();
    assert!(guest.vfs.statfs(&root).unwrap().blocks_free < 255);
    let proc = guest.find("/proc").unwrap();
    assert_eq!(guest.vfs.statfs(&proc).unwrap().magic, 0x9fa0);
}

#[test]
fn every_node_of_a_tree_shows_as_on_the_host() {
    let dir = image();
    for name in ["proc", "dev", "sys"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let mut guest = Guest::on(dir.path());
    let mut pending = vec![String::from(".")];
    while let Some(path) = pending.pop() {
        let host = std::fs::symlink_metadata(dir.path().join(&path)).unwrap();
        let stat = guest.lstat(&path).unwrap();
        assert_eq!(
            (stat.ino, stat.mode, stat.size),
            (host.ino(), host.mode(), host.size())
        );
        assert_eq!((stat.uid, stat.gid), (host.uid(), host.gid()));
        assert_eq!(
            (u64::from(stat.nlink), stat.blocks),
            (host.nlink(), host.blocks()),
            "{path}"
        );
        assert_eq!(
            (stat.atime.seconds, stat.ctime.seconds),
            (host.atime(), host.ctime())
        );
        if host.is_dir() {
            let names = guest.list(&path).unwrap();
            let names = names
                .into_iter()
                .filter(|n| !["proc", "dev", "sys"].contains(&n.as_str()));
            pending.extend(names.map(|name| format!("{path}/{name}")));
        }
    }
}

#[test]
fn names_are_charged() {
    let dir = image();
    let mut config = Config::new(dir.path());
    config.overlay_quota = 64 << 10;
    let mut guest = Guest::new(config);
    guest.write("file", "").unwrap();
    let name = "n".repeat(200);
    let made = (0..1000)
        .take_while(|i| guest.link("file", &format!("{name}{i}")).is_ok())
        .count();
    assert!((100..250).contains(&made), "{made}");
    guest.unlink(&format!("{name}0")).unwrap();
    guest.link("file", "short").unwrap();
}

#[test]
fn a_rename_that_does_not_fit_changes_nothing() {
    let dir = image();
    for quota in (0..2000).step_by(50) {
        let mut config = Config::new(dir.path());
        config.overlay_quota = quota;
        let mut guest = Guest::new(config);
        for flags in [0, libc::RENAME_EXCHANGE] {
            if let Err(error) = guest.rename_with("dir/one", "tool", flags) {
                assert_eq!(error, Errno::NOSPC);
                assert_eq!(guest.read("dir/one").unwrap(), "one");
                assert_eq!(guest.read("tool").unwrap(), "#!");
                continue;
            }
            assert_eq!(guest.read("tool").unwrap(), "one");
            let expected = if flags == 0 {
                Err(Errno::NOENT)
            } else {
                Ok("#!".into())
            };
            assert_eq!(guest.read("dir/one"), expected);
            break;
        }
    }
}
