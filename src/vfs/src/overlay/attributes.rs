//! The attributes of a node.

use rustix::io::Errno;

use super::{Body, Contents, Node};
use crate::{FileKind, Result, Stat, TimeUpdate, Timestamp};

impl Node {
    /// `dev` is the number of the device within the tree.
    pub(crate) fn stat(&self) -> Stat {
        let mut stat = self.attr.get();
        if let Body::Regular(contents) = &self.body
            && let Contents::Memory(file) = &*contents.borrow()
        {
            stat.size = file.size();
            stat.blocks = file.blocks();
        }
        stat
    }

    /// Changes attributes; only for what is pinned, or becomes so by the same operation.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Stat)) {
        let mut attr = self.attr.get();
        change(&mut attr);
        self.attr.set(attr);
    }

    /// Changes attributes of what has changed in its contents just now.
    pub(crate) fn touch(&self, change: impl FnOnce(&mut Stat)) {
        let now = Timestamp::now();
        self.update(|attr| {
            change(attr);
            attr.mtime = now;
            attr.ctime = now;
        });
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<()> {
        if self.kind() == FileKind::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        self.pin()?;
        self.update(|attr| {
            attr.mode = attr.mode & libc::S_IFMT | mode & 0o7777;
            attr.ctime = Timestamp::now();
        });
        Ok(())
    }

    pub(crate) fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.pin()?;
        self.update(|attr| {
            attr.uid = uid.unwrap_or(attr.uid);
            attr.gid = gid.unwrap_or(attr.gid);
            // As Linux does: an executable loses its set-id bits.
            if attr.mode & libc::S_IFMT == libc::S_IFREG && (uid.is_some() || gid.is_some()) {
                attr.mode &= !libc::S_ISUID;
                if attr.mode & libc::S_IXGRP != 0 {
                    attr.mode &= !libc::S_ISGID;
                }
            }
            attr.ctime = Timestamp::now();
        });
        Ok(())
    }

    pub(crate) fn set_times(&self, atime: TimeUpdate, mtime: TimeUpdate) -> Result<()> {
        if (atime, mtime) == (TimeUpdate::Omit, TimeUpdate::Omit) {
            return Ok(());
        }
        self.pin()?;
        let now = Timestamp::now();
        let pick = |update, old| match update {
            TimeUpdate::Omit => old,
            TimeUpdate::Now => now,
            TimeUpdate::At(time) => time,
        };
        self.update(|attr| {
            attr.atime = pick(atime, attr.atime);
            attr.mtime = pick(mtime, attr.mtime);
            attr.ctime = now;
        });
        Ok(())
    }
}
