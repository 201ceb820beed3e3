//! NUMA topology of the host, read from sysfs.
//!
//! - [`Topology`]: nodes, physical cores and CPUs of a machine, read once from a sysfs tree
//! - [`IdList`]: the kernel's text form of a set of CPUs or nodes
//!
//! Nothing here assumes that the tree is the running machine's: every path is below the root that the caller
//! names, so a tree recorded elsewhere reads the same.

mod id_list;
mod topology;

pub use id_list::{IdList, MAX_ID, ParseIdListError};
pub use topology::{Core, Node, Topology, TopologyError};
