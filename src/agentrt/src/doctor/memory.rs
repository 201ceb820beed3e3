//! Limits on memory and descriptors, overcommit, huge pages and NUMA.

use std::path::Path;

use agentrt_numa::{Topology, TopologyError};
use rustix::process::{Resource, Rlimit, getrlimit};

use super::{Check, chain, read};

#[cfg(test)]
mod tests;

/// Locked memory for the registered buffers of one io_uring: 64 MiB.
const MEMLOCK_WANTED: u64 = 64 << 20;

/// Descriptors of one agent: its virtual machine's, and some forty open files of its program.
const NOFILE_PER_AGENT: u64 = 45;

/// Descriptors of the 100 agents that one process serves at most.
const NOFILE_WANTED: u64 = 100 * NOFILE_PER_AGENT;

/// The kernel's default. A virtual machine takes some ten mappings, and one more per mapped file.
const MAP_COUNT_WANTED: u64 = 65_530;

/// CAP_IPC_LOCK of linux/capability.h: its holder may lock memory without limit.
const CAP_IPC_LOCK: u32 = 14;

pub fn checks(root: &Path) -> Vec<Check> {
    vec![
        memlock(getrlimit(Resource::Memlock), may_lock_anything(root)),
        nofile(getrlimit(Resource::Nofile)),
        max_map_count(root),
        overcommit(root),
        transparent_hugepages(root),
        reserved_hugepages(root),
        numa(root, Topology::read(&root.join("sys"))),
    ]
}

fn may_lock_anything(root: &Path) -> bool {
    let status = read(root, "proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << CAP_IPC_LOCK) != 0)
}

fn memlock(limit: Rlimit, exempt: bool) -> Check {
    let name = "limit.memlock";
    let found = match limit.current {
        None => return Check::ok(name, "unlimited"),
        Some(bytes) => format!("{} KiB of locked memory", bytes >> 10),
    };
    if exempt {
        return Check::ok(name, format!("{found}; not applied here (CAP_IPC_LOCK)"));
    }
    match limit.current {
        Some(bytes) if bytes < MEMLOCK_WANTED => {
            Check::warn(name, found, raise("memlock", "-l", "unlimited"))
        }
        _ => Check::ok(name, found),
    }
}

fn nofile(limit: Rlimit) -> Check {
    let name = "limit.nofile";
    match limit.current {
        None => Check::ok(name, "unlimited"),
        Some(files) if files >= NOFILE_WANTED => Check::ok(name, format!("{files} open files")),
        Some(files) => Check::warn(
            name,
            format!(
                "{files} open files, enough for {} agents",
                files / NOFILE_PER_AGENT
            ),
            raise("nofile", "-n", "65536"),
        ),
    }
}

fn raise(item: &str, option: &str, value: &str) -> String {
    format!(
        "ulimit {option} {value} in the shell that starts agentrt; where the hard limit forbids it, add \
         \"$USER - {item} {value}\" to /etc/security/limits.conf and log in again, or set Limit{}={} in the \
         systemd unit",
        item.to_uppercase(),
        value.replace("unlimited", "infinity"),
    )
}

fn max_map_count(root: &Path) -> Check {
    let name = "vm.max_map_count";
    match number(root, "proc/sys/vm/max_map_count") {
        Some(count) if count >= MAP_COUNT_WANTED => Check::ok(name, count.to_string()),
        Some(count) => Check::warn(
            name,
            format!("{count}, less than the kernel's default"),
            "sysctl -w vm.max_map_count=262144",
        ),
        None => unreadable(name),
    }
}

fn overcommit(root: &Path) -> Check {
    let name = "vm.overcommit_memory";
    match number(root, "proc/sys/vm/overcommit_memory") {
        Some(0) => Check::ok(name, "0: heuristic"),
        Some(1) => Check::ok(name, "1: always"),
        Some(mode) => Check::warn(
            name,
            format!("{mode}: every guest is charged with its whole memory size, used or not"),
            "sysctl -w vm.overcommit_memory=0",
        ),
        None => unreadable(name),
    }
}

fn unreadable(name: &'static str) -> Check {
    Check::warn(
        name,
        "cannot be read",
        "mount -t proc proc /proc; for a container: do not mask /proc/sys",
    )
}

fn transparent_hugepages(root: &Path) -> Check {
    let name = "hugepages.transparent";
    let setting = read(root, "sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = setting
        .split(['[', ']'])
        .nth(1)
        .unwrap_or("not in this kernel");
    match chosen {
        "always" => Check::warn(
            name,
            "always: an agent that touches 4 KiB may be given 2 MiB",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        _ => Check::ok(name, chosen),
    }
}

fn reserved_hugepages(root: &Path) -> Check {
    let name = "hugepages.reserved";
    let meminfo = read(root, "proc/meminfo").unwrap_or_default();
    let field = |field: &str| {
        let value = meminfo.lines().find_map(|line| line.strip_prefix(field));
        value?.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (Some(free), Some(size)) = (field("HugePages_Free:"), field("Hugepagesize:")) else {
        return Check::ok(name, "not in this kernel");
    };
    match free {
        0 => Check::ok(name, "none lie idle"),
        _ => Check::warn(
            name,
            format!("{free} of {size} KiB lie idle, and agentrt does not use them"),
            "sysctl -w vm.nr_hugepages=0, unless another program will use them",
        ),
    }
}

fn numa(root: &Path, topology: Result<Topology, TopologyError>) -> Check {
    let name = "numa";
    let topology = match topology {
        Ok(topology) => topology,
        Err(error) => {
            return Check::warn(
                name,
                chain(&error),
                "mount -t sysfs sysfs /sys; for a container: do not mask /sys/devices/system",
            );
        }
    };
    let found = describe(&topology);
    let memoryless: Vec<_> = topology.memoryless_nodes().collect();
    if let Some(node) = memoryless.first() {
        return Check::warn(
            name,
            format!("{found}; node {} has CPUs and no memory", node.id),
            "fit memory to every node, or keep agentrt off its CPUs with taskset or AllowedCPUs=",
        );
    }
    let balancing = number(root, "proc/sys/kernel/numa_balancing").unwrap_or(0);
    if topology.nodes.len() > 1 && balancing != 0 {
        return Check::warn(
            name,
            format!("{found}; automatic balancing unmaps pages of guests to watch their use"),
            "sysctl -w kernel.numa_balancing=0",
        );
    }
    Check::ok(name, found)
}

fn describe(topology: &Topology) -> String {
    let mut text = format!("{} cores, CPUs {}", topology.cores.len(), topology.online);
    if !topology.offline.is_empty() {
        text += &format!(" (offline {})", topology.offline);
    }
    for node in &topology.nodes {
        let mib = node.memory_bytes >> 20;
        text += &format!("; node {}: CPUs {}, {mib} MiB", node.id, node.cpus);
    }
    text
}

fn number(root: &Path, path: &str) -> Option<u64> {
    read(root, path)?.parse().ok()
}
