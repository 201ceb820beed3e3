//! Identity, limits, names, exit: what a process is asked about itself.

use std::time::Duration;

use agentrt_shim_abi::SHIM_BASE;
use agentrt_vfs::Limit;
use rustix::io::Errno;
use syscalls::Sysno;

use crate::arguments::Arguments;
use crate::descriptor::DESCRIPTORS_MAX;
use crate::dispatch::Handler;
use crate::guest::Guest;
use crate::mm::STACK_SIZE;
use crate::stop::{Ended, Result, Stop, Wait};
use crate::task::FIRST_PID;

/// `RLIM_INFINITY` of the kernel.
const INFINITY: u64 = u64::MAX;
/// Supplementary groups that are kept, at most (`NGROUPS_MAX` is 65,536; nobody has as many).
const GROUPS_MAX: usize = 64;
/// Bytes of one answer of getrandom(2): the kernel's own bound for calls that signals may interrupt.
const RANDOM_MAX: usize = 32 << 20;

/// User and group ids: real, effective and saved. A guest starts as root of its own world.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Real, effective and saved user id.
    pub users: [u32; 3],
    /// Real, effective and saved group id.
    pub groups: [u32; 3],
    /// Supplementary groups.
    pub supplementary: Vec<u32>,
}

/// Resource limits (getrlimit(2)), soft and hard.
#[derive(Clone, Debug)]
pub struct Limits([(u64, u64); RESOURCES]);

/// Number of resources (`RLIM_NLIMITS`).
const RESOURCES: usize = 16;

impl Default for Limits {
    fn default() -> Self {
        let mut limits = [(INFINITY, INFINITY); RESOURCES];
        limits[libc::RLIMIT_STACK as usize] = (STACK_SIZE, STACK_SIZE);
        limits[libc::RLIMIT_CORE as usize] = (0, 0);
        limits[libc::RLIMIT_NOFILE as usize] =
            (crate::descriptor::DESCRIPTORS_DEFAULT, DESCRIPTORS_MAX);
        limits[libc::RLIMIT_MEMLOCK as usize] = (8 << 20, 8 << 20);
        limits[libc::RLIMIT_MSGQUEUE as usize] = (819_200, 819_200);
        limits[libc::RLIMIT_NICE as usize] = (0, 0);
        limits[libc::RLIMIT_RTPRIO as usize] = (0, 0);
        Limits(limits)
    }
}

impl Limits {
    /// The limit of `resource`, an `RLIMIT_*` number; unlimited if there is no such resource.
    pub fn get(&self, resource: u32) -> Limit {
        let (soft, hard) = self
            .0
            .get(resource as usize)
            .copied()
            .unwrap_or((INFINITY, INFINITY));
        let bound = |value| (value != INFINITY).then_some(value);
        Limit {
            soft: bound(soft),
            hard: bound(hard),
        }
    }
}

/// Fills `buffer` with unpredictable bytes.
pub fn fill_random(buffer: &mut [u8]) {
    let mut done = 0;
    while done < buffer.len() {
        let got =
            rustix::rand::getrandom(&mut buffer[done..], rustix::rand::GetRandomFlags::empty());
        match got {
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            // getrandom(2) has no other error for a valid buffer.
            Err(error) => unreachable!("getrandom: {error}"),
        }
    }
}

