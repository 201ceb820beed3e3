//! `/proc`: which nodes there are. What they contain is in `proc_text`.
//!
//! Only the process that looks is there, as `/proc/<pid>` and `/proc/self`.

use std::rc::Rc;

use rustix::io::Errno;

use crate::mount::Mount;
use crate::proc_text;
use crate::{FileKind, ProcView, Result, Stat, Timestamp};

/// A node of `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProcNode {
    Directory(Directory),
    /// A file of `/proc` itself or of its `sys`.
    Text(Text),
    /// A file of a process or thread, as seen in `in_`.
    ProcessText {
        in_: Directory,
        text: ProcessText,
    },
    Link {
        in_: Directory,
        link: Link,
    },
    /// `fd/N`.
    Descriptor {
        in_: Directory,
        fd: i32,
    },
    /// `fdinfo/N`.
    DescriptorInfo {
        in_: Directory,
        fd: i32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Directory {
    Root,
    Process(i32),
    Tasks(i32),
    Thread(i32, i32),
    /// `fd` of a process, or of one of its threads.
    Descriptors(i32, Option<i32>),
    /// `fdinfo`, likewise.
    DescriptorInfos(i32, Option<i32>),
    /// A directory of `/proc/sys`, by its place in `SYSCTL`.
    Sys(u8),
}

/// Files whose contents do not depend on the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    CpuInfo,
    MemInfo,
    Stat,
    Uptime,
    LoadAvg,
    Version,
    FileSystems,
    Cmdline,
    Swaps,
    OsType,
    OsRelease,
    OsVersion,
    HostName,
    DomainName,
    BootId,
    Uuid,
    PidMax,
    ThreadsMax,
    CapLastCap,
    NgroupsMax,
    OvercommitMemory,
    MaxMapCount,
    FileMax,
    NrOpen,
    PipeMaxSize,
    SoMaxConn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProcessText {
    Cmdline,
    Environ,
    Auxv,
    Comm,
    Maps,
    Smaps,
    Status,
    Stat,
    StatM,
    Limits,
    CGroup,
    MountInfo,
    Mounts,
    OomScore,
    OomScoreAdj,
    UidMap,
    GidMap,
    Io,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    SelfProcess,
    ThreadSelf,
    Mounts,
    Executable,
    CurrentDirectory,
    Root,
}

/// A link that leads to a node, not to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MagicLink {
    Descriptor(i32),
    Executable,
    CurrentDirectory,
    Root,
}

const ROOT_TEXTS: &[(&str, Text)] = &[
    ("cmdline", Text::Cmdline),
    ("cpuinfo", Text::CpuInfo),
    ("filesystems", Text::FileSystems),
    ("loadavg", Text::LoadAvg),
    ("meminfo", Text::MemInfo),
    ("stat", Text::Stat),
    ("swaps", Text::Swaps),
    ("uptime", Text::Uptime),
    ("version", Text::Version),
];

const ROOT_LINKS: &[(&str, Link)] = &[
    ("mounts", Link::Mounts),
    ("self", Link::SelfProcess),
    ("thread-self", Link::ThreadSelf),
];

const PROCESS_TEXTS: &[(&str, ProcessText)] = &[
    ("auxv", ProcessText::Auxv),
    ("cgroup", ProcessText::CGroup),
    ("cmdline", ProcessText::Cmdline),
    ("comm", ProcessText::Comm),
    ("environ", ProcessText::Environ),
    ("gid_map", ProcessText::GidMap),
    ("io", ProcessText::Io),
    ("limits", ProcessText::Limits),
    ("maps", ProcessText::Maps),
    ("mountinfo", ProcessText::MountInfo),
    ("mounts", ProcessText::Mounts),
    ("oom_score", ProcessText::OomScore),
    ("oom_score_adj", ProcessText::OomScoreAdj),
    ("smaps", ProcessText::Smaps),
    ("stat", ProcessText::Stat),
    ("statm", ProcessText::StatM),
    ("status", ProcessText::Status),
    ("uid_map", ProcessText::UidMap),
];

const PROCESS_LINKS: &[(&str, Link)] = &[
    ("cwd", Link::CurrentDirectory),
    ("exe", Link::Executable),
    ("root", Link::Root),
];

/// One directory of `/proc/sys`: its name, the place of its parent (its own for `sys`), and its
/// files.
struct SysctlDirectory {
    name: &'static str,
    parent: u8,
    texts: &'static [(&'static str, Text)],
}

