//! Looks names up on volumes during one walk.

use std::rc::Rc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{VolumeNode, last_name};
use crate::host_io::HostDir;
use crate::{FileKind, NAME_MAX, PATH_MAX, Result};

/// Most components that the host resolves for one walk of a guest. The longest path takes half
/// as many, so this binds only walks that go in circles, by links or out of deep directories.
const MAX_COMPONENTS: usize = 2 * PATH_MAX;

/// What one walk remembers of volumes: the directory of its last look, so that going down costs
/// the host one component a step instead of the whole path, and what it has cost so far.
#[derive(Debug, Default)]
pub(crate) struct Descent {
    directory: Option<(VolumeNode, HostDir)>,
    components: usize,
}

impl Descent {
    /// The node `name` in `parent`, which is not `.` or `..`. ELOOP if the walk has become too
    /// expensive.
    pub(super) fn child(&mut self, parent: &VolumeNode, name: &[u8]) -> Result<VolumeNode> {
        if name.len() > NAME_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let path = parent.join(name);
        // The host takes no longer one, so nothing could be done with the node.
        if path.len() >= PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        self.spend(1)?;
        let mode = self.enter(parent)?.mode_of(name)?;
        Ok(VolumeNode {
            volume: Rc::clone(&parent.volume),
            path: path.into(),
            kind: FileKind::from_mode(mode),
        })
    }

    /// Opens a directory, from the last one if it is in that.
    fn enter(&mut self, node: &VolumeNode) -> Result<&HostDir> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let is_last = |last: &VolumeNode, path: &[u8]| {
            Rc::ptr_eq(&last.volume, &node.volume) && last.path() == path
        };
        let (above, name) = last_name(&node.path);
        let entered = match self.directory.take() {
            Some((last, directory)) if is_last(&last, node.path()) => directory,
            Some((last, directory)) if !node.path.is_empty() && is_last(&last, above) => {
                self.spend(1)?;
                HostDir::within_mount(directory.open_at(name, flags, Mode::empty())?, false)
            }
            _ => {
                self.spend(node.path.split(|byte| *byte == b'/').count())?;
                HostDir::within_mount(node.directory()?, false)
            }
        };
        let (_, directory) = self.directory.insert((node.clone(), entered));
        Ok(directory)
    }

    fn spend(&mut self, components: usize) -> Result<()> {
        self.components = self.components.saturating_add(components);
        match self.components > MAX_COMPONENTS {
            true => Err(Errno::LOOP),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