/// The syscalls of this module.
pub fn handler(number: Sysno) -> Option<Handler> {
    Some(match number {
        Sysno::getpid | Sysno::gettid | Sysno::getpgrp | Sysno::set_tid_address => own_id,
        Sysno::getppid => |_, _| Ok(0),
        Sysno::getpgid | Sysno::getsid => id_of,
        Sysno::setpgid | Sysno::setsid => |_, _| Err(Errno::PERM.into()),
        Sysno::getuid => |guest, _| Ok(guest.task.credentials.users[0].into()),
        Sysno::geteuid => |guest, _| Ok(guest.task.credentials.users[1].into()),
        Sysno::getgid => |guest, _| Ok(guest.task.credentials.groups[0].into()),
        Sysno::getegid => |guest, _| Ok(guest.task.credentials.groups[1].into()),
        Sysno::getresuid => |guest, a| write_ids(guest, a, guest.task.credentials.users),
        Sysno::getresgid => |guest, a| write_ids(guest, a, guest.task.credentials.groups),
        Sysno::setuid => |guest, a| set_all(&mut guest.task.credentials.users, a.u32(0)),
        Sysno::setgid => |guest, a| set_all(&mut guest.task.credentials.groups, a.u32(0)),
        Sysno::setreuid => |guest, a| set_some(&mut guest.task.credentials.users, a, 2),
        Sysno::setregid => |guest, a| set_some(&mut guest.task.credentials.groups, a, 2),
        Sysno::setresuid => |guest, a| set_some(&mut guest.task.credentials.users, a, 3),
        Sysno::setresgid => |guest, a| set_some(&mut guest.task.credentials.groups, a, 3),
        Sysno::setfsuid => |guest, _| Ok(guest.task.credentials.users[1].into()),
        Sysno::setfsgid => |guest, _| Ok(guest.task.credentials.groups[1].into()),
        Sysno::getgroups => getgroups,
        Sysno::setgroups => setgroups,
        Sysno::uname => uname,
        Sysno::sethostname | Sysno::setdomainname => |_, _| Err(Errno::PERM.into()),
        Sysno::sysinfo => sysinfo,
        Sysno::getrlimit => |guest, a| limits(guest, a.u32(0), 0, a.address(1)),
        Sysno::setrlimit => |guest, a| limits(guest, a.u32(0), a.address(1), 0),
        Sysno::prlimit64 => prlimit64,
        Sysno::getrusage => getrusage,
        Sysno::times => times,
        Sysno::getcpu => getcpu,
        Sysno::sched_getaffinity => sched_getaffinity,
        Sysno::sched_setaffinity | Sysno::sched_yield => |_, _| Ok(0),
        Sysno::sched_getscheduler => |_, _| Ok(libc::SCHED_OTHER as u64),
        Sysno::sched_get_priority_max | Sysno::sched_get_priority_min => priority_bound,
        Sysno::sched_getparam => |guest, a| {
            guest.task.mm.write(a.address(1), &[0; 4])?;
            Ok(0)
        },
        Sysno::getpriority => |_, _| Ok(20),
        Sysno::setpriority => setpriority,
        Sysno::arch_prctl => arch_prctl,
        Sysno::prctl => prctl,
        Sysno::personality => personality,
        Sysno::capget => capget,
        Sysno::set_robust_list => set_robust_list,
        Sysno::futex => futex,
        Sysno::getrandom => getrandom,
        // No call that makes a child is served, so there is none to wait for.
        Sysno::wait4 | Sysno::waitid => |_, _| Err(Errno::CHILD.into()),
        Sysno::exit | Sysno::exit_group => exit,
        _ => return None,
    })
}

fn own_id(_: &mut Guest, _: &Arguments) -> Result<u64> {
    Ok(FIRST_PID as u64)
}

fn id_of(_: &mut Guest, arguments: &Arguments) -> Result<u64> {
    match arguments.i32(0) {
        0 | FIRST_PID => Ok(FIRST_PID as u64),
        _ => Err(Errno::SRCH.into()),
    }
}

fn write_ids(guest: &mut Guest, arguments: &Arguments, ids: [u32; 3]) -> Result<u64> {
    for (index, id) in ids.into_iter().enumerate() {
        guest
            .task
            .mm
            .write(arguments.address(index), &id.to_ne_bytes())?;
    }
    Ok(0)
}

fn set_all(ids: &mut [u32; 3], id: u32) -> Result<u64> {
    // Who gave root away does not get it back (setuid(2)).
    if ids[1] != 0 && !ids.contains(&id) {
        return Err(Errno::PERM.into());
    }
    if ids[1] == 0 {
        *ids = [id; 3]
    } else {
        ids[1] = id
    }
    Ok(0)
}

/// setreuid(2) and setresuid(2): the first `count` ids, -1 leaves one alone.
fn set_some(ids: &mut [u32; 3], arguments: &Arguments, count: usize) -> Result<u64> {
    let wanted: Vec<u32> = (0..count).map(|index| arguments.u32(index)).collect();
    let allowed = |id: &u32| *id == u32::MAX || ids[1] == 0 || ids.contains(id);
    if !wanted.iter().all(allowed) {
        return Err(Errno::PERM.into());
    }
    let old_real = ids[0];
    for (id, wanted) in ids.iter_mut().zip(&wanted) {
        if *wanted != u32::MAX {
            *id = *wanted;
        }
    }
    if count == 2 && (wanted[0] != u32::MAX || (wanted[1] != u32::MAX && wanted[1] != old_real)) {
        ids[2] = ids[1];
    }
    Ok(0)
}