const SYSCTL: &[SysctlDirectory] = &[
    SysctlDirectory {
        name: "sys",
        parent: 0,
        texts: &[],
    },
    SysctlDirectory {
        name: "kernel",
        parent: 0,
        texts: &[
            ("cap_last_cap", Text::CapLastCap),
            ("domainname", Text::DomainName),
            ("hostname", Text::HostName),
            ("ngroups_max", Text::NgroupsMax),
            ("osrelease", Text::OsRelease),
            ("ostype", Text::OsType),
            ("pid_max", Text::PidMax),
            ("threads-max", Text::ThreadsMax),
            ("version", Text::OsVersion),
        ],
    },
    SysctlDirectory {
        name: "random",
        parent: 1,
        texts: &[("boot_id", Text::BootId), ("uuid", Text::Uuid)],
    },
    SysctlDirectory {
        name: "vm",
        parent: 0,
        texts: &[
            ("max_map_count", Text::MaxMapCount),
            ("overcommit_memory", Text::OvercommitMemory),
        ],
    },
    SysctlDirectory {
        name: "fs",
        parent: 0,
        texts: &[
            ("file-max", Text::FileMax),
            ("nr_open", Text::NrOpen),
            ("pipe-max-size", Text::PipeMaxSize),
        ],
    },
    SysctlDirectory {
        name: "net",
        parent: 0,
        texts: &[],
    },
    SysctlDirectory {
        name: "core",
        parent: 5,
        texts: &[("somaxconn", Text::SoMaxConn)],
    },
];

fn sysctl(index: u8) -> Option<&'static SysctlDirectory> {
    SYSCTL.get(usize::from(index))
}

/// The directories of `/proc/sys` directly below directory `index`.
fn sysctl_children(index: u8) -> impl Iterator<Item = (u8, &'static SysctlDirectory)> {
    (1u8..)
        .zip(SYSCTL.iter().skip(1))
        .filter(move |(_, directory)| directory.parent == index)
}

/// A decimal number as Linux writes it into names: no sign, no leading zero.
fn parse_number(name: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(name).ok()?;
    let number = text.parse::<i32>().ok()?;
    (number.to_string() == text && number >= 0).then_some(number)
}

fn find<T: Copy>(table: &[(&str, T)], name: &[u8]) -> Option<T> {
    let found = table.iter().find(|(known, _)| known.as_bytes() == name);
    found.map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> Option<&'static str> {
    let found = table.iter().find(|(_, known)| known == value);
    found.map(|(name, _)| *name)
}

impl ProcNode {
    pub(crate) const ROOT: ProcNode = ProcNode::Directory(Directory::Root);

    pub(crate) fn kind(&self) -> FileKind {
        match self {
            ProcNode::Directory(_) => FileKind::Directory,
            ProcNode::Text(_) | ProcNode::ProcessText { .. } | ProcNode::DescriptorInfo { .. } => {
                FileKind::Regular
            }
            ProcNode::Link { .. } | ProcNode::Descriptor { .. } => FileKind::Symlink,
        }
    }

    pub(crate) fn child(&self, view: &dyn ProcView, name: &[u8]) -> Result<ProcNode> {
        let ProcNode::Directory(directory) = *self else {
            return Err(Errno::NOTDIR);
        };
        directory.child(view, name).ok_or(Errno::NOENT)
    }

    pub(crate) fn parent(&self) -> ProcNode {
        let directory = match *self {
            ProcNode::Directory(directory) => directory.parent(),
            ProcNode::Text(text) => {
                let holds = |d: &SysctlDirectory| name_of(d.texts, &text).is_some();
                match (0u8..).zip(SYSCTL).find(|(_, d)| holds(d)) {
                    Some((index, _)) => Directory::Sys(index),
                    None => Directory::Root,
                }
            }
            ProcNode::ProcessText { in_, .. }
            | ProcNode::Link { in_, .. }
            | ProcNode::Descriptor { in_, .. }
            | ProcNode::DescriptorInfo { in_, .. } => in_,
        };
        ProcNode::Directory(directory)
    }

    pub(crate) fn name(&self) -> Vec<u8> {
        let fixed = match self {
            ProcNode::Directory(directory) => return directory.name(),
            ProcNode::Descriptor { fd, .. } | ProcNode::DescriptorInfo { fd, .. } => {
                return fd.to_string().into_bytes();
            }
            ProcNode::Text(text) => name_of(ROOT_TEXTS, text).or_else(|| {
                let mut names = SYSCTL.iter().map(|d| name_of(d.texts, text));
                names.find_map(|name| name)
            }),
            ProcNode::ProcessText { text, .. } => name_of(PROCESS_TEXTS, text),
            ProcNode::Link { link, .. } => {
                name_of(ROOT_LINKS, link).or_else(|| name_of(PROCESS_LINKS, link))
            }
        };
        fixed.unwrap_or_default().as_bytes().to_vec()
    }

