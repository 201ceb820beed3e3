use rustix::fs::{Mode, OFlags};

use super::*;
use crate::Config;
use crate::testing::Guest;

#[test]
fn kernel_file_systems_are_recognised() {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let root = rustix::fs::open("/", flags, Mode::empty()).unwrap();
    let image = Image::new(root);
    assert!(!image.look(b"").unwrap().is_kernel);
    assert!(!image.look(b"etc").unwrap().is_kernel);
    assert!(image.look(b"proc").unwrap().is_kernel);
    assert!(image.look(b"proc/version").unwrap().is_kernel);
    assert!(!image.look(b"usr").unwrap().is_kernel);
}

#[test]
fn proc_of_the_host_is_empty_wherever_it_is() {
    // Taken for the image's root, so that nothing covers what is in it.
    let mut guest = Guest::new(Config::new("/proc"));
    let mut names = guest.list("/").unwrap();
    names.sort();
    assert_eq!(names, ["dev", "proc", "sys"]);
    assert_eq!(guest.stat("/version").err(), Some(rustix::io::Errno::NOENT));
}
