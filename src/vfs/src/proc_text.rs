//! What the files of `/proc` contain, in the format of proc(5).

use std::fmt::Write;
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;

use crate::mount::Mount;
use crate::procfs::{ProcessText, Text};
use crate::{
    DOMAINNAME, HOSTNAME, KERNEL_NAME, KERNEL_RELEASE, KERNEL_VERSION, Limit, ProcView, Result,
    Timestamp,
};

const PAGE: u64 = 4096;
/// `USER_HZ`: the unit of CPU times in `/proc`, per second.
const USER_HZ: u64 = 100;

fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX) / (1000 / USER_HZ)
}

/// Contents of a file that does not belong to a process.
pub(crate) fn global(text: Text, boot_id: &str, view: &dyn ProcView) -> Result<Vec<u8>> {
    let text = match text {
        Text::CpuInfo => cpu_info(),
        Text::MemInfo => memory_info(view),
        Text::Stat => system_stat(view),
        Text::Uptime => {
            // Cut, not rounded: it is never ahead of the clock.
            let seconds =
                |time: Duration| format!("{}.{:02}", time.as_secs(), time.subsec_millis() / 10);
            let (up, cpu) = (view.uptime(), view.cpu_time());
            let idle = up.saturating_sub(cpu.user + cpu.system);
            format!("{} {}\n", seconds(up), seconds(idle))
        }
        Text::LoadAvg => format!("0.00 0.00 0.00 1/{} {}\n", view.tids().len(), view.pid()),
        Text::Version => {
            format!("{KERNEL_NAME} version {KERNEL_RELEASE} (agentrt@agentrt) {KERNEL_VERSION}\n")
        }
        Text::FileSystems => {
            "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\toverlay\n".into()
        }
        Text::Cmdline => "\n".into(),
        Text::Swaps => "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".into(),
        Text::OsType => format!("{KERNEL_NAME}\n"),
        Text::OsRelease => format!("{KERNEL_RELEASE}\n"),
        Text::OsVersion => format!("{KERNEL_VERSION}\n"),
        Text::HostName => format!("{HOSTNAME}\n"),
        Text::DomainName => format!("{DOMAINNAME}\n"),
        Text::BootId => format!("{boot_id}\n"),
        Text::Uuid => format!("{}\n", random_uuid()?),
        Text::PidMax => "4194304\n".into(),
        Text::ThreadsMax => "15000\n".into(),
        // CAP_CHECKPOINT_RESTORE, the last of Linux 6.1.
        Text::CapLastCap => "40\n".into(),
        Text::NgroupsMax => "65536\n".into(),
        Text::OvercommitMemory => "0\n".into(),
        Text::MaxMapCount => "65530\n".into(),
        Text::NrOpen => "1048576\n".into(),
        Text::FileMax => "1048576\n".into(),
        Text::PipeMaxSize => "1048576\n".into(),
        Text::SoMaxConn => "4096\n".into(),
    };
    Ok(text.into_bytes())
}

/// A random UUID (RFC 9562, version 4) from the host's generator.
pub(crate) fn random_uuid() -> Result<String> {
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut uuid = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            uuid.push('-');
        }
        // Writing to a String does not fail.
        let _ = write!(uuid, "{byte:02x}");
    }
    Ok(uuid)
}

/// The first CPU of the host, shown as the only one. Nothing in it identifies the host.
fn cpu_info() -> String {
    const SHOWN: &[&str] = &[
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "cpu MHz",
        "cache size",
        "fpu",
        "fpu_exception",
        "cpuid level",
        "wp",
        "flags",
        "bugs",
        "bogomips",
        "clflush size",
        "cache_alignment",
        "address sizes",
    ];
    let host = first_of_host().unwrap_or_default();
    let mut text = String::from("processor\t: 0\n");
    for line in host.lines().take_while(|line| !line.is_empty()) {
        let key = line.split(':').next().unwrap_or_default().trim_end();
        if SHOWN.contains(&key) {
            text.push_str(line);
            text.push('\n');
        }
        if key == "cache size" {
            text.push_str("physical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\n");
            text.push_str("apicid\t\t: 0\ninitial apicid\t: 0\n");
        }
    }
    text.push('\n');
    text
}

