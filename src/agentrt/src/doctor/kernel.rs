//! The kernel: its version, the system calls agentrt stands on, and control groups.

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Check, read};

#[cfg(test)]
mod tests;

/// The oldest kernel agentrt supports: the first long-term release that has everything of [`OLDEST_HAS`].
const OLDEST: (u32, u32) = (5, 15);

/// What agentrt needs that older kernels lack, each with the release that brought it.
const OLDEST_HAS: &str = "openat2 (5.6), MADV_POPULATE_WRITE (5.14)";

const UPGRADE: &str = "boot Linux 5.15 or newer (Debian 12: apt install linux-image-amd64, reboot)";

pub fn version() -> Check {
    judge_version(&rustix::system::uname().release().to_string_lossy())
}

fn judge_version(release: &str) -> Check {
    let name = "kernel.version";
    match parse_version(release) {
        Some(version) if version >= OLDEST => Check::ok(name, format!("Linux {release}")),
        Some(_) => Check::fail(
            name,
            format!("Linux {release} lacks some of: {OLDEST_HAS}"),
            UPGRADE,
        ),
        None => Check::warn(
            name,
            format!("the release {release:?} names no version"),
            UPGRADE,
        ),
    }
}

/// Major and minor number of a release such as `6.1.0-57-amd64`.
fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Confines file access of guests to their image.
pub fn openat2() -> Check {
    let name = "kernel.openat2";
    let opened = rustix::fs::openat2(
        CWD,
        "/",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::IN_ROOT,
    );
    match opened {
        Ok(_) => Check::ok(name, "works with RESOLVE_IN_ROOT"),
        Err(error) => Check::fail(name, format!("refused: {error}"), allow_syscall("openat2")),
    }
}

pub fn io_uring(root: &Path) -> Check {
    let sysctl = read(root, "proc/sys/kernel/io_uring_disabled");
    judge_io_uring(probe_io_uring(), sysctl.as_deref())
}

fn judge_io_uring(probe: Errno, sysctl: Option<&str>) -> Check {
    let name = "kernel.io_uring";
    match (probe, sysctl) {
        (Errno::FAULT | Errno::INVAL, _) => Check::ok(name, "available"),
        (_, Some(setting @ ("1" | "2"))) => Check::warn(
            name,
            format!("switched off: kernel.io_uring_disabled is {setting}"),
            "sysctl -w kernel.io_uring_disabled=0",
        ),
        (error, _) => Check::warn(
            name,
            format!("refused: {error}"),
            allow_syscall("io_uring_setup"),
        ),
    }
}

/// Calls io_uring_setup with a null pointer: EFAULT or EINVAL where io_uring may be used, and no ring is made.
fn probe_io_uring() -> Errno {
    // SAFETY: the kernel validates both arguments; a null pointer makes it return before it does anything.
    let result = unsafe {
        libc::syscall(
            libc::SYS_io_uring_setup,
            1_u32,
            std::ptr::null_mut::<libc::c_void>(),
        )
    };
    match result {
        -1 => Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOSYS),
        _ => Errno::FAULT,
    }
}

fn allow_syscall(name: &str) -> String {
    format!("{UPGRADE}; in a container, allow {name} in its seccomp profile")
}

/// Control groups limit what a shard may use of CPU and memory.
pub fn cgroup(root: &Path) -> Check {
    let name = "kernel.cgroup";
    if let Some(controllers) = read(root, "sys/fs/cgroup/cgroup.controllers") {
        return Check::ok(name, format!("version 2 with {controllers}"));
    }
    let mounts = read(root, "proc/mounts").unwrap_or_default();
    let mut types = mounts.lines().filter_map(|line| line.split(' ').nth(2));
    if types.any(|filesystem| filesystem == "cgroup") {
        return Check::warn(
            name,
            "version 1",
            "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line",
        );
    }
    Check::warn(name, "not mounted", "mount -t cgroup2 none /sys/fs/cgroup")
}
