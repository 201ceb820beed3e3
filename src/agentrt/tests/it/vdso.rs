//! Clocks: told inside the guest where the host's time stamp counter allows it, and right in any
//! case.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::{SystemTime, UNIX_EPOCH};

use super::harness::{Job, Linkage, compile, process, tests};

tests![
    never_back,
    all_ways_agree,
    the_host_s_time,
    python_makes_no_clock_syscalls,
    shown_in_maps,
];

fn clock(what: &str, linkage: Linkage) -> Job {
    Job::new([compile("clock", linkage)]).argument(what)
}

/// Does the kernel trust the time stamp counter? Then agentrt does.
fn counter_keeps_time() -> bool {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
}

fn never_back() {
    for linkage in [Linkage::Static, Linkage::Dynamic] {
        let (outcome, stats) = clock("forward", linkage).stats();
        assert_eq!(outcome.ok().out(), "0 steps back\n");
        let calls = stats["syscalls"]["clock_gettime"]["calls"].as_u64();
        // The program itself makes 2,000 of the million reads by a syscall.
        let most = if counter_keeps_time() {
            2_100
        } else {
            1_000_000
        };
        assert!(
            calls.is_some_and(|calls| (2_000..=most).contains(&calls)),
            "{stats}"
        );
    }
}

fn all_ways_agree() {
    for linkage in [Linkage::Static, Linkage::StaticPie, Linkage::Dynamic] {
        let outcome = clock("agree", linkage).guest().ok();
        assert_eq!(outcome.out(), "1 0\n1\n1\n1\n0 1\n0 0 0\n-1\n1\n");
    }
}

/// What the guest reads has passed for the host when it sees it, and not long ago.
fn the_host_s_time() {
    let mut child = process::spawn(clock("tell", Linkage::Dynamic).guest_command());
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let ages: Vec<i64> = lines
        .map(|line| {
            let told: i64 = line.expect("a line").parse().expect("nanoseconds");
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("a time after 1970").as_nanos() as i64 - told
        })
        .collect();
    assert!(child.wait().expect("a status").success());
    assert_eq!(ages.len(), 100);
    // Inaccurate by microseconds at most; how long a line takes is a matter of the scheduler.
    assert!(ages.iter().all(|&age| age > -100_000), "{ages:?}");
    assert!(ages.iter().any(|&age| age < 1_000_000), "{ages:?}");
}

fn python_makes_no_clock_syscalls() {
    let program = "import time, datetime\n\
        clocks = [time.time, time.monotonic, time.perf_counter, datetime.datetime.now]\n\
        for clock in clocks:\n    \
            reads = [clock() for _ in range(5000)]\n    \
            assert reads == sorted(reads) and reads[0] < reads[-1]\n";
    let (outcome, stats) = Job::python(program).stats();
    outcome.ok();
    let calls = stats["syscalls"]["clock_gettime"]["calls"].as_u64();
    assert!(!counter_keeps_time() || calls.unwrap_or(0) < 100, "{stats}");
}

fn shown_in_maps() {
    let outcome = Job::new(["/bin/cat", "/proc/self/maps"]).guest().ok();
    let maps = outcome.out();
    let lines: Vec<Vec<&str>> = maps
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let area = |name| {
        lines
            .iter()
            .find(|line| line.last() == Some(&name))
            .map(|line| line[1])
    };
    assert_eq!(
        (area("[vvar]"), area("[vdso]")),
        (Some("r--p"), Some("r-xp"))
    );
    // The dynamic linker lists it among the objects.
    let job = Job::new(["/bin/true"]).option("--env=LD_TRACE_LOADED_OBJECTS=1");
    let outcome = job.guest().ok();
    assert!(outcome.out().contains("linux-vdso.so.1"), "{outcome:?}");
}
