//! Random operations on the writable layer over an image, and on a real directory that begins
//! as the same: results, errno and final trees must be equal.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::testing::{Guest, read_all, write};
use crate::{FileKind, Result};

#[derive(Clone, Debug)]
enum Op {
    Create(String, bool),
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Rename(String, String, u32),
    Unlink(String),
    Mkdir(String),
    Rmdir(String),
    Link(String, String),
    Symlink(String, String),
    Chmod(String, u32),
    List(String),
    Read(String),
    Stat(String, bool),
}

/// Few names, so that operations meet; never a way above the top, which the host would follow.
fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "d", "."]);
    let names = prop::collection::vec(name, 1..4);
    (names, prop::bool::weighted(0.1)).prop_map(|(names, slash)| {
        let slash = if slash { "/" } else { "" };
        names.join("/") + slash
    })
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = prop::collection::vec(any::<u8>(), 0..20);
    let flags = prop::sample::select(vec![0, 0, libc::RENAME_NOREPLACE, libc::RENAME_EXCHANGE]);
    let target = prop::sample::select(vec!["a", "b", "a/b", "c/", "./d"]);
    prop_oneof![
        2 => (path(), any::<bool>()).prop_map(|(p, excl)| Op::Create(p, excl)),
        2 => (path(), 0..9000u64, bytes).prop_map(|(p, at, b)| Op::Write(p, at, b)),
        1 => (path(), 0..9000u64).prop_map(|(p, size)| Op::Truncate(p, size)),
        4 => (path(), path(), flags).prop_map(|(a, b, f)| Op::Rename(a, b, f)),
        2 => path().prop_map(Op::Unlink),
        3 => path().prop_map(Op::Mkdir),
        2 => path().prop_map(Op::Rmdir),
        2 => (path(), path()).prop_map(|(a, b)| Op::Link(a, b)),
        1 => (target, path()).prop_map(|(t, p)| Op::Symlink(t.into(), p)),
        1 => (path(), 0..0o1000u32).prop_map(|(p, mode)| Op::Chmod(p, mode)),
        2 => path().prop_map(Op::List),
        1 => path().prop_map(Op::Read),
        2 => (path(), any::<bool>()).prop_map(|(p, follow)| Op::Stat(p, follow)),
    ]
}

/// What an operation shows besides success.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Names(Vec<String>),
    Bytes(Vec<u8>),
    /// Type and permissions, links and size (of files only).
    Node(u32, Option<(u64, u64)>),
}

/// The errors of `File`'s callers, which the host's kernel checks by itself.
fn on_guest(guest: &mut Guest, op: &Op) -> Result<Shown> {
    let base = guest.view.cwd.clone();
    let create = libc::O_CREAT | libc::O_WRONLY;
    match op {
        Op::Create(path, excl) => {
            guest.open(path, create | if *excl { libc::O_EXCL } else { 0 })?;
        }
        Op::Write(path, offset, bytes) => {
            let file = guest.open(path, libc::O_WRONLY)?;
            write(&*file, *offset, bytes)?;
        }
        Op::Truncate(path, size) => {
            guest
                .vfs
                .truncate(&guest.view, &base, path.as_bytes(), *size)?;
        }
        Op::Rename(from, to, flags) => guest.rename_with(from, to, *flags)?,
        Op::Unlink(path) => guest.unlink(path)?,
        Op::Mkdir(path) => guest.mkdir(path)?,
        Op::Rmdir(path) => guest.rmdir(path)?,
        Op::Link(from, to) => guest.link(from, to)?,
        Op::Symlink(target, path) => guest.symlink(target, path)?,
        Op::Chmod(path, mode) => {
            let place = guest
                .vfs
                .lookup(&guest.view, &base, path.as_bytes(), true)?;
            guest.vfs.set_mode(&place, *mode)?;
        }
        Op::List(path) => {
            let mut names = guest.list(path)?;
            names.retain(|name| !["proc", "dev", "sys"].contains(&name.as_str()));
            names.sort();
            return Ok(Shown::Names(names));
        }
        Op::Read(path) => {
            let file = guest.open(path, libc::O_RDONLY)?;
            return Ok(Shown::Bytes(read_all(&*file)?));
        }
        Op::Stat(path, follow) => {
            let stat = guest
                .vfs
                .stat(&guest.view, &base, path.as_bytes(), *follow)?;
            let file = stat.kind() != FileKind::Directory;
            let sizes = file.then_some((u64::from(stat.nlink), stat.size));
            return Ok(Shown::Node(stat.mode, sizes));
        }
    }
    Ok(Shown::Nothing)
}

