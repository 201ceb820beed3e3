//! Hands this process's signals and the time limit to the guest.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use agentrt::Interrupt;

/// Signals that are passed on: those that a shell or a supervisor sends to a program.
const FORWARDED: [i32; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// What the handlers interrupt. Points to an [`Interrupt`] that is never freed.
static TARGET: AtomicPtr<Interrupt> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn forward(signal: i32) {
    if let Some(target) = target() {
        target.signal(signal);
    }
}

extern "C" fn expire(_: i32) {
    if let Some(target) = target() {
        target.expire();
    }
}

fn target() -> Option<&'static Interrupt> {
    // SAFETY: not null means set by `install`, which gave up an Arc for it: it lives for ever.
    unsafe { TARGET.load(Ordering::SeqCst).as_ref() }
}

/// Of the signals that are passed on, those that this process was started with ignored.
pub fn ignored() -> Vec<i32> {
    FORWARDED
        .into_iter()
        .filter(|&signal| is_ignored(signal))
        .collect()
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid sigaction, which sigaction(2) then overwrites.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action asks for the present one only.
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    done == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Passes signals on to `interrupt`'s guest, which runs on this thread, and ends it after `limit`.
pub fn install(interrupt: Arc<Interrupt>, limit: Option<Duration>) {
    TARGET.store(Arc::into_raw(interrupt).cast_mut(), Ordering::SeqCst);
    // SAFETY: ignoring a signal runs no code. Without it a guest that writes more than this process
    // may (RLIMIT_FSIZE) to a volume would end it; the guest gets EFBIG instead.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    for signal in FORWARDED {
        if !is_ignored(signal) {
            handle(signal, forward);
        }
    }
    if let Some(limit) = limit {
        handle(libc::SIGALRM, expire);
        start_timer(limit);
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32)) {
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // SAFETY: the handler is async-signal-safe: it stores to atomics and writes to an eventfd.
    // Without SA_RESTART, so that KVM_RUN and poll return.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
}

fn start_timer(limit: Duration) {
    let value = libc::timeval {
        tv_sec: limit.as_secs().min(i64::MAX as u64) as i64,
        tv_usec: limit.subsec_micros().into(),
    };
    // Repeats, in case the first one comes between a look at the flag and KVM_RUN.
    let repeat = libc::timeval {
        tv_sec: 0,
        tv_usec: 10_000,
    };
    let timer = libc::itimerval {
        it_value: value,
        it_interval: repeat,
    };
    // SAFETY: a valid timer value; the old one is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

/// Dies of `signal`, as the guest's program did, so that whoever waits sees the same.
pub fn die_of(signal: i32) -> ! {
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain system calls on this process: no core file, default action, unblocked, sent.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    // The default action of a signal that killed the guest kills; in case it does not:
    std::process::exit(128 + signal)
}
