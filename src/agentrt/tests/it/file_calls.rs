//! What file calls answer, case by case: natively in a directory, in a guest in a volume and in the
//! writable layer.

use super::harness::{Ended, Job, Volume, assert_same, tests};

tests![
    error_numbers_in_a_volume,
    error_numbers_in_memory,
    offsets_in_a_volume,
    offsets_in_memory,
    quota
];

const ERRORS: &str = include_str!("scripts/file_errors.py");
const OFFSETS: &str = include_str!("scripts/offsets.py");

/// Extended attributes are kept in memory only.
const ATTRIBUTES: &str = r#"
os.setxattr("vectors", "user.note", b"value"); print(os.getxattr("vectors", "user.note"), os.listxattr("vectors"))
print(error(os.getxattr, "vectors", "user.none"), error(os.setxattr, "vectors", "user.note", b"x", os.XATTR_CREATE))
print(error(os.setxattr, "vectors", "user.x", b"x", os.XATTR_REPLACE), error(os.setxattr, "vectors", "bad", b"x"))
print(os.removexattr("vectors", "user.note"), os.listxattr("vectors"), error(os.setxattr, "nowhere", "user.x", b"x"))
"#;

/// What volumes do not offer: programs that change identity, files without a name, and removed
/// directories that go on.
const MEMORY_ONLY: &str = r#"
opened("d", os.O_TMPFILE | RW); t("rename", "/", "x"); t("rename", "r2", "/")
t("chmod", "file", 0o106755); print(oct(os.stat("file").st_mode)); t("mkdir", "group", 0o2777); print(oct(os.stat("group").st_mode))
os.mkdir("gonedir"); h = os.open("gonedir", R); os.rmdir("gonedir")
t("stat", "x", dir_fd=h); t("open", "x", W | C, dir_fd=h); t("listdir", h); t("stat", ".", dir_fd=h)
"#;

/// Runs a script natively in a directory and in a guest in the writable layer at the same path.
fn same_in_memory(script: &str) {
    let volume = Volume::new();
    let job = Job::python(script).directory(volume.native());
    let guest = job.guest();
    assert!(
        super::harness::listing(volume.native()).is_empty(),
        "the writable layer reached the host"
    );
    let native = job.native();
    assert_same("standard error", &native.stderr, &guest.stderr);
    assert_same("standard output", &native.stdout, &guest.stdout);
    assert_eq!(
        (native.ended, guest.ended),
        (Ended::Exit(0), Ended::Exit(0))
    );
}

fn error_numbers_in_a_volume() {
    Job::python(ERRORS).same_in(&Volume::new()).ok();
}

fn error_numbers_in_memory() {
    same_in_memory(&format!("{ERRORS}{MEMORY_ONLY}"));
}

fn offsets_in_a_volume() {
    Job::python(OFFSETS).same_in(&Volume::new()).ok();
}

fn offsets_in_memory() {
    same_in_memory(&format!("{OFFSETS}{ATTRIBUTES}"));
}

/// What a program writes is bounded, and room comes back when files go.
fn quota() {
    let script = r#"
import errno, os
def fill(name):
    done = 0
    try:
        with open(name, "wb", 0) as file:
            while True: done += file.write(bytes(1 << 16))
    except OSError as error: print(errno.errorcode[error.errno])
    return done
first = fill("/tmp/a"); print(7 << 20 < first <= 8 << 20)
print(fill("/var/tmp/b") < 1 << 17)
os.truncate("/tmp/a", 4 << 20); print(3 << 20 < fill("/tmp/c") <= 4 << 20)
os.unlink("/tmp/c"); fd = os.open("/tmp/a", os.O_RDONLY); os.unlink("/tmp/a")
print(3 << 20 < fill("/tmp/d") <= 4 << 20)
os.close(fd); os.unlink("/tmp/d"); print(7 << 20 < fill("/tmp/e") <= 8 << 20)
os.unlink("/tmp/e")
made = 0
try:
    while made < 1_000_000: os.mkdir("/tmp/%d" % made); made += 1
except OSError as error: print(errno.errorcode[error.errno])
print(1000 < made < 200_000)
"#;
    let outcome = Job::python(script).option("--writable=8M").guest().ok();
    let expected =
        "ENOSPC\nTrue\nENOSPC\nTrue\nENOSPC\nTrue\nENOSPC\nTrue\nENOSPC\nTrue\nENOSPC\nTrue\n";
    assert_same("the report", expected.as_bytes(), &outcome.stdout);
}
