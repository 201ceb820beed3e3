//! The host directory below the overlay. It does not change while a guest runs on it, which is
//! what allows the overlay to remember everything it has learnt of it.

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use crate::budget::Budget;
use crate::host_io::{HostDir, Listing, is_on_kernel_file_system, stat_from, statx_of};
use crate::mount::DEVICES_PER_MOUNT;
use crate::{OpenFlags, Result, Stat};

#[derive(Debug)]
pub(crate) struct Image {
    dir: HostDir,
    /// The host's devices that the image spans; the guest sees their place in this list.
    devices: RefCell<Vec<HostDevice>>,
}

#[derive(Debug)]
struct HostDevice {
    number: (u32, u32),
    /// Its file system shows the host's kernel, not files.
    is_kernel: bool,
}

/// What a look at a node finds.
pub(crate) struct Found {
    /// `dev` is the number of the host device within the image.
    pub(crate) stat: Stat,
    /// Its contents must not show: `/proc`, `/sys` and their kind, wherever they are mounted.
    pub(crate) is_kernel: bool,
}

impl Image {
    /// `root` is an `O_PATH` descriptor of the image's directory.
    pub(crate) fn new(root: OwnedFd) -> Image {
        Image {
            dir: HostDir::across_mounts(root),
            devices: RefCell::new(Vec::new()),
        }
    }

    /// Looks at the node at `path`.
    pub(crate) fn look(&self, path: &[u8]) -> Result<Found> {
        let handle = self.dir.handle(path)?;
        let host = statx_of(handle.as_fd())?;
        let number = (host.stx_dev_major, host.stx_dev_minor);
        let mut devices = self.devices.borrow_mut();
        let index = match devices.iter().position(|known| known.number == number) {
            Some(index) => index,
            None => {
                let is_kernel = is_on_kernel_file_system(handle.as_fd())?;
                devices.push(HostDevice { number, is_kernel });
                devices.len() - 1
            }
        };
        let mut stat = stat_from(&host);
        stat.dev = (index as u64).min(DEVICES_PER_MOUNT - 1);
        let is_kernel = devices.get(index).is_some_and(|device| device.is_kernel);
        Ok(Found { stat, is_kernel })
    }

    pub(crate) fn readlink(&self, path: &[u8]) -> Result<Vec<u8>> {
        self.dir.readlink(path)
    }

    pub(crate) fn open_for_reading(&self, path: &[u8]) -> Result<OwnedFd> {
        self.dir.open_regular(path, OpenFlags::empty())
    }

    pub(crate) fn list(&self, path: &[u8], budget: &Rc<Budget>) -> Result<Listing> {
        self.dir.list(path, budget)
    }
}

#[cfg(test)]
mod tests;