    pub(crate) fn magic_link(&self) -> Option<MagicLink> {
        match self {
            ProcNode::Descriptor { fd, .. } => Some(MagicLink::Descriptor(*fd)),
            ProcNode::Link { link, .. } => match link {
                Link::Executable => Some(MagicLink::Executable),
                Link::CurrentDirectory => Some(MagicLink::CurrentDirectory),
                Link::Root => Some(MagicLink::Root),
                Link::SelfProcess | Link::ThreadSelf | Link::Mounts => None,
            },
            _ => None,
        }
    }

    pub(crate) fn readlink(&self, mounts: &[Rc<Mount>], view: &dyn ProcView) -> Result<Vec<u8>> {
        let pid = view.pid();
        match self {
            ProcNode::Descriptor { fd, .. } => {
                let fd = view.fd(*fd).ok_or(Errno::NOENT)?;
                match fd.location {
                    Some(place) => place.whole_path(),
                    None => Ok(fd.link),
                }
            }
            ProcNode::Link { link, .. } => Ok(match link {
                Link::SelfProcess => pid.to_string().into_bytes(),
                Link::ThreadSelf => format!("{pid}/task/{pid}").into_bytes(),
                Link::Mounts => b"self/mounts".to_vec(),
                Link::Executable => view.exe().ok_or(Errno::NOENT)?.whole_path()?,
                Link::CurrentDirectory => view.cwd().whole_path()?,
                Link::Root => mounts.first().map_or(Vec::new(), |_| b"/".to_vec()),
            }),
            _ => Err(Errno::INVAL),
        }
    }

    fn permissions(&self) -> u32 {
        match self {
            ProcNode::Directory(Directory::Descriptors(..)) => 0o500,
            ProcNode::Directory(_) => 0o555,
            ProcNode::Link { .. } => 0o777,
            ProcNode::Descriptor { .. } => 0o700,
            ProcNode::ProcessText {
                text: ProcessText::Environ | ProcessText::Auxv | ProcessText::Io,
                ..
            } => 0o400,
            _ => 0o444,
        }
    }

    /// Inode number: as on Linux it is the same while the node exists, and means nothing else.
    pub(crate) fn ino(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        match self {
            ProcNode::Directory(Directory::Root) => 1,
            node => {
                let mut hasher = DefaultHasher::new();
                node.hash(&mut hasher);
                hasher.finish() >> 16 | 1 << 47
            }
        }
    }

    pub(crate) fn stat(&self, view: &dyn ProcView) -> Stat {
        let (kind, nlink) = match self.kind() {
            FileKind::Directory => (libc::S_IFDIR, 2),
            FileKind::Symlink => (libc::S_IFLNK, 1),
            _ => (libc::S_IFREG, 1),
        };
        let size = match self {
            ProcNode::Descriptor { .. } => 64,
            _ => 0,
        };
        let now = Timestamp::now();
        let uptime = i64::try_from(view.uptime().as_secs()).unwrap_or(0);
        let boot = Timestamp {
            seconds: now.seconds.saturating_sub(uptime),
            nanoseconds: 0,
        };
        Stat {
            ino: self.ino(),
            mode: kind | self.permissions(),
            nlink,
            size,
            blksize: 1024,
            atime: boot,
            mtime: boot,
            ctime: boot,
            ..Stat::default()
        }
    }

    /// Opens a file; `Directory` opens as `ProcDirectory`.
    pub(crate) fn text(
        &self,
        mounts: &[Rc<Mount>],
        boot_id: &str,
        view: &dyn ProcView,
    ) -> Result<Vec<u8>> {
        match self {
            ProcNode::Text(text) => proc_text::global(*text, boot_id, view),
            ProcNode::ProcessText { text, .. } => Ok(proc_text::process(*text, mounts, view)),
            ProcNode::DescriptorInfo { fd, .. } => proc_text::descriptor(*fd, view),
            _ => Err(Errno::INVAL),
        }
    }
}

