use super::super::Status;
use super::super::tests::host;
use super::*;

fn limit(current: Option<u64>) -> Rlimit {
    Rlimit {
        current,
        maximum: None,
    }
}

#[test]
fn low_limits_come_with_their_remedy() {
    assert_eq!(memlock(limit(None), false).status, Status::Ok);
    assert_eq!(memlock(limit(Some(8 << 20)), true).status, Status::Ok);
    let low = memlock(limit(Some(8 << 20)), false);
    assert_eq!(low.status, Status::Warn);
    let remedy = low.remedy.unwrap();
    assert!(remedy.starts_with("ulimit -l unlimited"), "{remedy}");
    assert!(remedy.contains("LimitMEMLOCK=infinity"), "{remedy}");

    assert_eq!(nofile(limit(Some(20_000))).status, Status::Ok);
    let low = nofile(limit(Some(1_024)));
    assert_eq!(low.found, "1024 open files, enough for 22 agents");
    assert!(low.remedy.unwrap().contains("LimitNOFILE=65536"));
}

#[test]
fn capability_to_lock_memory_is_read_from_the_mask() {
    let may = |mask: &str| {
        let status = format!("CapPrm:\t0\nCapEff:\t{mask}\n");
        may_lock_anything(host(&[("proc/self/status", &status)]).path())
    };
    assert!(may("000001fffeffffff"));
    assert!(may("0000000000004000"));
    assert!(!may("0000000000000000"));
    assert!(!may("none"));
}

#[test]
fn sysctls_are_judged() {
    let count = |text| max_map_count(host(&[("proc/sys/vm/max_map_count", text)]).path()).status;
    assert_eq!(count("65530\n"), Status::Ok);
    assert_eq!(count("1000\n"), Status::Warn);
    assert_eq!(count("many\n"), Status::Warn);
    let mode = |text| overcommit(host(&[("proc/sys/vm/overcommit_memory", text)]).path()).status;
    assert_eq!(mode("0\n"), Status::Ok);
    assert_eq!(mode("1\n"), Status::Ok);
    assert_eq!(mode("2\n"), Status::Warn);
}

#[test]
fn huge_pages_are_judged() {
    let file = "sys/kernel/mm/transparent_hugepage/enabled";
    let thp = |text| transparent_hugepages(host(&[(file, text)]).path());
    assert_eq!(thp("[always] madvise never\n").status, Status::Warn);
    assert_eq!(
        thp("always [madvise] never\n"),
        Check::ok("hugepages.transparent", "madvise")
    );
    assert_eq!(
        transparent_hugepages(host(&[]).path()).found,
        "not in this kernel"
    );
    let reserved = |free: &str| {
        let meminfo = format!("HugePages_Free:   {free}\nHugepagesize:    2048 kB\n");
        reserved_hugepages(host(&[("proc/meminfo", &meminfo)]).path()).status
    };
    assert_eq!(reserved("0"), Status::Ok);
    assert_eq!(reserved("512"), Status::Warn);
}

/// Two nodes with a CPU each; `kib` is the memory of the second.
fn two_nodes(kib: &str, balancing: &str) -> Check {
    let meminfo = format!("Node 1 MemTotal: {kib} kB\n");
    let system = [
        ("cpu/online", "0-1\n"),
        ("cpu/present", "0-2\n"),
        ("cpu/cpu0/topology/core_cpus_list", "0\n"),
        ("cpu/cpu1/topology/core_cpus_list", "1\n"),
        ("cpu/cpu0/topology/physical_package_id", "0\n"),
        ("cpu/cpu1/topology/physical_package_id", "0\n"),
        ("node/online", "0-1\n"),
        ("node/node0/cpulist", "0\n"),
        ("node/node1/cpulist", "1\n"),
        ("node/node0/meminfo", "Node 0 MemTotal: 2048 kB\n"),
        ("node/node1/meminfo", &meminfo),
        ("node/node0/distance", "10 20\n"),
        ("node/node1/distance", "20 10\n"),
    ];
    let mut files: Vec<_> = system
        .iter()
        .map(|(path, content)| (format!("sys/devices/system/{path}"), *content))
        .collect();
    files.push(("proc/sys/kernel/numa_balancing".to_owned(), balancing));
    let files: Vec<_> = files
        .iter()
        .map(|(path, content)| (path.as_str(), *content))
        .collect();
    let root = host(&files);
    numa(root.path(), Topology::read(&root.path().join("sys")))
}

#[test]
fn numa_is_described_and_judged() {
    assert_eq!(
        two_nodes("4096", "0\n"),
        Check::ok(
            "numa",
            "2 cores, CPUs 0-1 (offline 2); node 0: CPUs 0, 2 MiB; node 1: CPUs 1, 4 MiB"
        )
    );
    assert_eq!(
        two_nodes("4096", "1\n").remedy.unwrap(),
        "sysctl -w kernel.numa_balancing=0"
    );
    assert!(
        two_nodes("0", "0\n")
            .found
            .ends_with("node 1 has CPUs and no memory")
    );
    let broken = two_nodes("much", "0\n");
    assert_eq!(broken.status, Status::Warn);
    assert!(broken.found.contains("node1/meminfo"));
}
