//! `/dev`: a tree in memory with the devices that every program may expect.

use std::rc::Rc;

use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::memory_file::copy_to_guest;
use crate::mount::Location;
use crate::overlay::{NewNode, Node};
use crate::{File, FileKind, Result, Stat};

/// Numbers of Linux' `admin-guide/devices.txt`: name, major, minor.
const DEVICES: &[(&str, u32, u32)] = &[
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Fills the root of a tree that allows devices.
pub(crate) fn populate(root: &Rc<Node>) -> Result<()> {
    for (name, major, minor) in DEVICES {
        let rdev = rustix::fs::makedev(*major, *minor);
        let new = NewNode::Special { rdev };
        root.create(name.as_bytes(), libc::S_IFCHR | 0o666, &new)?;
    }
    for (name, target) in LINKS {
        let new = NewNode::Symlink(target.as_bytes());
        root.create(name.as_bytes(), libc::S_IFLNK | 0o777, &new)?;
    }
    root.create(b"pts", libc::S_IFDIR | 0o755, &NewNode::Directory)?;
    root.create(b"shm", libc::S_IFDIR | 0o1777, &NewNode::Directory)?;
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Null,
    Zero,
    Full,
    Random,
    Terminal,
}

impl Device {
    pub(crate) fn from_number(rdev: u64) -> Option<Device> {
        let number = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
        let (name, _, _) = DEVICES.iter().find(|(_, a, b)| (*a, *b) == number)?;
        Some(match *name {
            "null" => Device::Null,
            "zero" => Device::Zero,
            "full" => Device::Full,
            "tty" => Device::Terminal,
            _ => Device::Random,
        })
    }
}

/// An open device other than the terminal.
pub(crate) struct DeviceFile {
    pub(crate) location: Location,
    pub(crate) node: Rc<Node>,
    pub(crate) device: Device,
}

fn total(buffers: &[VolatileSlice<'_>]) -> usize {
    let lengths = buffers.iter().map(|buffer| buffer.len());
    lengths.fold(0, usize::saturating_add)
}

/// Bytes produced at a time.
const BLOCK: usize = 4096;

fn fill(
    buffers: &[VolatileSlice<'_>],
    mut produce: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<usize> {
    let mut block = [0; BLOCK];
    for buffer in buffers {
        let mut at = 0;
        while at < buffer.len() {
            let (part, _) = block.split_at_mut(BLOCK.min(buffer.len() - at));
            produce(part)?;
            copy_to_guest(buffer, at, part)?;
            at += part.len();
        }
    }
    Ok(total(buffers))
}

/// Fills all of `bytes` from the host's generator, which is seeded long before.
fn random(bytes: &mut [u8]) -> Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut *rest, flags) {
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl File for DeviceFile {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        Ok(self.location.localise(self.node.stat()))
    }

    fn kind(&self) -> FileKind {
        FileKind::CharDevice
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn read_at(&self, _offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        match self.device {
            Device::Null => Ok(0),
            Device::Zero | Device::Full => fill(buffers, |_| Ok(())),
            Device::Random => fill(buffers, random),
            Device::Terminal => Err(Errno::IO),
        }
    }

    fn write_at(&self, _offset: u64, buffers: &[VolatileSlice<'_>]) -> Result<usize> {
        match self.device {
            Device::Full => Err(Errno::NOSPC),
            Device::Null | Device::Zero | Device::Random => Ok(total(buffers)),
            Device::Terminal => Err(Errno::IO),
        }
    }
}
