//! Renames within a tree of nodes. Directories of the image move, too: a node remembers where
//! its contents are in the image.

use std::rc::Rc;

use rustix::io::Errno;

use crate::budget::Charge;
use crate::overlay::Node;
use crate::{FileKind, RenameFlags, Result, Timestamp};

/// A name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) directory: &'a Rc<Node>,
    pub(crate) name: &'a [u8],
    /// A slash follows it, so that it can only be a directory.
    pub(crate) slash: bool,
}

impl Slot<'_> {
    fn find(&self) -> Result<Option<Rc<Node>>> {
        match self.directory.child(self.name) {
            Ok(node) => Ok(Some(node)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_directory(node: &Node) -> bool {
    node.kind() == FileKind::Directory
}

/// Whether `node` is `directory` or lies above it.
fn is_above(node: &Rc<Node>, directory: &Rc<Node>) -> bool {
    let mut next = Some(Rc::clone(directory));
    while let Some(place) = next {
        if Rc::ptr_eq(&place, node) {
            return true;
        }
        next = place.parent();
    }
    false
}

/// `renameat2`, with the checks in the order of Linux' `do_renameat2` and `vfs_rename`.
pub(crate) fn rename(from: Slot<'_>, to: Slot<'_>, flags: RenameFlags) -> Result<()> {
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    let source = from.find()?.ok_or(Errno::NOENT)?;
    let target = to.find()?;
    if target.is_some() && flags.contains(RenameFlags::NOREPLACE) {
        return Err(Errno::EXIST);
    }
    if exchange {
        let target = target.as_ref().ok_or(Errno::NOENT)?;
        if to.slash && !is_directory(target) {
            return Err(Errno::NOTDIR);
        }
    }
    if !is_directory(&source) && (from.slash || (!exchange && to.slash)) {
        return Err(Errno::NOTDIR);
    }
    if is_above(&source, to.directory) {
        return Err(Errno::INVAL);
    }
    if let Some(target) = &target
        && is_above(target, from.directory)
    {
        return Err(if exchange {
            Errno::INVAL
        } else {
            Errno::NOTEMPTY
        });
    }
    match target {
        Some(target) if Rc::ptr_eq(&source, &target) => Ok(()),
        Some(target) if exchange => swap(from, to, &source, &target),
        Some(target) => replace(from, to, &source, &target),
        None => relocate(from, to, &source),
    }
}

fn check_covered(node: &Node) -> Result<()> {
    match node.covered.get() {
        Some(_) => Err(Errno::BUSY),
        None => Ok(()),
    }
}

fn replace(from: Slot<'_>, to: Slot<'_>, source: &Rc<Node>, target: &Rc<Node>) -> Result<()> {
    match (is_directory(source), is_directory(target)) {
        (true, false) => return Err(Errno::NOTDIR),
        (false, true) => return Err(Errno::ISDIR),
        _ => {}
    }
    check_covered(source)?;
    check_covered(target)?;
    if is_directory(target) && !target.is_empty()? {
        return Err(Errno::NOTEMPTY);
    }
    relocate(from, to, source)?;
    if is_directory(target) {
        to.directory.leave(target);
    }
    target.drop_link();
    Ok(())
}

/// Moves `source`, whose new name may be taken. Whatever can fail comes first.
fn relocate(from: Slot<'_>, to: Slot<'_>, source: &Rc<Node>) -> Result<()> {
    if to.directory.is_removed() {
        return Err(Errno::NOENT);
    }
    check_covered(source)?;
    source.pin()?;
    to.directory.pin()?;
    let charge = to.directory.charge_name(to.name)?;
    from.directory.detach(from.name)?;
    attach(to, source, charge)
}

fn swap(from: Slot<'_>, to: Slot<'_>, source: &Rc<Node>, target: &Rc<Node>) -> Result<()> {
    check_covered(source)?;
    check_covered(target)?;
    source.pin()?;
    target.pin()?;
    to.directory.pin()?;
    let at_from = from.directory.charge_name(from.name)?;
    let at_to = to.directory.charge_name(to.name)?;
    from.directory.detach(from.name)?;
    match to.directory.detach(to.name) {
        Ok(_) => {
            attach(to, source, at_to)?;
            attach(from, target, at_from)
        }
        Err(error) => {
            attach(from, source, at_from)?;
            Err(error)
        }
    }
}

/// Attaches a node that keeps its number of links.
fn attach(to: Slot<'_>, node: &Rc<Node>, charge: Charge) -> Result<()> {
    to.directory.attach(to.name, node, charge)?;
    node.update(|attr| {
        attr.nlink = attr.nlink.saturating_sub(1);
        attr.ctime = Timestamp::now();
    });
    Ok(())
}
