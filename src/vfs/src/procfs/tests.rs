use rustix::io::Errno;

use crate::testing::{Guest, read, write};
use crate::{KERNEL_RELEASE, Opened, PATH_MAX, ResolveFlags};

fn guest() -> (tempfile::TempDir, Guest) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "text").unwrap();
    let guest = Guest::on(dir.path());
    (dir, guest)
}

/// Every node below `path`, magic links not followed.
fn walk(guest: &mut Guest, path: &str, found: &mut Vec<String>) {
    for name in guest.list(path).unwrap() {
        let path = format!("{path}/{name}");
        let kind = guest.lstat(&path).unwrap().mode & libc::S_IFMT;
        match kind {
            libc::S_IFDIR => walk(guest, &path, found),
            libc::S_IFLNK => drop(guest.readlink(&path).unwrap()),
            _ => drop(guest.read(&path).unwrap()),
        }
        let place = guest.find(&path).unwrap();
        assert_eq!(guest.vfs.path_of(&place), path.as_bytes());
        found.push(path);
    }
}

#[test]
fn everything_listed_can_be_read() {
    let (_dir, mut guest) = guest();
    guest.give_fd(0, None, "pipe:[5]");
    let mut found = Vec::new();
    walk(&mut guest, "/proc", &mut found);
    walk(&mut guest, "/sys", &mut found);
    for path in [
        "/proc/7/fd/0",
        "/proc/7/fdinfo/0",
        "/proc/7/task/7/status",
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/net/core/somaxconn",
        "/sys/devices/system/cpu/online",
    ] {
        assert!(
            found.iter().any(|known| known == path),
            "{path} in {found:?}"
        );
    }
    assert_eq!(guest.stat("/proc/8").err(), Some(Errno::NOENT));
    assert_eq!(guest.stat("/proc/07").err(), Some(Errno::NOENT));
    assert_eq!(guest.stat("/proc/+7").err(), Some(Errno::NOENT));
}

