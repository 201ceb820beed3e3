use tempfile::TempDir;

use super::*;

/// A sysfs tree of a machine whose nodes have equally many CPUs, numbered as Linux numbers them: first one
/// CPU of every core, then the siblings.
struct Machine {
    nodes: u32,
    cores_per_node: u32,
    threads: u32,
    offline: IdList,
    memoryless: Option<u32>,
}

const GIB: u64 = 1 << 30;

impl Machine {
    fn new(nodes: u32, cores_per_node: u32, threads: u32) -> Self {
        Machine {
            nodes,
            cores_per_node,
            threads,
            offline: IdList::default(),
            memoryless: None,
        }
    }

    fn cores(&self) -> u32 {
        self.nodes * self.cores_per_node
    }

    fn present(&self) -> IdList {
        (0..self.cores() * self.threads).collect()
    }

    fn online(&self) -> IdList {
        self.present().without(&self.offline)
    }

    fn node_of(&self, cpu: u32) -> u32 {
        cpu % self.cores() / self.cores_per_node
    }

    fn write(&self) -> TempDir {
        let root = TempDir::new().unwrap();
        let put = |path: String, content: String| {
            let path = root.path().join("devices/system").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content + "\n").unwrap();
        };
        put("cpu/online".into(), self.online().to_string());
        put("cpu/present".into(), self.present().to_string());
        put("cpu/offline".into(), self.offline.to_string());
        put("cpu/possible".into(), self.present().to_string());
        for cpu in self.online().iter() {
            let siblings: IdList = self
                .online()
                .iter()
                .filter(|other| other % self.cores() == cpu % self.cores())
                .collect();
            let topology = format!("cpu/cpu{cpu}/topology");
            put(format!("{topology}/core_cpus_list"), siblings.to_string());
            put(
                format!("{topology}/physical_package_id"),
                self.node_of(cpu).to_string(),
            );
        }
        put(
            "node/online".into(),
            (0..self.nodes).collect::<IdList>().to_string(),
        );
        for node in 0..self.nodes {
            let cpus: IdList = self
                .online()
                .iter()
                .filter(|cpu| self.node_of(*cpu) == node)
                .collect();
            let kib = match self.memoryless {
                Some(empty) if empty == node => 0,
                _ => GIB / 1024,
            };
            let distances: Vec<String> = (0..self.nodes)
                .map(|other| (10 + 11 * node.abs_diff(other)).to_string())
                .collect();
            put(format!("node/node{node}/cpulist"), cpus.to_string());
            put(
                format!("node/node{node}/meminfo"),
                format!("\nNode {node} MemTotal: {kib:>14} kB\nNode {node} MemFree: 5 kB"),
            );
            put(format!("node/node{node}/distance"), distances.join(" "));
        }
        root
    }

    fn read(&self) -> Topology {
        Topology::read(self.write().path()).unwrap()
    }
}

fn list(text: &str) -> IdList {
    text.parse().unwrap()
}

#[test]
fn one_node_without_siblings() {
    let topology = Machine::new(1, 2, 1).read();
    assert_eq!(topology.online, list("0-1"));
    assert_eq!(topology.nodes.len(), 1);
    assert_eq!(topology.nodes[0].memory_bytes, GIB);
    assert_eq!(topology.nodes[0].distances, BTreeMap::from([(0, 10)]));
    assert_eq!(topology.cores.len(), 2);
    assert!(!topology.smt_active());
    assert_eq!(topology.memoryless_nodes().count(), 0);
}

#[test]
fn two_nodes_with_siblings() {
    let topology = Machine::new(2, 4, 2).read();
    assert_eq!(topology.online.len(), 16);
    assert_eq!(topology.nodes[1].cpus, list("4-7,12-15"));
    assert_eq!(
        topology.nodes[1].distances,
        BTreeMap::from([(0, 21), (1, 10)])
    );
    assert_eq!(topology.cores.len(), 8);
    assert_eq!(
        topology.cores[5],
        Core {
            cpus: list("5,13"),
            node: Some(1),
            package: 1
        }
    );
    assert!(topology.smt_active());
}

#[test]
fn four_nodes() {
    let topology = Machine::new(4, 3, 1).read();
    let nodes: Vec<_> = topology.cores.iter().filter_map(|core| core.node).collect();
    assert_eq!(nodes, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!(
        topology.nodes[0].distances,
        BTreeMap::from([(0, 10), (1, 21), (2, 32), (3, 43)])
    );
}

#[test]
fn offline_cpus_are_on_no_node_and_in_no_core() {
    let mut machine = Machine::new(2, 2, 2);
    // One sibling of core 0, and the whole of core 3.
    machine.offline = list("4,3,7");
    let topology = machine.read();
    assert_eq!(topology.offline, list("3-4,7"));
    assert_eq!(topology.nodes[1].cpus, list("2,6"));
    let cores: Vec<_> = topology
        .cores
        .iter()
        .map(|core| core.cpus.clone())
        .collect();
    assert_eq!(cores, [list("0"), list("1,5"), list("2,6")]);
}

#[test]
fn node_without_memory() {
    let mut machine = Machine::new(4, 2, 1);
    machine.memoryless = Some(2);
    let topology = machine.read();
    let ids: Vec<_> = topology.memoryless_nodes().map(|node| node.id).collect();
    assert_eq!(ids, [2]);
}

#[test]
fn node_without_cpus_has_no_core_and_is_not_memoryless() {
    let mut machine = Machine::new(2, 1, 1);
    machine.offline = list("1");
    let topology = machine.read();
    assert!(topology.nodes[1].cpus.is_empty());
    assert_eq!(topology.cores.len(), 1);
    assert_eq!(topology.memoryless_nodes().count(), 0);
}

#[test]
fn kernel_without_numa_has_cores_and_no_nodes() {
    let root = Machine::new(1, 2, 1).write();
    fs::remove_dir_all(root.path().join("devices/system/node")).unwrap();
    let topology = Topology::read(root.path()).unwrap();
    assert!(topology.nodes.is_empty());
    assert_eq!(topology.cores[0].node, None);
}

#[test]
fn damage_is_named_with_its_file() {
    let broken = |file: &str, content: &str| {
        let root = Machine::new(2, 1, 1).write();
        let path = root.path().join("devices/system").join(file);
        fs::write(&path, content).unwrap();
        let error = Topology::read(root.path()).unwrap_err();
        assert!(error.to_string().contains(file), "{error}");
        error
    };
    assert!(matches!(
        broken("node/node1/distance", "10\n"),
        TopologyError::DistanceCount {
            expected: 2,
            found: 1,
            ..
        }
    ));
    assert!(matches!(
        broken("node/node0/meminfo", "Node 0 MemFree: 1 kB\n"),
        TopologyError::NotANumber { .. }
    ));
    assert!(matches!(
        broken(
            "node/node0/meminfo",
            "Node 0 MemTotal: 99999999999999999 kB\n"
        ),
        TopologyError::NotANumber { .. }
    ));
    assert!(matches!(
        broken("cpu/online", "0-z\n"),
        TopologyError::NotAList { .. }
    ));
}

#[test]
fn missing_file_is_named() {
    let root = Machine::new(1, 2, 1).write();
    let file = "devices/system/cpu/cpu1/topology/core_cpus_list";
    fs::remove_file(root.path().join(file)).unwrap();
    let error = Topology::read(root.path()).unwrap_err();
    assert!(matches!(error, TopologyError::Read { .. }));
    assert!(error.to_string().ends_with(file), "{error}");
}