impl Directory {
    pub(crate) fn child(self, view: &dyn ProcView, name: &[u8]) -> Option<ProcNode> {
        match self {
            Directory::Root => {
                if parse_number(name) == Some(view.pid()) {
                    return Some(ProcNode::Directory(Directory::Process(view.pid())));
                }
                if name == b"sys" {
                    return Some(ProcNode::Directory(Directory::Sys(0)));
                }
                let link = find(ROOT_LINKS, name).map(|link| ProcNode::Link { in_: self, link });
                link.or_else(|| find(ROOT_TEXTS, name).map(ProcNode::Text))
            }
            Directory::Process(pid) => match name {
                b"task" => Some(ProcNode::Directory(Directory::Tasks(pid))),
                _ => self.process_child(pid, None, name),
            },
            Directory::Thread(pid, tid) => self.process_child(pid, Some(tid), name),
            Directory::Tasks(pid) => {
                let tid = parse_number(name)?;
                let exists = view.tids().contains(&tid);
                exists.then_some(ProcNode::Directory(Directory::Thread(pid, tid)))
            }
            Directory::Descriptors(..) => {
                let fd = parse_number(name)?;
                view.has_fd(fd)
                    .then_some(ProcNode::Descriptor { in_: self, fd })
            }
            Directory::DescriptorInfos(..) => {
                let fd = parse_number(name)?;
                view.has_fd(fd)
                    .then_some(ProcNode::DescriptorInfo { in_: self, fd })
            }
            Directory::Sys(index) => {
                let below = sysctl_children(index).find(|(_, d)| d.name.as_bytes() == name);
                match below {
                    Some((child, _)) => Some(ProcNode::Directory(Directory::Sys(child))),
                    None => find(sysctl(index)?.texts, name).map(ProcNode::Text),
                }
            }
        }
    }

    fn process_child(self, pid: i32, tid: Option<i32>, name: &[u8]) -> Option<ProcNode> {
        match name {
            b"fd" => Some(ProcNode::Directory(Directory::Descriptors(pid, tid))),
            b"fdinfo" => Some(ProcNode::Directory(Directory::DescriptorInfos(pid, tid))),
            _ => {
                let link = find(PROCESS_LINKS, name);
                let link = link.map(|link| ProcNode::Link { in_: self, link });
                link.or_else(|| {
                    let text = find(PROCESS_TEXTS, name)?;
                    Some(ProcNode::ProcessText { in_: self, text })
                })
            }
        }
    }

    pub(crate) fn parent(self) -> Directory {
        match self {
            Directory::Root | Directory::Process(_) | Directory::Sys(0) => Directory::Root,
            Directory::Tasks(pid) => Directory::Process(pid),
            Directory::Descriptors(pid, tid) | Directory::DescriptorInfos(pid, tid) => match tid {
                Some(tid) => Directory::Thread(pid, tid),
                None => Directory::Process(pid),
            },
            Directory::Thread(pid, _) => Directory::Tasks(pid),
            Directory::Sys(index) => Directory::Sys(sysctl(index).map_or(0, |d| d.parent)),
        }
    }

    fn name(self) -> Vec<u8> {
        match self {
            Directory::Root => Vec::new(),
            Directory::Process(id) | Directory::Thread(_, id) => id.to_string().into_bytes(),
            Directory::Tasks(_) => b"task".to_vec(),
            Directory::Descriptors(..) => b"fd".to_vec(),
            Directory::DescriptorInfos(..) => b"fdinfo".to_vec(),
            Directory::Sys(index) => sysctl(index).map_or("", |d| d.name).as_bytes().to_vec(),
        }
    }

    /// The names in it, without `.` and `..`.
    pub(crate) fn names(self, view: &dyn ProcView) -> Vec<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut add = |name: &str| names.push(name.as_bytes().to_vec());
        match self {
            Directory::Root => {
                add("sys");
                ROOT_TEXTS.iter().for_each(|(name, _)| add(name));
                ROOT_LINKS.iter().for_each(|(name, _)| add(name));
                add(&view.pid().to_string());
            }
            Directory::Process(_) | Directory::Thread(..) => {
                if matches!(self, Directory::Process(_)) {
                    add("task");
                }
                add("fd");
                add("fdinfo");
                PROCESS_TEXTS.iter().for_each(|(name, _)| add(name));
                PROCESS_LINKS.iter().for_each(|(name, _)| add(name));
            }
            Directory::Tasks(_) => view.tids().iter().for_each(|tid| add(&tid.to_string())),
            Directory::Descriptors(..) | Directory::DescriptorInfos(..) => {
                view.fds().iter().for_each(|fd| add(&fd.to_string()));
            }
            Directory::Sys(index) => {
                sysctl_children(index).for_each(|(_, d)| add(d.name));
                let texts = sysctl(index).map_or(&[][..], |d| d.texts);
                texts.iter().for_each(|(name, _)| add(name));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
