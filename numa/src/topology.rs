//! Nodes, physical cores and CPUs, from `devices/system/{node,cpu}` of a sysfs tree.
//!
//! The files are those of Documentation/ABI/stable/sysfs-devices-node and
//! Documentation/ABI/stable/sysfs-devices-system-cpu in the kernel's source. A CPU that is offline has no
//! `topology` directory and is missing from its node's `cpulist`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{IdList, ParseIdListError};

#[cfg(test)]
mod tests;

/// What a machine consists of, as far as placement is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The online NUMA nodes in ascending order; empty where the kernel was built without NUMA.
    pub nodes: Vec<Node>,
    /// The physical cores with at least one online CPU, ordered by their lowest CPU.
    pub cores: Vec<Core>,
    /// The CPUs that can run something now.
    pub online: IdList,
    /// The CPUs that are plugged in and switched off.
    pub offline: IdList,
}

/// A NUMA node: memory, CPUs, or both, at one distance from everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number for it.
    pub id: u32,
    /// Its online CPUs; none on a node that only extends memory.
    pub cpus: IdList,
    /// Its memory in bytes; 0 on a node that only has CPUs.
    pub memory_bytes: u64,
    /// Distance to each online node by number, itself included: 10 is local, 20 twice as far (ACPI SLIT).
    pub distances: BTreeMap<u32, u32>,
}

/// A physical core: the CPUs that share its execution units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its online CPUs: more than one where simultaneous multithreading is on.
    pub cpus: IdList,
    /// The node it belongs to; none where the kernel was built without NUMA.
    pub node: Option<u32>,
    /// The processor package (socket) it sits in.
    pub package: u32,
}

/// Why a sysfs tree tells no topology.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file that holds a list of CPUs or nodes holds something else.
    #[error("{} does not hold a list of numbers", path.display())]
    NotAList {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ParseIdListError,
    },
    /// A file that holds a number holds something else.
    #[error("{} does not hold a number where one belongs", path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
    },
    /// A node has a distance to more or fewer nodes than there are.
    #[error("{} names {found} distances for {expected} nodes", path.display())]
    DistanceCount {
        /// The file.
        path: PathBuf,
        /// The number of online nodes.
        expected: usize,
        /// The number of distances.
        found: usize,
    },
}

impl Topology {
    /// Reads the topology below `sysfs`, which is `/sys` for the running machine.
    pub fn read(sysfs: &Path) -> Result<Topology, TopologyError> {
        let system = sysfs.join("devices/system");
        let cpu = system.join("cpu");
        let online = read_list(&cpu.join("online"))?;
        let offline = read_list(&cpu.join("present"))?.without(&online);
        let nodes = read_nodes(&system.join("node"))?;
        let cores = read_cores(&cpu, &online, &nodes)?;
        Ok(Topology {
            nodes,
            cores,
            online,
            offline,
        })
    }

    /// Whether some core runs more than one CPU at a time.
    pub fn smt_active(&self) -> bool {
        self.cores.iter().any(|core| core.cpus.len() > 1)
    }

    /// The nodes that have CPUs but no memory of their own: what runs there allocates elsewhere.
    pub fn memoryless_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes
            .iter()
            .filter(|node| node.memory_bytes == 0 && !node.cpus.is_empty())
    }
}

fn read_nodes(directory: &Path) -> Result<Vec<Node>, TopologyError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let ids = read_list(&directory.join("online"))?;
    ids.iter()
        .map(|id| {
            let node = directory.join(format!("node{id}"));
            Ok(Node {
                id,
                cpus: read_list(&node.join("cpulist"))?,
                memory_bytes: read_memory_bytes(&node.join("meminfo"))?,
                distances: read_distances(&node.join("distance"), &ids)?,
            })
        })
        .collect()
}

/// Every online CPU names the siblings on its core, itself included; each distinct set is a core.
fn read_cores(cpu: &Path, online: &IdList, nodes: &[Node]) -> Result<Vec<Core>, TopologyError> {
    let mut cores = BTreeMap::new();
    for id in online.iter() {
        let topology = cpu.join(format!("cpu{id}/topology"));
        let cpus = read_list(&topology.join("core_cpus_list"))?;
        if cores.contains_key(&cpus) {
            continue;
        }
        let core = Core {
            node: nodes
                .iter()
                .find(|node| node.cpus.contains(id))
                .map(|node| node.id),
            package: read_number(&topology.join("physical_package_id"))?,
            cpus: cpus.clone(),
        };
        cores.insert(cpus, core);
    }
    Ok(cores.into_values().collect())
}

fn read_list(path: &Path) -> Result<IdList, TopologyError> {
    read(path)?
        .parse()
        .map_err(|source| TopologyError::NotAList {
            path: path.to_owned(),
            source,
        })
}

fn read_number(path: &Path) -> Result<u32, TopologyError> {
    read(path)?
        .trim_end()
        .parse()
        .map_err(|_| TopologyError::NotANumber {
            path: path.to_owned(),
        })
}

/// The line `Node 0 MemTotal:  4417740 kB`, where kB means KiB.
fn read_memory_bytes(path: &Path) -> Result<u64, TopologyError> {
    read(path)?
        .lines()
        .find_map(|line| line.split_once("MemTotal:"))
        .and_then(|(_, size)| size.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| TopologyError::NotANumber {
            path: path.to_owned(),
        })
}

/// One column for each online node, in ascending order.
fn read_distances(path: &Path, nodes: &IdList) -> Result<BTreeMap<u32, u32>, TopologyError> {
    let distances = read(path)?
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<Vec<u32>, _>>()
        .map_err(|_| TopologyError::NotANumber {
            path: path.to_owned(),
        })?;
    if distances.len() != nodes.len() {
        return Err(TopologyError::DistanceCount {
            path: path.to_owned(),
            expected: nodes.len(),
            found: distances.len(),
        });
    }
    Ok(nodes.iter().zip(distances).collect())
}

fn read(path: &Path) -> Result<String, TopologyError> {
    fs::read_to_string(path).map_err(|source| TopologyError::Read {
        path: path.to_owned(),
        source,
    })
}
