//! Signals: dispositions, masks, and deaths by default action.
//!
//! Handlers are not run yet: a signal that would run one cannot be delivered. Syscalls that would
//! send such a signal answer ENOSYS; a fault kills the program whatever its disposition, as Linux
//! does when a handler cannot be run.

use rustix::io::Errno;
use syscalls::Sysno;

use crate::arguments::Arguments;
use crate::dispatch::Handler;
use crate::guest::Guest;
use crate::stop::{Ended, Result, Stop};
use crate::task::FIRST_PID;

/// Number of signals (`_NSIG` of the kernel).
const SIGNALS: usize = 64;
/// `struct sigaction` of the kernel: handler, flags, restorer, mask.
const ACTION_WORDS: usize = 4;
/// Size in bytes of a signal set of the kernel.
const SET_SIZE: u64 = 8;
/// Smallest alternate stack (`MINSIGSTKSZ`).
const ALTERNATE_STACK_MIN: u64 = 2048;

/// Dispositions, mask and alternate stack of the one thread.
pub struct Signals {
    actions: [[u64; ACTION_WORDS]; SIGNALS],
    /// Blocked signals, bit `n - 1` for signal `n`.
    pub blocked: u64,
    /// Signals that were sent while blocked.
    pub pending: u64,
    /// `stack_t`: address, flags, size.
    alternate_stack: [u64; 3],
}

impl Default for Signals {
    fn default() -> Self {
        let alternate_stack = [0, libc::SS_DISABLE as u64, 0];
        Signals {
            actions: [[0; ACTION_WORDS]; SIGNALS],
            blocked: 0,
            pending: 0,
            alternate_stack,
        }
    }
}

/// What a signal does to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disposition {
    Default,
    Ignore,
    Handler,
}

impl Signals {
    /// Handlers go away with the old program image, ignored signals stay ignored (signal(7)).
    pub fn reset_for_exec(&mut self) {
        for action in &mut self.actions {
            if action[0] != libc::SIG_IGN as u64 {
                *action = [0; ACTION_WORDS];
            }
        }
        self.alternate_stack = [0, libc::SS_DISABLE as u64, 0];
    }

    /// Makes the program ignore `signal` from the start, as a shell's `trap ''` or `nohup` does.
    pub fn ignore(&mut self, signal: i32) {
        if let Some(index) = index(signal) {
            self.actions[index][0] = libc::SIG_IGN as u64;
        }
    }

    fn disposition(&self, index: usize) -> Disposition {
        match self.actions[index][0] as usize {
            libc::SIG_DFL => Disposition::Default,
            libc::SIG_IGN => Disposition::Ignore,
            _ => Disposition::Handler,
        }
    }
}

fn index(signal: i32) -> Option<usize> {
    usize::try_from(signal)
        .ok()
        .filter(|signal| (1..=SIGNALS).contains(signal))
        .map(|n| n - 1)
}

/// Is `signal` ignored by default (signal(7))?
fn ignored_by_default(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH
    )
}

/// Stops the process by default (signal(7)).
fn stops_by_default(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}

/// Sends `signal` to the program.
///
/// # Errors
/// [`Stop::End`] if it dies of it; ENOSYS if a handler would have to run.
pub fn raise(guest: &mut Guest, signal: i32) -> Result<()> {
    let Some(index) = index(signal) else {
        return Err(Errno::INVAL.into());
    };
    let signals = &mut guest.task.signals;
    let unblockable = matches!(signal, libc::SIGKILL | libc::SIGSTOP);
    if !unblockable && signals.blocked & (1 << index) != 0 {
        signals.pending |= 1 << index;
        return Ok(());
    }
    match signals.disposition(index) {
        Disposition::Ignore if !unblockable => Ok(()),
        Disposition::Handler if !unblockable => Err(Errno::NOSYS.into()),
        _ if ignored_by_default(signal) => Ok(()),
        // A guest is not stopped: nobody inside could continue it.
        _ if stops_by_default(signal) => Err(Errno::NOSYS.into()),
        _ => Err(Stop::End(Ended::Killed(signal))),
    }
}

/// Sends a signal on the host's behalf: one that cannot be delivered kills.
pub fn raise_from_host(guest: &mut Guest, signal: i32) -> Option<Ended> {
    match raise(guest, signal) {
        Err(Stop::End(ended)) => Some(ended),
        Err(_) if !stops_by_default(signal) => Some(Ended::Killed(signal)),
        _ => None,
    }
}

