//! One agent: its VM, its process, its file tree.
//!
//! ```text
//!   start ──► running ──syscall──► served ──answer──► running
//!                │                    ├──wait──► waiting ──► served (the same call again)
//!                │                    └──end───► ended
//!                ├──page fault──► resolved ──► running, or a signal
//!                ├──exception──► signal ──► ended
//!                └──interrupted──► signal or deadline ──► running, waiting or ended
//! ```
//!
//! While a guest runs nothing else happens on its thread; while it waits, nothing of it runs.

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Instant;

use agentrt_loader::rewriter::Cache;
use agentrt_vfs::{SetupError, Vfs};
use agentrt_vmm::vcpu::{Exception, Failure, Route};
use agentrt_vmm::{Exit, ImmediateExit, Protection, Syscall, Vcpu, Vm, VmError};
use rustix::io::Errno;

use crate::clock::Clock;
use crate::descriptor::Descriptors;
use crate::exec::{ExecError, Request, Subject};
use crate::mm::Mm;
use crate::mm::fault::Fault;
use crate::process::{Credentials, Limits};
use crate::signal::Signals;
use crate::stats::Stats;
use crate::stop::{Ended, Stop, Wait};
use crate::task::{Program, Task, thread_cpu_time};
use crate::{dispatch, exec, signal, stream, trace};

/// What a guest is made of and what it runs.
pub struct Config {
    /// Path of the program in the guest; looked up in the guest's PATH if it has no slash.
    pub program: Vec<u8>,
    /// Arguments, the program's name first.
    pub arguments: Vec<Vec<u8>>,
    /// Environment, `NAME=VALUE`.
    pub environment: Vec<Vec<u8>>,
    /// Absolute path of the first current directory.
    pub directory: Vec<u8>,
    /// The file tree.
    pub files: agentrt_vfs::Config,
    /// Bytes of memory.
    pub memory: u64,
    /// Standard input, output and error; None leaves a descriptor closed.
    pub streams: [Option<OwnedFd>; 3],
    /// Signals that the program ignores from the start.
    pub ignored_signals: Vec<i32>,
    /// Analyses of code that was seen before.
    pub rewriter: Arc<Cache>,
    /// Where each syscall is printed as strace does.
    pub trace: Option<Box<dyn Write>>,
}

/// Why a guest was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The virtual machine could not be made.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The file tree could not be made.
    #[error(transparent)]
    Files(#[from] SetupError),
    /// The current directory is none.
    #[error("cannot start in directory {}: {}", path.display(), std::io::Error::from(*error))]
    Directory {
        /// Guest path.
        path: PathBuf,
        /// What is wrong.
        error: Errno,
    },
    /// The program is not in any directory of the guest's PATH.
    #[error("program {0:?} not found in the guest's PATH; give its path, or set PATH with --env")]
    NotFound(String),
    /// The program cannot be executed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A standard stream is no good.
    #[error("cannot use a standard stream: {0}")]
    Streams(Errno),
    /// No event descriptor for interruptions.
    #[error("cannot make an event descriptor: {0}")]
    Interrupt(std::io::Error),
}

/// How a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program exited or died.
    Program(Ended),
    /// [`Interrupt::expire`] was called.
    TimedOut,
    /// The virtual machine failed.
    Failed(Failure),
}

/// Interrupts a guest: at once from a signal handler on its thread, from elsewhere when it next
/// stops or waits. Drop it when the guest has ended: it keeps the kernel's part of the virtual
/// machine alive.
pub struct Interrupt {
    signal: AtomicI32,
    expired: AtomicBool,
    immediate_exit: ImmediateExit,
    event: OwnedFd,
}

impl Interrupt {
    /// Sends the program a signal. Async-signal-safe.
    pub fn signal(&self, signal: i32) {
        self.signal.store(signal, Ordering::SeqCst);
        self.kick();
    }