/// The beginning of the host's file, which the kernel writes CPU by CPU as it is read.
fn first_of_host() -> std::io::Result<String> {
    const ONE_CPU: u64 = 16 << 10;
    let mut bytes = Vec::new();
    std::fs::File::open("/proc/cpuinfo")?
        .take(ONE_CPU)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn memory_info(view: &dyn ProcView) -> String {
    let memory = view.memory();
    let used = memory.total.saturating_sub(memory.free);
    let rows = [
        ("MemTotal:", memory.total),
        ("MemFree:", memory.free),
        ("MemAvailable:", memory.free),
        ("Buffers:", 0),
        ("Cached:", 0),
        ("SwapCached:", 0),
        ("Active:", used),
        ("Inactive:", 0),
        ("SwapTotal:", 0),
        ("SwapFree:", 0),
        ("Dirty:", 0),
        ("Writeback:", 0),
        ("AnonPages:", used),
        ("Mapped:", 0),
        ("Shmem:", 0),
        ("Slab:", 0),
        ("CommitLimit:", memory.total),
        ("Committed_AS:", used),
        ("VmallocTotal:", 0),
        ("VmallocUsed:", 0),
    ];
    let mut text = String::new();
    for (name, bytes) in rows {
        let _ = writeln!(text, "{name:<15} {:>8} kB", bytes / 1024);
    }
    text.push_str("HugePages_Total:       0\nHugePages_Free:        0\n");
    text.push_str("Hugepagesize:       2048 kB\n");
    text
}

fn system_stat(view: &dyn ProcView) -> String {
    let cpu = view.cpu_time();
    let (user, system, up) = (ticks(cpu.user), ticks(cpu.system), ticks(view.uptime()));
    let idle = up.saturating_sub(user.saturating_add(system));
    let uptime = i64::try_from(view.uptime().as_secs()).unwrap_or(0);
    let boot = Timestamp::now().seconds.saturating_sub(uptime);
    format!(
        "cpu  {user} 0 {system} {idle} 0 0 0 0 0 0\ncpu0 {user} 0 {system} {idle} 0 0 0 0 0 0\n\
         intr 0\nctxt 0\nbtime {boot}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n\
         softirq 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

/// Contents of a file of a process.
pub(crate) fn process(text: ProcessText, mounts: &[Rc<Mount>], view: &dyn ProcView) -> Vec<u8> {
    match text {
        ProcessText::Cmdline => view.cmdline(),
        ProcessText::Environ => view.environ(),
        ProcessText::Auxv => view.auxv(),
        ProcessText::Comm => [view.comm(), b"\n".to_vec()].concat(),
        ProcessText::Maps => view.maps(),
        ProcessText::Smaps => smaps(&view.maps()),
        ProcessText::Status => status(view),
        ProcessText::Stat => stat(view),
        ProcessText::StatM => statm(view).into_bytes(),
        ProcessText::Limits => limits(view).into_bytes(),
        ProcessText::CGroup => b"0::/\n".to_vec(),
        ProcessText::MountInfo => mount_info(mounts),
        ProcessText::Mounts => mount_table(mounts),
        ProcessText::UidMap | ProcessText::GidMap => b"         0          0 4294967295\n".to_vec(),
        ProcessText::OomScore => b"0\n".to_vec(),
        ProcessText::OomScoreAdj => b"0\n".to_vec(),
        ProcessText::Io => b"rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\n\
            write_bytes: 0\ncancelled_write_bytes: 0\n"
            .to_vec(),
    }
}

fn status(view: &dyn ProcView) -> Vec<u8> {
    let (pid, ppid, memory) = (view.pid(), view.ppid(), view.memory());
    let kib = |bytes: u64| format!("{:>8} kB", bytes / 1024);
    let mut text = b"Name:\t".to_vec();
    text.extend(escape(&view.comm()));
    let rest = format!(
        "\nUmask:\t{:04o}\nState:\tR (running)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{pid}\nPPid:\t{ppid}\n\
         TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t{}\nGroups:\t0 \n\
         NStgid:\t{pid}\nNSpid:\t{pid}\nNSpgid:\t{pid}\nNSsid:\t{pid}\nKthread:\t0\n\
         VmPeak:\t{}\nVmSize:\t{}\nVmLck:\t{zero}\nVmPin:\t{zero}\nVmHWM:\t{}\nVmRSS:\t{}\n\
         RssAnon:\t{}\nRssFile:\t{zero}\nRssShmem:\t{zero}\nVmData:\t{}\nVmStk:\t{}\n\
         VmExe:\t{}\nVmLib:\t{zero}\nVmPTE:\t{zero}\nVmSwap:\t{zero}\nCoreDumping:\t0\n\
         THP_enabled:\t1\nThreads:\t{}\nSigQ:\t0/15000\n\
         CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n\
         CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n\
         Cpus_allowed:\t1\nCpus_allowed_list:\t0\nMems_allowed:\t1\nMems_allowed_list:\t0\n\
         voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n",
        view.umask(),
        view.fds()
            .last()
            .map_or(64, |fd| fd.saturating_add(1).max(64)),
        kib(memory.virtual_size),
        kib(memory.virtual_size),
        kib(memory.resident_peak),
        kib(memory.resident),
        kib(memory.resident),
        kib(memory.data),
        kib(memory.stack),
        kib(memory.text),
        view.tids().len(),
        zero = kib(0),
    );
    text.extend_from_slice(rest.as_bytes());
    text
}

fn stat(view: &dyn ProcView) -> Vec<u8> {
    let (pid, ppid, memory, cpu) = (view.pid(), view.ppid(), view.memory(), view.cpu_time());
    let resident_limit = view.limit(libc::RLIMIT_RSS).soft.unwrap_or(u64::MAX);
    let mut text = format!("{pid} (").into_bytes();
    text.extend(escape(&view.comm()));
    let rest = format!(
        ") R {ppid} {pid} {pid} 0 -1 4194304 0 0 0 0 {} {} 0 0 20 0 {} 0 {} {} {} {resident_limit} \
         0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        ticks(cpu.user),
        ticks(cpu.system),
        view.tids().len(),
        ticks(view.start_time()),
        memory.virtual_size,
        memory.resident / PAGE,
    );
    text.extend_from_slice(rest.as_bytes());
    text
}

fn statm(view: &dyn ProcView) -> String {
    let memory = view.memory();
    format!(
        "{} {} 0 {} 0 {} 0\n",
        memory.virtual_size / PAGE,
        memory.resident / PAGE,
        memory.text / PAGE,
        memory.data.saturating_add(memory.stack) / PAGE,
    )
}

/// Each mapping with the sizes that follow from its range alone.
fn smaps(maps: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in maps.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(line);
        let kib = mapping_size(line).unwrap_or(0) / 1024;
        let sizes = format!(
            "Size:           {kib:>8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n\
             Rss:                   0 kB\nPss:                   0 kB\nSwap:                  0 kB\n"
        );
        text.extend_from_slice(sizes.as_bytes());
    }
    text
}

fn mapping_size(line: &[u8]) -> Option<u64> {
    let range = line.split(|byte| *byte == b' ').next()?;
    let (start, end) = std::str::from_utf8(range).ok()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    u64::from_str_radix(end, 16).ok()?.checked_sub(start)
}

fn limits(view: &dyn ProcView) -> String {
    // In the kernel's order, which is that of the RLIMIT_* numbers.
    const ROWS: [(&str, &str); 16] = [
        ("Max cpu time", "seconds"),
        ("Max file size", "bytes"),
        ("Max data size", "bytes"),
        ("Max stack size", "bytes"),
        ("Max core file size", "bytes"),
        ("Max resident set", "bytes"),
        ("Max processes", "processes"),
        ("Max open files", "files"),
        ("Max locked memory", "bytes"),
        ("Max address space", "bytes"),
        ("Max file locks", "locks"),
        ("Max pending signals", "signals"),
        ("Max msgqueue size", "bytes"),
        ("Max nice priority", ""),
        ("Max realtime priority", ""),
        ("Max realtime timeout", "us"),
    ];
    let value = |limit: Option<u64>| limit.map_or("unlimited".into(), |limit| limit.to_string());
    let mut text = format!(
        "{:<25} {:<20} {:<20} {:<10}\n",
        "Limit", "Soft Limit", "Hard Limit", "Units"
    );
    for (resource, (name, unit)) in (0u32..).zip(ROWS) {
        let Limit { soft, hard } = view.limit(resource);
        let (soft, hard) = (value(soft), value(hard));
        let _ = writeln!(text, "{name:<25} {soft:<20} {hard:<20} {unit:<10}");
    }
    text
}

/// `fdinfo/N`.
pub(crate) fn descriptor(fd: i32, view: &dyn ProcView) -> Result<Vec<u8>> {
    let info = view.fd(fd).ok_or(Errno::NOENT)?;
    let stat = view.fd_stat(fd).unwrap_or_default();
    let text = format!(
        "pos:\t{}\nflags:\t0{:o}\nmnt_id:\t{}\nino:\t{}\n",
        info.offset, info.flags, stat.mount_id, stat.ino
    );
    Ok(text.into_bytes())
}

/// What could be taken for a separator is written as an octal escape (`mangle` of the kernel).
fn escape(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => {
                escaped.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            byte => escaped.push(*byte),
        }
    }
    escaped
}

fn mount_point(mount: &Mount) -> Vec<u8> {
    match &mount.covers {
        Some(covers) => escape(&covers.path()),
        None => b"/".to_vec(),
    }
}

fn mount_options(mount: &Mount) -> &'static str {
    if mount.read_only { "ro" } else { "rw" }
}

fn mount_info(mounts: &[Rc<Mount>]) -> Vec<u8> {
    let mut text = Vec::new();
    for mount in mounts {
        let parent = match &mount.covers {
            Some(covers) => covers.mount.id(),
            None => 1,
        };
        let device = mount.device(0);
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let options = mount_options(mount);
        let head = format!("{} {parent} {major}:{minor} / ", mount.id());
        text.extend_from_slice(head.as_bytes());
        text.extend(mount_point(mount));
        let tail = format!(
            " {options},relatime - {} {} {options}\n",
            mount.fs_type, mount.source
        );
        text.extend_from_slice(tail.as_bytes());
    }
    text
}

fn mount_table(mounts: &[Rc<Mount>]) -> Vec<u8> {
    let mut text = Vec::new();
    for mount in mounts {
        text.extend_from_slice(format!("{} ", mount.source).as_bytes());
        text.extend(mount_point(mount));
        let tail = format!(" {} {},relatime 0 0\n", mount.fs_type, mount_options(mount));
        text.extend_from_slice(tail.as_bytes());
    }
    text
}
