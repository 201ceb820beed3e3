//! Memory as programs find it: compared with native runs of the same scenarios.

use super::harness::{Ended, Job, Linkage, Volume, compile, tests};

tests![
    anonymous,
    files,
    heap_and_stack,
    code,
    faults,
    error_numbers,
    reservations,
    areas_are_limited,
    untouched_costs_nothing,
    given_back,
    shared_files_are_written_back,
    python_mmap,
];

fn job(scenarios: &[&str]) -> Job {
    let job = Job::new([compile("memory", Linkage::Static)]);
    scenarios
        .iter()
        .fold(job, |job, scenario| job.argument(*scenario))
}

fn anonymous() {
    let scenarios = [
        "demand_zero",
        "map_fixed_over",
        "unmap_middle",
        "noreplace",
        "remap",
        "grow_by_steps",
    ];
    job(&scenarios).argument("shared_anonymous").same().ok();
}

fn files() {
    job(&[
        "private_file",
        "shared_file",
        "shared_with_syscalls",
        "dontneed",
    ])
    .same_in(&Volume::new())
    .ok();
}

fn heap_and_stack() {
    job(&["heap"]).same().ok();
    job(&["stack"]).same().ok();
}

fn code() {
    job(&["self_modifying"]).same().ok();
}

fn faults() {
    let segmentation = [
        "read_only",
        "no_access",
        "after_unmap",
        "not_executable",
        "stack_overflow",
    ];
    for scenario in segmentation {
        let outcome = job(&[scenario]).same();
        assert_eq!(outcome.ended, Ended::Signal(11), "{scenario}: {outcome:?}");
    }
    let outcome = job(&["beyond_file"]).same_in(&Volume::new());
    assert_eq!(outcome.ended, Ended::Signal(7), "{outcome:?}");
}

fn error_numbers() {
    Job::new([compile("memory_errors", Linkage::Static)])
        .same_in(&Volume::new())
        .ok();
}

fn reservations() {
    job(&["reserve"]).same().ok();
    job(&["reserve"]).option("--memory=32M").guest().ok();
}

fn areas_are_limited() {
    job(&["many_areas"]).same().ok();
}

fn untouched_costs_nothing() {
    let (outcome, stats) = job(&["untouched"]).stats();
    outcome.ok();
    let touched = stats["pages_touched"].as_u64().expect("a number");
    assert!(touched < 1000, "{touched} pages");
}

fn given_back() {
    let (outcome, stats) = job(&["churn"]).option("--memory=128M").stats();
    outcome.ok();
    let touched = stats["pages_touched"].as_u64().expect("a number");
    assert!(touched < 5000, "{touched} pages at the end");
}

/// A program that dies still leaves what it wrote to a shared mapping.
fn shared_files_are_written_back() {
    let script = "import mmap, os\n\
        fd = os.open('shared', os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 10000)\n\
        m = mmap.mmap(fd, 10000); m[5000:5005] = b'hello'\n\
        os.abort()";
    let outcome = Job::python(script).same_in(&Volume::new());
    assert_eq!(outcome.ended, Ended::Signal(6), "{outcome:?}");
}

fn python_mmap() {
    let script = "import mmap\n\
        with open('file', 'wb') as f: f.write(bytes(range(256)) * 100)\n\
        with open('file', 'r+b') as f:\n \
         m = mmap.mmap(f.fileno(), 0)\n \
         print(m.find(b'\\x10\\x11'), m[-1], len(m))\n \
         m[10:20] = b'0123456789'; m.flush(); m.resize(50000)\n \
         m[40000] = 7; m.move(30000, 0, 1000); m.close()\n\
        m = mmap.mmap(-1, 1 << 20); m.write(b'x' * 1000); m.madvise(mmap.MADV_DONTNEED); print(m[999])\n\
        print(open('file', 'rb').read(20))";
    Job::python(script).same_in(&Volume::new()).ok();
}