/// The syscalls of this module.
pub fn handler(number: Sysno) -> Option<Handler> {
    Some(match number {
        Sysno::rt_sigaction => rt_sigaction,
        Sysno::rt_sigprocmask => rt_sigprocmask,
        Sysno::rt_sigpending => rt_sigpending,
        Sysno::sigaltstack => sigaltstack,
        Sysno::kill => kill,
        Sysno::tkill => |guest, arguments| send(guest, arguments.i32(0), arguments.i32(1)),
        Sysno::tgkill => tgkill,
        _ => return None,
    })
}

fn rt_sigaction(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let signal = arguments.i32(0);
    let index = index(signal).ok_or(Errno::INVAL)?;
    if arguments.u64(3) != SET_SIZE {
        return Err(Errno::INVAL.into());
    }
    let (new, old) = (arguments.address(1), arguments.address(2));
    let before = guest.task.signals.actions[index];
    if new != 0 {
        let action = guest.task.mm.read_u64s(new)?;
        if matches!(signal, libc::SIGKILL | libc::SIGSTOP) {
            return Err(Errno::INVAL.into());
        }
        guest.task.signals.actions[index] = action;
        if guest.task.signals.disposition(index) == Disposition::Ignore {
            guest.task.signals.pending &= !(1 << index);
        }
    }
    if old != 0 {
        write_words(guest, old, &before)?;
    }
    Ok(0)
}

fn rt_sigprocmask(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    if arguments.u64(3) != SET_SIZE {
        return Err(Errno::INVAL.into());
    }
    let (new, old) = (arguments.address(1), arguments.address(2));
    let before = guest.task.signals.blocked;
    if new != 0 {
        let [set] = guest.task.mm.read_u64s(new)?;
        let blocked = match arguments.i32(0) {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return Err(Errno::INVAL.into()),
        };
        let unblockable = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
        guest.task.signals.blocked = blocked & !unblockable;
    }
    if old != 0 {
        write_words(guest, old, &[before])?;
    }
    deliver_unblocked(guest)?;
    Ok(0)
}

fn deliver_unblocked(guest: &mut Guest) -> Result<()> {
    let ready = guest.task.signals.pending & !guest.task.signals.blocked;
    if ready == 0 {
        return Ok(());
    }
    let signal = ready.trailing_zeros() as i32 + 1;
    guest.task.signals.pending &= !(1 << (signal - 1));
    raise(guest, signal)?;
    deliver_unblocked(guest)
}

fn rt_sigpending(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    if arguments.u64(1) > SET_SIZE {
        return Err(Errno::INVAL.into());
    }
    let pending = guest.task.signals.pending.to_ne_bytes();
    guest
        .task
        .mm
        .write(arguments.address(0), &pending[..arguments.u64(1) as usize])?;
    Ok(0)
}

fn sigaltstack(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (new, old) = (arguments.address(0), arguments.address(1));
    let before = guest.task.signals.alternate_stack;
    if new != 0 {
        let mut stack: [u64; 3] = guest.task.mm.read_u64s(new)?;
        // Flags are an int; the upper half is padding.
        stack[1] &= 0xffff_ffff;
        match stack[1] as i32 & !(1 << 31) {
            libc::SS_DISABLE => stack = [0, libc::SS_DISABLE as u64, 0],
            0 | libc::SS_ONSTACK if stack[2] < ALTERNATE_STACK_MIN => {
                return Err(Errno::NOMEM.into());
            }
            0 | libc::SS_ONSTACK => stack[1] = 0,
            _ => return Err(Errno::INVAL.into()),
        }
        guest.task.signals.alternate_stack = stack;
    }
    if old != 0 {
        write_words(guest, old, &before)?;
    }
    Ok(0)
}

fn kill(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    // The process itself, its group, or everybody: here they are the same.
    match arguments.i32(0) {
        FIRST_PID | 0 => send(guest, FIRST_PID, arguments.i32(1)),
        pid if pid == -FIRST_PID => send(guest, FIRST_PID, arguments.i32(1)),
        _ => Err(Errno::SRCH.into()),
    }
}

fn tgkill(guest: &mut Guest, arguments: &Arguments) -> Result<u64> {
    let (group, thread) = (arguments.i32(0), arguments.i32(1));
    if group <= 0 || thread <= 0 {
        return Err(Errno::INVAL.into());
    }
    if group != FIRST_PID {
        return Err(Errno::SRCH.into());
    }
    send(guest, thread, arguments.i32(2))
}

fn send(guest: &mut Guest, thread: i32, signal: i32) -> Result<u64> {
    if thread != FIRST_PID {
        return Err(Errno::SRCH.into());
    }
    if signal != 0 {
        raise(guest, signal)?;
    }
    Ok(0)
}

fn write_words(guest: &mut Guest, address: u64, words: &[u64]) -> Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(guest.task.mm.write(address, &bytes)?)
}