#[test]
fn contents_have_linux_format() {
    let (_dir, mut guest) = guest();
    let release = guest.read("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(release, format!("{KERNEL_RELEASE}\n"));
    assert_eq!(guest.read("/proc/self/cmdline").unwrap(), "python3\0-c\0");
    let stat = guest.read("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    assert_eq!(fields.split_whitespace().count(), 50, "{stat}");
    assert!(
        guest
            .read("/proc/self/status")
            .unwrap()
            .starts_with("Name:\ta\\040b\nUmask:\t0022\n")
    );
    let limits = guest.read("/proc/self/limits").unwrap();
    assert_eq!(limits.lines().count(), 17);
    let boot = guest.read("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(boot.len(), 37);
    assert_eq!(guest.read("/proc/sys/kernel/random/boot_id").unwrap(), boot);
    let uuid = guest.read("/proc/sys/kernel/random/uuid").unwrap();
    assert_ne!(guest.read("/proc/sys/kernel/random/uuid").unwrap(), uuid);
    let cpu = guest.read("/proc/cpuinfo").unwrap();
    assert_eq!(cpu.matches("processor\t").count(), 1);
    assert!(
        guest
            .read("/proc/meminfo")
            .unwrap()
            .starts_with("MemTotal:         262144 kB\n")
    );
    let mounts = guest.read("/proc/self/mountinfo").unwrap();
    assert!(
        mounts.lines().all(|line| line.split(' ').count() == 10),
        "{mounts}"
    );
    assert_eq!(
        guest.write("/proc/self/comm", "x").err(),
        Some(Errno::ACCESS)
    );
    assert_eq!(guest.write("/proc/new", "x").err(), Some(Errno::NOENT));
    assert_eq!(guest.mkdir("/proc/new").err(), Some(Errno::NOENT));
    assert_eq!(guest.unlink("/proc/stat").err(), Some(Errno::PERM));
}

#[test]
fn links_of_the_process() {
    let (_dir, mut guest) = guest();
    let place = guest.find("file").unwrap();
    guest.give_fd(3, Some(place), "/file");
    assert_eq!(guest.readlink("/proc/self").unwrap(), "7");
    assert_eq!(guest.readlink("/proc/self/cwd").unwrap(), "/");
    assert_eq!(guest.readlink("/proc/self/fd/3").unwrap(), "/file");
    assert_eq!(guest.stat("/dev/fd/3").unwrap().size, 4);
    assert_eq!(guest.read("/proc/self/root/file").unwrap(), "text");
    assert_eq!(guest.read("/proc/thread-self/cwd/file").unwrap(), "text");
    let opened = guest.open_raw("/dev/tty", libc::O_RDWR, ResolveFlags::empty());
    assert!(matches!(opened, Ok(Opened::Terminal)));
}

#[test]
fn devices() {
    let (_dir, mut guest) = guest();
    let open = |guest: &mut Guest, name: &str| guest.open(name, libc::O_RDWR).unwrap();
    let null = open(&mut guest, "/dev/null");
    assert_eq!(read(&*null, 0, 10).unwrap(), b"");
    assert_eq!(write(&*null, 0, b"gone"), Ok(4));
    assert!(null.is_stream());
    let zero = open(&mut guest, "/dev/zero");
    assert_eq!(read(&*zero, 0, 5000).unwrap(), [0; 5000]);
    let full = open(&mut guest, "/dev/full");
    assert_eq!(write(&*full, 0, b"x"), Err(Errno::NOSPC));
    let random = open(&mut guest, "/dev/urandom");
    assert_ne!(
        read(&*random, 0, 64).unwrap(),
        read(&*random, 0, 64).unwrap()
    );
    assert_eq!(
        guest.stat("/dev/null").unwrap().rdev,
        rustix::fs::makedev(1, 3)
    );
    assert_eq!(guest.stat("/dev/null").unwrap().mode, libc::S_IFCHR | 0o666);
    guest.write("/dev/shm/sem", "x").unwrap();
    assert_eq!(guest.read("/dev/shm/sem").unwrap(), "x");
    assert_eq!(guest.stat("/dev/ptmx").err(), Some(Errno::NOENT));
    assert!(guest.list("/dev/pts").unwrap().is_empty());
    assert_eq!(guest.write("/sys/x", "").err(), Some(Errno::ROFS));
}

#[test]
fn open_files_are_charged_for_their_text() {
    let (_dir, mut guest) = guest();
    guest.view.environ = vec![b'x'; 1 << 20];
    let mut open = Vec::new();
    let error = loop {
        match guest.open("/proc/self/environ", libc::O_RDONLY) {
            Ok(file) => open.push(file),
            Err(error) => break error,
        }
        assert!(open.len() <= 64);
    };
    assert_eq!(error, Errno::NOMEM);
    assert!(open.len() > 32);
    open.pop();
    assert!(guest.open("/proc/self/environ", libc::O_RDONLY).is_ok());
}

#[test]
fn listing_descriptors_looks_at_none() {
    let (_dir, mut guest) = guest();
    let place = guest.find("file").unwrap();
    for fd in 0..100 {
        guest.give_fd(fd, Some(place.clone()), "");
    }
    assert_eq!(guest.list("/proc/self/fd").unwrap().len(), 100);
    assert_eq!(guest.list("/proc/self/fdinfo").unwrap().len(), 100);
    assert_eq!(guest.view.fd_looks.get(), 0);
    assert_eq!(guest.stat("/proc/self/fd/100").err(), Some(Errno::NOENT));
}

#[test]
fn links_to_long_paths() {
    let (_dir, mut guest) = guest();
    let make = |guest: &mut Guest, length: usize| {
        let name = "n".repeat(length);
        guest.mkdir(&name).unwrap();
        guest.find(&name).unwrap()
    };
    for _ in 0..15 {
        guest.view.cwd = make(&mut guest, 255);
    }
    // With the slashes one byte less than PATH_MAX, which counts the NUL, and as much.
    let longest = make(&mut guest, 254);
    let too_long = make(&mut guest, 255);
    guest.give_fd(3, Some(longest.clone()), "");
    guest.give_fd(4, Some(too_long.clone()), "");
    let text = guest.readlink("/proc/self/fd/3").unwrap();
    assert_eq!(text.len(), PATH_MAX - 1);
    assert_eq!(guest.vfs.path_of(&longest), text.as_bytes());
    let refused = Some(Errno::NAMETOOLONG);
    assert_eq!(guest.readlink("/proc/self/fd/4").err(), refused);
    assert!(guest.vfs.path_of(&too_long).starts_with(b"(too long)/n"));
    guest.view.cwd = too_long;
    assert_eq!(guest.readlink("/proc/self/cwd").err(), refused);
    assert_eq!(guest.readlink("/proc/self/exe").err(), refused);
    // The link itself works.
    assert!(guest.stat("/proc/self/cwd/.").is_ok());
}