fn getgroups(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let groups = guest.task.credentials.supplementary.clone();
    let room = arguments.i32(0);
    if room < 0 || (room > 0 && (room as usize) < groups.len()) {
        return Err(Errno::INVAL.into());
    }
    if room > 0 {
        let bytes: Vec<u8> = groups
            .iter()
            .flat_map(|group| group.to_ne_bytes())
            .collect();
        guest.task.mm.write(arguments.address(1), &bytes)?;
    }
    Ok(groups.len() as u64)
}

fn setgroups(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let count = arguments.u64(0) as usize;
    if guest.task.credentials.users[1] != 0 {
        return Err(Errno::PERM.into());
    }
    if count > GROUPS_MAX {
        return Err(Errno::INVAL.into());
    }
    let mut bytes = vec![0; count * 4];
    guest.task.mm.read(arguments.address(1), &mut bytes)?;
    guest.task.credentials.supplementary = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|group| u32::from_ne_bytes(*group))
        .collect();
    Ok(0)
}

fn uname(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // Six fields of 65 bytes (`struct new_utsname`).
    const FIELD: usize = 65;
    let fields = [
        agentrt_vfs::KERNEL_NAME,
        agentrt_vfs::HOSTNAME,
        agentrt_vfs::KERNEL_RELEASE,
        agentrt_vfs::KERNEL_VERSION,
        agentrt_vfs::MACHINE,
        agentrt_vfs::DOMAINNAME,
    ];
    let mut bytes = [0; 6 * FIELD];
    for (slot, field) in bytes.chunks_exact_mut(FIELD).zip(fields) {
        slot[..field.len()].copy_from_slice(field.as_bytes());
    }
    guest.task.mm.write(arguments.address(0), &bytes)?;
    Ok(0)
}

fn sysinfo(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let usage = guest.task.mm.usage();
    let mut info = [0u8; std::mem::size_of::<libc::sysinfo>()];
    let mut put = |offset: usize, value: u64| {
        info[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
    };
    put(
        std::mem::offset_of!(libc::sysinfo, uptime),
        guest.task.uptime().as_secs(),
    );
    put(std::mem::offset_of!(libc::sysinfo, totalram), usage.total);
    put(std::mem::offset_of!(libc::sysinfo, freeram), usage.free);
    let (procs, unit) = (
        std::mem::offset_of!(libc::sysinfo, procs),
        std::mem::offset_of!(libc::sysinfo, mem_unit),
    );
    info[procs..procs + 2].copy_from_slice(&1u16.to_ne_bytes());
    info[unit..unit + 4].copy_from_slice(&1u32.to_ne_bytes());
    guest.task.mm.write(arguments.address(0), &info)?;
    Ok(0)
}

fn prlimit64(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    if !matches!(arguments.i32(0), 0 | FIRST_PID) {
        return Err(Errno::SRCH.into());
    }
    limits(
        guest,
        arguments.u32(1),
        arguments.address(2),
        arguments.address(3),
    )
}

fn limits(guest: &mut Guest, resource: u32, new: u64, old: u64) -> Result<u64> {
    let index = resource as usize;
    let before = *guest.task.limits.0.get(index).ok_or(Errno::INVAL)?;
    if new != 0 {
        let [soft, hard] = guest.task.mm.read_u64s(new)?;
        if soft > hard || (resource == libc::RLIMIT_NOFILE && hard > DESCRIPTORS_MAX) {
            return Err(if soft > hard {
                Errno::INVAL
            } else {
                Errno::PERM
            }
            .into());
        }
        // The host's bounds on stack and descriptors cannot be raised, whoever asks.
        if hard > before.1 && guest.task.credentials.users[1] != 0 {
            return Err(Errno::PERM.into());
        }
        guest.task.limits.0[index] = (soft, hard);
        if resource == libc::RLIMIT_NOFILE {
            guest.task.descriptors.limit.set(soft);
        }
    }
    if old != 0 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&before.0.to_ne_bytes());
        bytes[8..].copy_from_slice(&before.1.to_ne_bytes());
        guest.task.mm.write(old, &bytes)?;
    }
    Ok(0)
}

