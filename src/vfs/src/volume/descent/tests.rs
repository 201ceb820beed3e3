use std::os::unix::fs::symlink;

use rustix::io::Errno;
use tempfile::TempDir;

use crate::testing::Guest;
use crate::{Config, Volume};

/// How deep the volume's innermost directory is.
const DEPTH: usize = 1000;

/// A guest in the innermost directory of a volume, whose parent on the host is `deep`.
fn guest() -> (TempDir, Guest) {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("shared").join("d/".repeat(DEPTH));
    std::fs::create_dir_all(deep.join("a/b")).unwrap();
    std::fs::write(deep.join("a/file"), "text").unwrap();
    for index in 0..39 {
        let target = format!("{}l{}", "a/../".repeat(815), index + 1);
        symlink(target, deep.join(format!("l{index}"))).unwrap();
    }
    symlink("a/file", deep.join("l39")).unwrap();
    std::fs::create_dir(dir.path().join("image")).unwrap();
    let mut config = Config::new(dir.path().join("image"));
    config.volumes.push(Volume {
        host: dir.path().join("shared"),
        guest: "/work".into(),
        read_only: false,
    });
    let mut guest = Guest::new(config);
    guest.view.cwd = guest
        .find(&format!("/work/{}", "d/".repeat(DEPTH)))
        .unwrap();
    (dir, guest)
}

#[test]
fn the_longest_paths_are_resolved() {
    let (_dir, mut guest) = guest();
    let longest = format!("{}a/file", "a/../".repeat(815));
    assert_eq!(guest.stat(&longest).unwrap().size, 4);
    assert_eq!(guest.read("../d/a/b/../../../d/a/file").unwrap(), "text");
    // Still few enough for the host, with links.
    assert_eq!(guest.stat("l36").unwrap().size, 4);
    assert!(guest.stat(&"../".repeat(DEPTH)).is_ok());
}

#[test]
fn walks_in_circles_end() {
    let (_dir, mut guest) = guest();
    assert_eq!(guest.stat("l0").err(), Some(Errno::LOOP));
    let circles = format!("{}a/file", "a/b/../../".repeat(400));
    assert_eq!(guest.stat(&circles).err(), Some(Errno::LOOP));
    // Each walk has its own allowance.
    assert_eq!(guest.read("a/file").unwrap(), "text");
}

#[test]
fn paths_end_where_those_of_the_host_do() {
    let (_dir, mut guest) = guest();
    guest.view.cwd = guest.find("/work").unwrap();
    let name = "n".repeat(255);
    // 16 names of 255 bytes and 15 slashes are the longest path.
    for _ in 0..16 {
        guest.mkdir(&name).unwrap();
        guest.view.cwd = guest.find(&name).unwrap();
    }
    assert_eq!(guest.mkdir("x").err(), Some(Errno::NAMETOOLONG));
    assert!(guest.stat("..").is_ok());
}
