//! The file tree that a guest finds: /proc, /dev, /sys, and nothing of the host's.

use super::harness::{Ended, Job, tests};

tests![
    own_process,
    memory_map,
    machine,
    devices,
    processes_of_the_host,
    host_does_not_show,
    read_only_proc,
    identity,
];

/// Runs a script whose assertions are about the guest.
fn holds(script: &str) {
    let outcome = Job::python(&format!("import os, errno, stat\n{script}\nprint('held')")).guest();
    assert_eq!(outcome.ended, Ended::Exit(0), "{outcome:?}");
    assert_eq!(outcome.out(), "held\n");
}

fn own_process() {
    holds(
        r#"
def read(name): return open("/proc/self/" + name, "rb").read()
assert os.getpid() == 1 and os.readlink("/proc/self") == "1" and os.path.isdir("/proc/1/task/1"), os.getpid()
assert read("cmdline").startswith(b"/usr/bin/python3\0-c\0"), read("cmdline")
assert read("environ").split(b"\0")[1] == b"HOME=/root"
assert os.readlink("/proc/self/exe") == os.path.realpath("/usr/bin/python3"), os.readlink("/proc/self/exe")
assert os.readlink("/proc/self/cwd") == "/" and os.readlink("/proc/self/root") == "/"
assert read("comm") == b"python3\n", read("comm")
fields = read("stat").split()
assert len(fields) == 52 and fields[0] == b"1" and fields[1] == b"(python3)" and fields[2] == b"R", fields
status = dict(line.split(":\t", 1) for line in read("status").decode().splitlines())
assert status["Name"] == "python3" and status["Pid"] == "1" and status["Threads"] == "1", status
assert 1000 < int(status["VmRSS"].split()[0]) < 200_000, status["VmRSS"]
assert len(read("statm").split()) == 7 and b"Max open files" in read("limits")
fd = os.open("/etc/passwd", os.O_RDONLY)
assert os.readlink(f"/proc/self/fd/{fd}") == "/etc/passwd" and str(fd) in os.listdir("/proc/self/fd")
assert b"flags:" in read(f"fdinfo/{fd}") and open(f"/proc/self/fd/{fd}").read() == open("/etc/passwd").read()
os.unlink("/etc/passwd")
assert os.readlink(f"/proc/self/fd/{fd}") == "/etc/passwd (deleted)", os.readlink(f"/proc/self/fd/{fd}")
assert b" / " in read("mounts") and b" /proc " in read("mountinfo")
assert len(read("auxv")) % 16 == 0 and read("auxv")[-16:] == bytes(16)
"#,
    );
}

fn memory_map() {
    holds(
        r#"
areas = []
for line in open("/proc/self/maps"):
    addresses, rights, offset, device, inode, *path = line.split(None, 5)
    start, end = (int(number, 16) for number in addresses.split("-"))
    areas.append((start, end, rights, path[0].strip() if path else ""))
assert areas == sorted(areas) and all(a[1] <= b[0] for a, b in zip(areas, areas[1:]))
names = [area[3] for area in areas]
assert "[stack]" in names and "[heap]" in names and any(name.endswith("libc.so.6") for name in names), names
assert any(os.path.realpath("/usr/bin/python3") == os.path.realpath(name) and rights == "r-xp" for *_, rights, name in areas)
assert all(end < 1 << 47 for _, end, *_ in areas)
import ctypes
value = ctypes.c_int(77); address = ctypes.addressof(value)
assert any(start <= address < end and rights.startswith("rw") for start, end, rights, _ in areas)
code = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
assert any(start <= code < end and "x" in rights for start, end, rights, _ in areas)
"#,
    );
}

fn machine() {
    holds(
        r#"
info = open("/proc/cpuinfo").read()
assert info.count("processor\t:") == 1 and "flags" in info and os.cpu_count() == 1, info
memory = dict(line.split(":") for line in open("/proc/meminfo"))
total = int(memory["MemTotal"].split()[0])
assert 900_000 < total <= 1 << 20 and int(memory["MemFree"].split()[0]) < total, memory
assert os.sysconf("SC_PAGE_SIZE") == 4096 and os.sysconf("SC_NPROCESSORS_ONLN") == 1
assert float(open("/proc/uptime").read().split()[0]) < 60
assert len(open("/proc/loadavg").read().split()) == 5 and open("/proc/version").read().startswith("Linux version")
assert open("/proc/sys/kernel/ostype").read() == "Linux\n" and open("/proc/sys/kernel/osrelease").read().strip() == os.uname().release
assert len(open("/proc/sys/kernel/random/uuid").read()) == 37
assert open("/proc/sys/kernel/random/uuid").read() != open("/proc/sys/kernel/random/uuid").read()
assert "cpu " in open("/proc/stat").read() and "proc" in open("/proc/filesystems").read()
assert os.sched_getaffinity(0) == {0}
"#,
    );
}