fn getrusage(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let mut usage = [0u8; std::mem::size_of::<libc::rusage>()];
    match arguments.i32(0) {
        libc::RUSAGE_SELF | libc::RUSAGE_THREAD => {
            let time = guest.task.used_cpu_time();
            let words = [
                time.user.as_secs(),
                time.user.subsec_micros().into(),
                time.system.as_secs(),
                time.system.subsec_micros().into(),
                guest.task.mm.usage().resident_peak / 1024,
            ];
            for (slot, word) in usage.chunks_exact_mut(8).zip(words) {
                slot.copy_from_slice(&word.to_ne_bytes());
            }
        }
        libc::RUSAGE_CHILDREN => {}
        _ => return Err(Errno::INVAL.into()),
    }
    guest.task.mm.write(arguments.address(1), &usage)?;
    Ok(0)
}

fn times(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // USER_HZ is 100 on x86-64.
    let ticks = |time: Duration| (time.as_millis() / 10) as u64;
    let used = guest.task.used_cpu_time();
    if arguments.address(0) != 0 {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&ticks(used.user).to_ne_bytes());
        bytes[8..16].copy_from_slice(&ticks(used.system).to_ne_bytes());
        guest.task.mm.write(arguments.address(0), &bytes)?;
    }
    Ok(ticks(guest.task.uptime()))
}

/// A guest has one processor on one node.
fn getcpu(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    for index in [0, 1] {
        if arguments.address(index) != 0 {
            guest.task.mm.write(arguments.address(index), &[0; 4])?;
        }
    }
    Ok(0)
}

fn sched_getaffinity(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    if !matches!(arguments.i32(0), 0 | FIRST_PID) {
        return Err(Errno::SRCH.into());
    }
    if arguments.u32(1) < 8 || !arguments.u32(1).is_multiple_of(8) {
        return Err(Errno::INVAL.into());
    }
    guest
        .task
        .mm
        .write(arguments.address(2), &1u64.to_ne_bytes())?;
    Ok(8)
}

