//! Extended attributes of the writable layer: `user.*` only, as every unprivileged program may
//! set. Attributes of the image do not show.

use rustix::io::Errno;

use crate::budget::Charge;
use crate::overlay::Node;
use crate::{FileKind, Result, XattrSet};

/// `XATTR_NAME_MAX` of `linux/limits.h`.
const NAME_MAX: usize = 255;
/// `XATTR_SIZE_MAX` of `linux/limits.h`.
const VALUE_MAX: usize = 65536;
/// `XATTR_LIST_MAX` of `linux/limits.h`: bytes of all names of a node.
const LIST_MAX: usize = 65536;
/// What an attribute is charged besides its bytes.
const COST: usize = 128;

fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(Errno::RANGE);
    }
    match name.strip_prefix(b"user.") {
        Some([]) => Err(Errno::INVAL),
        Some(_) => Ok(()),
        None => Err(Errno::OPNOTSUPP),
    }
}

impl Node {
    fn check_xattr_target(&self) -> Result<()> {
        match self.kind() {
            FileKind::Regular | FileKind::Directory => Ok(()),
            // xattr(7): what has no contents has no user attributes.
            _ => Err(Errno::PERM),
        }
    }

    pub(crate) fn get_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        match check_name(name) {
            // Those of the image, which exist for all the guest knows, but not for it.
            Err(Errno::OPNOTSUPP) if is_hidden(name) => return Err(Errno::NODATA),
            other => other?,
        }
        let xattrs = self.xattrs.borrow();
        let (value, _) = xattrs.get(name).ok_or(Errno::NODATA)?;
        Ok(value.clone())
    }

    pub(crate) fn set_xattr(&self, name: &[u8], value: &[u8], how: XattrSet) -> Result<()> {
        check_name(name)?;
        self.check_xattr_target()?;
        if value.len() > VALUE_MAX {
            return Err(Errno::TOOBIG);
        }
        let mut xattrs = self.xattrs.borrow_mut();
        match (how, xattrs.contains_key(name)) {
            (XattrSet::Create, true) => return Err(Errno::EXIST),
            (XattrSet::Replace, false) => return Err(Errno::NODATA),
            _ => {}
        }
        let names: usize = xattrs.keys().map(|name| name.len() + 1).sum();
        if names + name.len() + 1 > LIST_MAX {
            return Err(Errno::NOSPC);
        }
        self.pin()?;
        let cost = (COST + name.len() + value.len()) as u64;
        let charge = Charge::of(&self.tree.bytes, cost)?;
        xattrs.insert(name.to_vec(), (value.to_vec(), charge));
        Ok(())
    }

    pub(crate) fn list_xattr(&self) -> Vec<u8> {
        let mut names = Vec::new();
        for name in self.xattrs.borrow().keys() {
            names.extend_from_slice(name);
            names.push(0);
        }
        names
    }

    pub(crate) fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        check_name(name)?;
        match self.xattrs.borrow_mut().remove(name) {
            Some(_) => Ok(()),
            None => Err(Errno::NODATA),
        }
    }
}

fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}
