use super::super::Status;
use super::super::tests::host;
use super::*;

#[test]
fn versions_from_5_15_on_will_do() {
    for release in ["5.15.0", "6.1.0-57-amd64", "6.18.44-fc-v669", "7.0-rc1"] {
        assert_eq!(judge_version(release).status, Status::Ok, "{release}");
    }
    for release in ["5.14.21", "4.19.0-27-amd64", "2.6.32"] {
        assert_eq!(judge_version(release).status, Status::Fail, "{release}");
    }
    for release in ["", "six", "6", "99999999999.1"] {
        assert_eq!(judge_version(release).status, Status::Warn, "{release}");
    }
}

#[test]
fn io_uring_remedy_depends_on_who_refuses() {
    assert_eq!(judge_io_uring(Errno::FAULT, Some("0")).status, Status::Ok);
    let remedy = |sysctl| judge_io_uring(Errno::PERM, sysctl).remedy.unwrap();
    assert!(remedy(Some("2")).starts_with("sysctl"));
    assert!(remedy(Some("0")).contains("seccomp"));
    assert!(remedy(None).contains("seccomp"));
}

#[test]
fn cgroup_versions_are_told_apart() {
    let v2 = host(&[("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")]);
    assert_eq!(
        cgroup(v2.path()),
        Check::ok("kernel.cgroup", "version 2 with cpu memory")
    );
    let v1 = host(&[(
        "proc/mounts",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n",
    )]);
    assert_eq!(cgroup(v1.path()).found, "version 1");
    let none = host(&[("proc/mounts", "proc /proc proc rw 0 0\n")]);
    assert_eq!(cgroup(none.path()).found, "not mounted");
}