fn priority_bound(_: &mut Guest, arguments: &Arguments) -> Result<u64> {
    match arguments.i32(0) {
        libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

fn setpriority(_: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // One process has nobody to be nicer than; it may not be less nice than the host allows.
    if arguments.i32(2) < 0 {
        Err(Errno::ACCESS.into())
    } else {
        Ok(0)
    }
}

fn arch_prctl(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // Codes of asm/prctl.h.
    const SET_GS: i32 = 0x1001;
    const SET_FS: i32 = 0x1002;
    const GET_FS: i32 = 0x1003;
    const GET_GS: i32 = 0x1004;
    let base = arguments.address(1);
    match arguments.i32(0) {
        SET_FS | SET_GS if base >= SHIM_BASE => return Err(Errno::PERM.into()),
        SET_FS => guest.vcpu.set_fs_base(base),
        SET_GS => guest.vcpu.set_gs_base(base),
        GET_FS => guest
            .task
            .mm
            .write(base, &guest.vcpu.fs_base().to_ne_bytes())?,
        GET_GS => guest
            .task
            .mm
            .write(base, &guest.vcpu.gs_base().to_ne_bytes())?,
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(0)
}

fn prctl(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // TASK_COMM_LEN, the NUL included.
    const NAME: usize = 16;
    match arguments.i32(0) {
        libc::PR_SET_NAME => {
            let mut name = match guest.task.mm.read_string(arguments.address(1), NAME) {
                Err(Errno::NAMETOOLONG) => {
                    let mut start = [0; NAME - 1];
                    guest.task.mm.read(arguments.address(1), &mut start)?;
                    start.to_vec()
                }
                name => name?,
            };
            name.truncate(NAME - 1);
            guest.task.program.comm = name;
            Ok(0)
        }
        libc::PR_GET_NAME => {
            let mut name = guest.task.program.comm.clone();
            name.resize(NAME, 0);
            guest.task.mm.write(arguments.address(1), &name)?;
            Ok(0)
        }
        libc::PR_GET_DUMPABLE => Ok(0),
        // Nothing is ever dumped, and no program gains rights by exec: both are so already.
        libc::PR_SET_DUMPABLE if arguments.u64(1) <= 1 => Ok(0),
        libc::PR_SET_NO_NEW_PRIVS if arguments.u64(1) == 1 => Ok(0),
        libc::PR_GET_NO_NEW_PRIVS => Ok(1),
        // The parent never dies before the guest.
        libc::PR_SET_PDEATHSIG if arguments.u64(1) <= 64 => Ok(0),
        libc::PR_CAPBSET_READ if arguments.u64(1) <= 40 => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

fn personality(_: &mut Guest, arguments: &Arguments) -> Result<u64> {
    match arguments.u32(0) {
        0 | 0xffff_ffff => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

/// No capabilities: root of a guest can do nothing to the host (capget(2), version 3).
fn capget(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    const VERSION_3: u32 = 0x2008_0522;
    let mut version = [0; 4];
    guest.task.mm.read(arguments.address(0), &mut version)?;
    if u32::from_ne_bytes(version) != VERSION_3 {
        guest
            .task
            .mm
            .write(arguments.address(0), &VERSION_3.to_ne_bytes())?;
        return if arguments.address(1) == 0 {
            Ok(0)
        } else {
            Err(Errno::INVAL.into())
        };
    }
    if arguments.address(1) != 0 {
        guest.task.mm.write(arguments.address(1), &[0; 24])?;
    }
    Ok(0)
}

/// Nobody else holds a lock that this thread's death could leave behind.
fn set_robust_list(_: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // sizeof(struct robust_list_head)
    if arguments.u64(1) == 24 {
        Ok(0)
    } else {
        Err(Errno::INVAL.into())
    }
}

/// Futexes of a single thread: nobody waits that could be woken, and a wait that begins can only
/// time out.
fn futex(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let operation = arguments.i32(1) & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let mut word = [0; 4];
    guest.task.mm.read(arguments.address(0), &mut word)?;
    match operation {
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => Ok(0),
        libc::FUTEX_REQUEUE => Ok(0),
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
            if u32::from_ne_bytes(word) != arguments.u32(2) {
                return Err(Errno::AGAIN.into());
            }
            futex_wait(guest, arguments, operation)
        }
        _ => Err(Errno::NOSYS.into()),
    }
}

fn futex_wait(guest: &mut Guest, arguments: &Arguments, operation: i32) -> Result<u64> {
    let now = std::time::Instant::now();
    if let Some(deadline) = guest.task.sleep {
        if now >= deadline {
            return Err(Errno::TIMEDOUT.into());
        }
        return Err(Stop::Wait(Wait {
            deadline: Some(deadline),
            ..Wait::default()
        }));
    }
    if arguments.address(3) == 0 {
        return Err(Stop::Wait(Wait::default()));
    }
    let timeout = crate::time::read_timespec(guest, arguments.address(3))?;
    let remaining = if operation == libc::FUTEX_WAIT {
        timeout
    } else if arguments.i32(1) & libc::FUTEX_CLOCK_REALTIME != 0 {
        timeout.saturating_sub(guest.task.clock.realtime())
    } else {
        timeout.saturating_sub(guest.task.uptime())
    };
    let deadline = now + remaining.min(Duration::from_secs(u32::MAX.into()));
    guest.task.sleep = Some(deadline);
    Err(Stop::Wait(Wait {
        deadline: Some(deadline),
        ..Wait::default()
    }))
}

fn getrandom(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    const KNOWN: u32 = libc::GRND_NONBLOCK | libc::GRND_RANDOM | 4;
    if arguments.u32(2) & !KNOWN != 0 {
        return Err(Errno::INVAL.into());
    }
    let length = (arguments.u64(1) as usize).min(RANDOM_MAX);
    let mut buffer = [0; 4096];
    for done in (0..length).step_by(buffer.len()) {
        let part = &mut buffer[..(length - done).min(4096)];
        fill_random(part);
        let address = arguments.address(0).wrapping_add(done as u64);
        if let Err(error) = guest.task.mm.write(address, part) {
            return if done > 0 {
                Ok(done as u64)
            } else {
                Err(error.into())
            };
        }
    }
    Ok(length as u64)
}

fn exit(_: &mut Guest, arguments: &Arguments) -> Result<u64> {
    Err(Stop::End(Ended::Exited(arguments.u32(0) as u8)))
}