    /// Ends the guest with [`End::TimedOut`]. Async-signal-safe.
    pub fn expire(&self) {
        self.expired.store(true, Ordering::SeqCst);
        self.kick();
    }

    fn kick(&self) {
        self.immediate_exit.set();
        let one = 1u64.to_ne_bytes();
        // SAFETY: write(2) is async-signal-safe, the descriptor is open as long as `self` lives and
        // the buffer holds 8 bytes. A full eventfd counter is as good as a written one.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

/// One agent.
pub struct Guest {
    /// The processor.
    pub vcpu: Vcpu,
    /// The process.
    pub task: Task,
    /// The file tree.
    pub vfs: Vfs,
    /// Counts.
    pub stats: Stats,
    trace: Option<Box<dyn Write>>,
    interrupt: Arc<Interrupt>,
    started: Instant,
}

impl Guest {
    /// Makes a guest with its program loaded, ready to run.
    ///
    /// # Errors
    /// What cannot be made or found, and the remedy.
    pub fn new(config: Config) -> Result<Guest, StartError> {
        let started = Instant::now();
        let cpu_at_boot = thread_cpu_time();
        let vfs = Vfs::new(config.files)?;
        let Vm {
            space,
            vcpu,
            time_page,
        } = Vm::new(config.memory)?;
        let event = rustix::event::eventfd(
            0,
            rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK,
        )
        .map_err(|error| StartError::Interrupt(error.into()))?;
        let interrupt = Arc::new(Interrupt {
            signal: AtomicI32::new(0),
            expired: AtomicBool::new(false),
            immediate_exit: vcpu.immediate_exit()?,
            event,
        });
        let descriptors = Descriptors::default();
        let streams = stream::standard(config.streams).map_err(StartError::Streams)?;
        for (number, description) in (0..).zip(streams) {
            if let Some(description) = description {
                // The table is empty and three is far below its limit.
                let _ = descriptors.open_at(number, description, false);
            }
        }
        let mut signals = Signals::default();
        config
            .ignored_signals
            .iter()
            .for_each(|&signal| signals.ignore(signal));
        let task = Task {
            mm: Mm::new(space, config.rewriter),
            descriptors,
            cwd: vfs.root(),
            umask: 0o022,
            signals,
            credentials: Credentials::default(),
            limits: Limits::default(),
            program: Program {
                exe: vfs.root(),
                comm: Vec::new(),
                cmdline: Vec::new(),
                environ: Vec::new(),
                auxv: Vec::new(),
            },
            clock: Clock::new(started, time_page, vcpu.tsc_is_hosts()),
            cpu_at_boot,
            sleep: None,
        };
        let mut guest = Guest {
            vcpu,
            task,
            vfs,
            stats: Stats::default(),
            trace: config.trace,
            interrupt,
            started,
        };
        guest.enter_directory(&config.directory)?;
        guest.load(config.program, config.arguments, config.environment)?;
        Ok(guest)
    }

    /// What interrupts this guest.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    fn enter_directory(&mut self, path: &[u8]) -> Result<(), StartError> {
        let failed = |error| StartError::Directory {
            path: PathBuf::from(String::from_utf8_lossy(path).into_owned()),
            error,
        };
        let Guest { vfs, task, .. } = self;
        let root = vfs.root();
        let directory = vfs.lookup(task, &root, path, true).map_err(failed)?;
        let stat = vfs.stat_of(task, &directory).map_err(failed)?;
        if stat.kind() != agentrt_vfs::FileKind::Directory {
            return Err(failed(Errno::NOTDIR));
        }
        task.cwd = directory;
        Ok(())
    }

    fn load(
        &mut self,
        program: Vec<u8>,
        argv: Vec<Vec<u8>>,
        envp: Vec<Vec<u8>>,
    ) -> Result<(), StartError> {
        let path = if program.contains(&b'/') {
            program
        } else {
            self.search(program, &envp)?
        };
        let base = self.task.cwd.clone();
        exec::execute(
            self,
            Request {
                base,
                path,
                argv,
                envp,
            },
        )?;
        Ok(())
    }

    /// Finds a program in the guest's PATH, as execvp(3) does.
    fn search(&mut self, name: Vec<u8>, envp: &[Vec<u8>]) -> Result<Vec<u8>, StartError> {
        if name.is_empty() {
            return Err(StartError::NotFound(String::new()));
        }
        let path = envp
            .iter()
            .find_map(|variable| variable.strip_prefix(b"PATH="));
        let Guest { vfs, task, .. } = self;
        let mut denied = None;
        for directory in path.unwrap_or(b"/bin:/usr/bin").split(|&byte| byte == b':') {
            let mut candidate = if directory.is_empty() {
                b".".to_vec()
            } else {
                directory.to_vec()
            };
            candidate.push(b'/');
            candidate.extend(&name);
            match vfs.access(task, &task.cwd, &candidate, libc::X_OK as u32, true) {
                Ok(()) => return Ok(candidate),
                Err(Errno::ACCESS) => denied = Some(candidate),
                Err(_) => {}
            }
        }
        match denied {
            Some(path) => Err(ExecError::File {
                subject: Subject::program(&path),
                error: Errno::ACCESS,
            }
            .into()),
            None => Err(StartError::NotFound(
                String::from_utf8_lossy(&name).into_owned(),
            )),
        }
    }

    /// Sets the registers for the start of a program image.
    pub(crate) fn start_at(&mut self, instruction_pointer: u64, stack_pointer: u64) {
        self.vcpu.start(
            self.task.mm.space().memory(),
            instruction_pointer,
            stack_pointer,
        );
    }

    /// Runs the guest to its end.
    pub fn run(&mut self) -> End {
        let end = self.run_to_end();
        self.finish();
        end
    }

    fn run_to_end(&mut self) -> End {
        loop {
            if let Some(end) = self.take_interruption() {
                return end;
            }
            let memory = self.task.mm.space().memory();
            self.task.clock.refresh(memory);
            let exit = self.vcpu.run(memory);
            if self.stats.first_instruction.is_zero() {
                self.stats.first_instruction = self.started.elapsed();
            }
            let end = match exit {
                Exit::Syscall(call) => self.syscall(&call),
                Exit::Exception(exception) => self.exception(&exception),
                Exit::Interrupted => {
                    self.stats.exits.interrupted += 1;
                    None
                }
                Exit::Failed(failure) => return End::Failed(failure),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    fn syscall(&mut self, call: &Syscall) -> Option<End> {
        if self.stats.first_syscall.is_zero() {
            self.stats.first_syscall = self.started.elapsed();
        }
        self.stats.exits.syscall += 1;
        if call.route == Route::Trapped {
            self.task.mm.settle_site(call.return_address, call.number);
        }
        let handler = dispatch::handler(call.number);
        self.stats.count(call.number, call.route, handler.is_some());
        let Some(handler) = handler else {
            self.answer(call, Err(Errno::NOSYS));
            return None;
        };
        let arguments = crate::arguments::Arguments::of(call);
        // Afterwards the arguments may not be there any more.
        let gone = self.trace.is_some() && dispatch::replaces_image(call.number);
        let line = gone.then(|| trace::line(&mut self.task.mm, call, Some(0)));
        self.task.sleep = None;
        loop {
            match handler(self, &arguments) {
                Ok(value) => self.answer(call, Ok(value)),
                Err(Stop::Error(error)) => self.answer(call, Err(error)),
                Err(Stop::Resume) => self.print(line),
                Err(Stop::Wait(wait)) => match self.wait(&wait) {
                    Some(end) => return Some(end),
                    None => continue,
                },
                Err(Stop::End(ended)) => {
                    self.trace(call, None);
                    return Some(End::Program(ended));
                }
            }
            return None;
        }
    }

    fn answer(&mut self, call: &Syscall, result: Result<u64, Errno>) {
        let value = match result {
            Ok(value) => value as i64,
            Err(error) => -i64::from(error.raw_os_error()),
        };
        self.trace(call, Some(value));
        self.vcpu.answer(value);
    }

    /// Prints a syscall, if syscalls are printed.
    fn trace(&mut self, call: &Syscall, result: Option<i64>) {
        let line = self
            .trace
            .is_some()
            .then(|| trace::line(&mut self.task.mm, call, result));
        self.print(line);
    }

    fn print(&mut self, line: Option<String>) {
        if let (Some(sink), Some(line)) = (&mut self.trace, line) {
            trace::print(sink.as_mut(), &line);
        }
    }

    /// Waits until the syscall is worth another try.
    fn wait(&mut self, wait: &Wait) -> Option<End> {
        let readable = |descriptor, events| libc::pollfd {
            fd: descriptor,
            events,
            revents: 0,
        };
        let mut polled = vec![readable(self.interrupt.event.as_raw_fd(), libc::POLLIN)];
        polled.extend(
            wait.descriptors
                .iter()
                .map(|&(fd, events)| readable(fd, events)),
        );
        let timeout = match wait.deadline {
            // Rounded up: waking early would only mean waiting again.
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32
            }
            None => -1,
        };
        // SAFETY: the array holds as many entries as are named; poll(2) writes only `revents`.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
        self.take_interruption()
    }

    fn exception(&mut self, exception: &Exception) -> Option<End> {
        if exception.vector != 14 {
            self.stats.exits.exception += 1;
            return self.die_of(signal_of(exception.vector));
        }
        self.stats.exits.page_fault += 1;
        // Error code bits (SDM vol. 3A, 4.7): 1 is a write, 4 an instruction fetch.
        let needed = Protection {
            read: true,
            write: exception.error_code & 1 << 1 != 0,
            execute: exception.error_code & 1 << 4 != 0,
        };
        match self.task.mm.fault(exception.address, needed) {
            Ok(()) => None,
            Err(Fault::NotMapped | Fault::Denied) => self.die_of(libc::SIGSEGV),
            Err(Fault::Bus) => self.die_of(libc::SIGBUS),
            Err(Fault::OutOfMemory) => Some(End::Program(Ended::OutOfMemory)),
        }
    }

    /// A fault kills even where the program ignores or blocks the signal: it cannot go on.
    fn die_of(&mut self, signal: i32) -> Option<End> {
        Some(End::Program(Ended::Killed(signal)))
    }

    /// What [`Interrupt`] asked for since the last look.
    fn take_interruption(&mut self) -> Option<End> {
        if self.interrupt.expired.load(Ordering::SeqCst) {
            return Some(End::TimedOut);
        }
        let signal = self.interrupt.signal.swap(0, Ordering::SeqCst);
        if signal == 0 {
            return None;
        }
        let mut counter = [0; 8];
        // Only the readiness matters, not the count.
        let _ = rustix::io::read(&self.interrupt.event, &mut counter);
        signal::raise_from_host(self, signal).map(End::Program)
    }

    fn finish(&mut self) {
        self.task.mm.sync_all_shared();
        self.stats.wall = self.started.elapsed();
        let used = self.task.used_cpu_time();
        self.stats.cpu = used.user + used.system;
        self.stats.sites = self.task.mm.sites();
        self.stats.page_faults = self.task.mm.faults();
        self.stats.pages_touched = self.task.mm.space().resident_pages();
    }
}

/// The signal that Linux sends for an exception (arch/x86/kernel/traps.c).
fn signal_of(vector: u8) -> i32 {
    match vector {
        0 | 16 | 19 => libc::SIGFPE,
        1 | 3 => libc::SIGTRAP,
        6 => libc::SIGILL,
        11 | 12 | 17 => libc::SIGBUS,
        _ => libc::SIGSEGV,
    }
}