fn devices() {
    holds(
        r#"
def device(name): s = os.stat("/dev/" + name); return stat.S_ISCHR(s.st_mode), os.major(s.st_rdev), os.minor(s.st_rdev)
numbers = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
for name, minor in numbers.items(): assert device(name) == (True, 1, minor), (name, device(name))
assert open("/dev/null", "rb").read() == b"" and open("/dev/null", "wb").write(b"x" * 100000) == 100000
assert open("/dev/zero", "rb").read(100000) == bytes(100000) and open("/dev/full", "rb").read(5) == bytes(5)
try: os.write(os.open("/dev/full", os.O_WRONLY), b"x"); assert False
except OSError as error: assert error.errno == errno.ENOSPC
a, b = open("/dev/urandom", "rb").read(5000), open("/dev/random", "rb").read(5000)
assert a != b and len(set(a)) > 200 and len(b) == 5000
assert os.readlink("/dev/fd") == "/proc/self/fd" and os.readlink("/dev/stdin") == "/proc/self/fd/0"
import mmap
m = mmap.mmap(os.open("/dev/zero", os.O_RDWR), 8192, mmap.MAP_PRIVATE); m[5000] = 1; assert m[:5000] == bytes(5000)
for directory in "/dev/shm", "/tmp":
    open(directory + "/x", "w").write("y"); assert open(directory + "/x").read() == "y"
"#,
    );
}

fn processes_of_the_host() {
    // The host has many processes, and this one; the guest has one, with the number 1.
    let script = "import os\n\
        print([name for name in os.listdir('/proc') if name.isdigit()], open('/proc/1/cmdline').read()[:16])\n\
        print(sum(os.path.exists(f'/proc/{pid}') for pid in range(2, 70000)))";
    assert_eq!(
        Job::python(script).guest().ok().out(),
        "['1'] /usr/bin/python3\n0\n"
    );
}

fn host_does_not_show() {
    holds(
        r#"
for path in ["/dev/kvm", "/dev/mem", "/dev/kmem", "/dev/sda", "/dev/vda", "/dev/nvme0", "/dev/loop0", "/dev/fuse", "/dev/net/tun",
             "/dev/kmsg", "/dev/port", "/sys/class/net", "/sys/class/block", "/sys/block", "/sys/kernel/debug", "/sys/fs/cgroup/cgroup.procs",
             "/sys/module", "/sys/devices/pci0000:00", "/sys/class/dmi", "/sys/firmware", "/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/sysrq-trigger",
             "/proc/modules", "/proc/iomem", "/proc/net/tcp", "/proc/net/unix", "/proc/partitions", "/proc/diskstats", "/proc/keys", "/proc/cmdline",
             "/proc/self/mem", "/proc/self/pagemap", "/proc/self/syscall", "/proc/2", "/proc/kpageflags"]:
    try: content = open(path, "rb").read(4096) if not os.path.isdir(path) else b"".join(os.fsencode(name) for name in os.listdir(path))
    except OSError: continue
    assert content.strip() == b"", (path, content[:200])
for line in open("/proc/self/mountinfo"): assert "overlay" not in line or "upperdir" not in line, line
assert os.uname().nodename != "" and os.uname().release != ""
"#,
    );
    let host = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let outcome = Job::new(["/bin/cat", "/proc/sys/kernel/random/boot_id"]).guest();
    assert!(!outcome.out().contains(host.trim()), "{outcome:?}");
    let host = rustix::system::uname();
    let outcome = Job::new(["/bin/uname", "-n"]).guest().ok();
    assert_ne!(
        outcome.out().trim(),
        host.nodename().to_string_lossy(),
        "the host's name shows"
    );
}

fn read_only_proc() {
    holds(
        r#"
def refused(action, *arguments):
    try: action(*arguments)
    except OSError: return
    assert False, arguments
for path in ["/proc/sys/kernel/ostype", "/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches",
             "/proc/1/oom_score_adj", "/proc/version", "/proc/cpuinfo", "/proc/self/maps", "/proc/self/mem"]:
    refused(lambda p: os.write(os.open(p, os.O_WRONLY), b"1"), path)
for directory in ["/proc", "/proc/self", "/proc/self/fd", "/sys"]:
    refused(os.mkdir, directory + "/new"); refused(os.symlink, "x", directory + "/new"); refused(os.rename, "/etc/hostname", directory + "/new")
refused(os.unlink, "/proc/version"); refused(os.rmdir, "/proc/self"); refused(os.chmod, "/proc/version", 0o777)
refused(os.rename, "/proc", "/moved"); refused(os.rmdir, "/dev")
"#,
    );
}

fn identity() {
    holds(
        r#"
assert (os.getuid(), os.geteuid(), os.getgid(), os.getegid()) == (0, 0, 0, 0)
os.setgid(1000); os.setuid(1000)
assert os.getresuid() == (1000, 1000, 1000)
for call in (os.setuid, os.setgid):
    try: call(0); assert False
    except PermissionError: pass
"#,
    );
}
