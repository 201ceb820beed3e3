//! `/sys`: a read-only tree in memory with the few files that runtimes read, for one CPU on
//! one NUMA node.

use std::rc::Rc;

use rustix::io::Errno;

use crate::Result;
use crate::overlay::{NewNode, Node};

const FILES: &[(&str, &str)] = &[
    ("devices/system/cpu/online", "0\n"),
    ("devices/system/cpu/possible", "0\n"),
    ("devices/system/cpu/present", "0\n"),
    ("devices/system/cpu/cpu0/topology/core_id", "0\n"),
    (
        "devices/system/cpu/cpu0/topology/physical_package_id",
        "0\n",
    ),
    ("devices/system/cpu/cpu0/topology/thread_siblings", "1\n"),
    (
        "devices/system/cpu/cpu0/topology/thread_siblings_list",
        "0\n",
    ),
    ("devices/system/node/online", "0\n"),
    ("devices/system/node/possible", "0\n"),
    ("devices/system/node/node0/cpulist", "0\n"),
    (
        "kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    ("kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"),
];

const DIRECTORIES: &[&str] = &["block", "bus", "class", "dev", "firmware", "fs", "module"];

/// Fills the root of a tree.
pub(crate) fn populate(root: &Rc<Node>) -> Result<()> {
    for name in DIRECTORIES {
        directory(root, name)?;
    }
    for (path, text) in FILES {
        let (parents, name) = path.rsplit_once('/').ok_or(Errno::INVAL)?;
        let mut parent = Rc::clone(root);
        for component in parents.split('/') {
            parent = directory(&parent, component)?;
        }
        let mode = libc::S_IFREG | 0o444;
        let file = parent.create(name.as_bytes(), mode, &NewNode::Regular)?;
        file.with_memory(|contents| contents.write_bytes(0, text.as_bytes()))?;
    }
    Ok(())
}

/// The directory `name`, made if it is not there.
fn directory(parent: &Rc<Node>, name: &str) -> Result<Rc<Node>> {
    match parent.child(name.as_bytes()) {
        Err(Errno::NOENT) => {
            parent.create(name.as_bytes(), libc::S_IFDIR | 0o755, &NewNode::Directory)
        }
        found => found,
    }
}
