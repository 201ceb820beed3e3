//! A handle on a node that gives no access to its contents (`O_PATH`): open(2) has EBADF for
//! whatever changes the node or reads its extended attributes.

use rustix::io::Errno;

use crate::mount::{Location, NodeRef};
use crate::{File, FileKind, Result, Stat, TimeUpdate, XattrSet};

pub(crate) struct PathHandle {
    pub(crate) location: Location,
    /// The attributes when it was opened, for what cannot be asked again.
    pub(crate) stat: Stat,
}

impl File for PathHandle {
    fn location(&self) -> &Location {
        &self.location
    }

    fn stat(&self) -> Result<Stat> {
        match &self.location.node {
            NodeRef::Tree(node) => Ok(self.location.localise(node.stat())),
            NodeRef::Volume(node) => Ok(self.location.localise(node.stat()?)),
            NodeRef::Proc(_) => Ok(self.stat),
        }
    }

    fn kind(&self) -> FileKind {
        self.stat.kind()
    }

    fn set_mode(&self, _mode: u32) -> Result<()> {
        Err(Errno::BADF)
    }

    fn set_owner(&self, _uid: Option<u32>, _gid: Option<u32>) -> Result<()> {
        Err(Errno::BADF)
    }

    fn set_times(&self, _atime: TimeUpdate, _mtime: TimeUpdate) -> Result<()> {
        Err(Errno::BADF)
    }

    fn set_xattr(&self, _name: &[u8], _value: &[u8], _how: XattrSet) -> Result<()> {
        Err(Errno::BADF)
    }

    fn remove_xattr(&self, _name: &[u8]) -> Result<()> {
        Err(Errno::BADF)
    }

    fn get_xattr(&self, _name: &[u8]) -> Result<Vec<u8>> {
        Err(Errno::BADF)
    }

    fn list_xattr(&self) -> Result<Vec<u8>> {
        Err(Errno::BADF)
    }
}