fn on_host(root: &Path, op: &Op) -> Result<Shown> {
    let at = |path: &String| format!("{}/{path}", root.display());
    let mode = Mode::from_raw_mode(0o644);
    match op {
        Op::Create(path, excl) => {
            let mut flags = OFlags::CREATE | OFlags::WRONLY;
            flags.set(OFlags::EXCL, *excl);
            rustix::fs::open(at(path), flags, mode)?;
        }
        Op::Write(path, offset, bytes) => {
            let file = rustix::fs::open(at(path), OFlags::WRONLY, mode)?;
            rustix::io::pwrite(file, bytes, *offset)?;
        }
        Op::Truncate(path, size) => {
            let file = rustix::fs::open(at(path), OFlags::WRONLY, mode)?;
            rustix::fs::ftruncate(file, *size)?;
        }
        Op::Rename(from, to, flags) => {
            let flags = rustix::fs::RenameFlags::from_bits_retain(*flags);
            rustix::fs::renameat_with(CWD, at(from), CWD, at(to), flags)?;
        }
        Op::Unlink(path) => rustix::fs::unlink(at(path))?,
        Op::Mkdir(path) => rustix::fs::mkdir(at(path), Mode::from_raw_mode(0o755))?,
        Op::Rmdir(path) => rustix::fs::rmdir(at(path))?,
        Op::Link(from, to) => rustix::fs::link(at(from), at(to))?,
        Op::Symlink(target, path) => rustix::fs::symlink(target, at(path))?,
        Op::Chmod(path, mode) => rustix::fs::chmod(at(path), Mode::from_raw_mode(*mode))?,
        Op::List(path) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            rustix::fs::open(at(path), flags, mode)?;
            let entries = std::fs::read_dir(at(path)).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            return Ok(Shown::Names(names));
        }
        Op::Read(path) => {
            let file = rustix::fs::open(at(path), OFlags::RDONLY, mode)?;
            let mut bytes = vec![0; 1 << 16];
            let count = rustix::io::read(file, &mut bytes[..])?;
            bytes.truncate(count);
            return Ok(Shown::Bytes(bytes));
        }
        Op::Stat(path, follow) => {
            let flags = match follow {
                true => AtFlags::empty(),
                false => AtFlags::SYMLINK_NOFOLLOW,
            };
            let stat = rustix::fs::statat(CWD, at(path), flags)?;
            let file = FileKind::from_mode(stat.st_mode) != FileKind::Directory;
            let sizes = file.then_some((stat.st_nlink, stat.st_size as u64));
            return Ok(Shown::Node(stat.st_mode, sizes));
        }
    }
    Ok(Shown::Nothing)
}

fn fill(root: &Path) {
    for directory in ["a", "a/b", "d"] {
        std::fs::create_dir(root.join(directory)).unwrap();
    }
    std::fs::write(root.join("a/c"), "ac").unwrap();
    std::fs::write(root.join("a/b/a"), "aba").unwrap();
    std::fs::write(root.join("c"), "c").unwrap();
    std::os::unix::fs::symlink("a/b", root.join("b")).unwrap();
}

/// Every path of the tree with what it shows.
fn tree(mut show: impl FnMut(&Op) -> Result<Shown>) -> BTreeMap<String, Vec<Result<Shown>>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![String::from(".")];
    while let Some(path) = pending.pop() {
        let stat = show(&Op::Stat(path.clone(), false));
        let mut shown = Vec::new();
        match stat.as_ref().map(|shown| match shown {
            Shown::Node(mode, _) => FileKind::from_mode(*mode),
            _ => FileKind::Unknown,
        }) {
            Ok(FileKind::Directory) => {
                let names = show(&Op::List(path.clone()));
                if let Ok(Shown::Names(names)) = &names {
                    pending.extend(names.iter().map(|name| format!("{path}/{name}")));
                }
                shown.push(names);
            }
            Ok(FileKind::Regular) => shown.push(show(&Op::Read(path.clone()))),
            _ => shown.push(show(&Op::Stat(path.clone(), true))),
        }
        shown.push(stat);
        found.insert(path, shown);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_directory_of_the_host(ops in prop::collection::vec(op(), 1..60)) {
        let image = tempfile::tempdir().unwrap();
        let host = tempfile::tempdir().unwrap();
        // As the image, whose root comes from a mode of its own.
        for root in [image.path(), host.path()] {
            rustix::fs::chmod(root, Mode::from_raw_mode(0o755)).unwrap();
            fill(root);
        }
        let mut guest = Guest::on(image.path());
        for (index, op) in ops.iter().enumerate() {
            if index % 3 == 0 {
                guest.vfs.tree.evict();
            }
            prop_assert_eq!(on_guest(&mut guest, op), on_host(host.path(), op), "{:?}", op);
        }
        let shown = tree(|op| on_guest(&mut guest, op));
        prop_assert_eq!(shown, tree(|op| on_host(host.path(), op)));
        prop_assert_eq!(std::fs::read(image.path().join("a/b/a")).unwrap(), b"aba");
    }
}

#[test]
fn operations_in_a_removed_directory() {
    let image = tempfile::tempdir().unwrap();
    fill(image.path());
    let mut guest = Guest::on(image.path());
    guest.mkdir("e").unwrap();
    for name in ["e", "d"] {
        guest.view.cwd = guest.vfs.root();
        let place = guest.find(name).unwrap();
        guest.rmdir(name).unwrap();
        guest.view.cwd = place;
        assert_eq!(guest.write("x", "").err(), Some(Errno::NOENT));
        assert_eq!(guest.mkdir("x").err(), Some(Errno::NOENT));
        assert_eq!(guest.rename("/c", "x").err(), Some(Errno::NOENT));
        assert_eq!(guest.link("/c", "x").err(), Some(Errno::NOENT));
        assert_eq!(guest.list(".").err(), Some(Errno::NOENT));
        assert!(guest.stat("..").is_ok());
    }
}
