//! Program images: `execve`, and the first one of a guest.
//!
//! Everything that can fail because of the file is done before the old image is touched.

mod error;

use std::rc::Rc;

use agentrt_loader::elf::{self, Image, Kind, ReadAt};
use agentrt_loader::script;
use agentrt_loader::stack::{self, Contents};
use agentrt_shim_abi::{PAGE_SIZE, VDSO_BASE};
use agentrt_vfs::{File, FileKind, Location, OpenFlags, Opened, PATH_MAX, ResolveFlags};
use agentrt_vmm::Protection;
use rustix::io::Errno;
use syscalls::Sysno;

use crate::arguments::Arguments;
use crate::dispatch::Handler;
use crate::guest::Guest;
use crate::mm::area::{Area, Backing};
use crate::mm::map::Placement;
use crate::mm::{Mm, STACK_SIZE, STACK_TOP, page_ceil, page_floor};
use crate::stop::{Result as Served, Stop};
use crate::task::Program;

pub use error::{ExecError, Subject};

/// Where a position-independent program goes, as Linux places it without randomisation.
const RELOCATABLE_BASE: u64 = 0x5555_5555_4000;
/// Scripts that name scripts, at most (`exec_binprm` in Linux).
const SCRIPTS_MAX: usize = 5;
/// Strings in argv and envp together, at most; their total size is bounded by the stack.
const STRINGS_MAX: usize = 1 << 16;

/// What to execute.
pub struct Request {
    /// Directory that a relative path starts from.
    pub base: Location,
    /// Path of the program.
    pub path: Vec<u8>,
    /// Arguments, the program's name first.
    pub argv: Vec<Vec<u8>>,
    /// Environment, `NAME=VALUE`.
    pub envp: Vec<Vec<u8>>,
}

/// An ELF file that was read and found good.
struct Binary {
    path: Vec<u8>,
    file: Rc<dyn File>,
    image: Image,
}

/// Replaces the program image.
///
/// # Errors
/// [`ExecError`]; after [`ExecError::Map`] the process has no image any more.
pub fn execute(guest: &mut Guest, request: Request) -> Result<(), ExecError> {
    let Request {
        base,
        path,
        argv,
        envp,
    } = request;
    let (program, argv) = resolve_scripts(guest, &base, path, argv)?;
    let interpreter = match &program.image.interpreter {
        Some(path) => {
            let subject = Subject::interpreter(path, &program.path, true);
            let file = open(guest, &base, &subject)?;
            Some(parse(subject, file)?)
        }
        None => None,
    };
    // Find out before the point of no return whether the strings fit.
    build_stack(&program, &argv, &envp, &[])?;

    let task = &mut guest.task;
    task.mm.clear_all();
    let bias = map_program(&mut task.mm, &program).map_err(ExecError::Map)?;
    let start = match &interpreter {
        Some(interpreter) => {
            let base = map_interpreter(&mut task.mm, interpreter).map_err(ExecError::Map)?;
            (base.wrapping_add(interpreter.image.entry), base)
        }
        None => (bias.wrapping_add(program.image.entry), 0),
    };
    let auxv = auxiliary_vector(&program.image, bias, start.1);
    let stack = build_stack(&program, &argv, &envp, &auxv)?;
    let executable = program.image.stack_executable;
    let protection = Protection {
        execute: executable,
        ..Protection::READ_WRITE
    };
    let area = Area::anonymous(0, protection, false, "[stack]");
    task.mm
        .map(Placement::Replace(STACK_TOP - STACK_SIZE), STACK_SIZE, area)
        .and_then(|_| task.mm.write(stack.stack_pointer, &stack.bytes))
        .map_err(ExecError::Map)?;

    task.descriptors.close_for_exec();
    task.signals.reset_for_exec();
    task.program = describe(&program, argv, envp, &stack.bytes);
    guest.start_at(start.0, stack.stack_pointer);
    Ok(())
}

/// Follows `#!` lines to the ELF file that runs, rewriting the arguments as Linux does.
fn resolve_scripts(
    guest: &mut Guest,
    base: &Location,
    path: Vec<u8>,
    mut argv: Vec<Vec<u8>>,
) -> Result<(Binary, Vec<Vec<u8>>), ExecError> {
    let mut current = Subject::program(&path);
    for _ in 0..=SCRIPTS_MAX {
        let file = open(guest, base, &current)?;
        let mut start = [0; script::LINE_MAX];
        let length = FileReader(&*file).read_at(0, &mut start).unwrap_or(0);
        let Some(script) = script::parse(&start[..length]) else {
            return Ok((parse(current, file)?, argv));
        };
        let next = Subject::interpreter(&script.interpreter, &current.path, false);
        let mut arguments = vec![script.interpreter];
        arguments.extend(script.argument);
        arguments.push(current.path);
        arguments.extend(argv.into_iter().skip(1));
        argv = arguments;
        current = next;
    }
    Err(ExecError::ScriptLoop {
        subject: Subject::program(&path),
    })
}

fn open(guest: &mut Guest, base: &Location, subject: &Subject) -> Result<Rc<dyn File>, ExecError> {
    let failed = |error| ExecError::File {
        subject: subject.clone(),
        error,
    };
    let Guest { vfs, task, .. } = guest;
    let (flags, resolve) = (OpenFlags::empty(), ResolveFlags::empty());
    let opened = vfs
        .open(task, base, &subject.path, flags, 0, resolve)
        .map_err(failed)?;
    let Opened::File(file) = opened else {
        return Err(failed(Errno::ACCESS));
    };
    let stat = file.stat().map_err(failed)?;
    if stat.kind() != FileKind::Regular || stat.mode & 0o111 == 0 {
        return Err(failed(Errno::ACCESS));
    }
    Ok(file.into())
}

fn parse(subject: Subject, file: Rc<dyn File>) -> Result<Binary, ExecError> {
    match elf::parse(&FileReader(&*file)) {
        Ok(image) => Ok(Binary {
            path: subject.path,
            file,
            image,
        }),
        Err(error) => Err(ExecError::Elf { subject, error }),
    }
}

/// A file of the tree, as the loader reads it.
struct FileReader<'a>(&'a dyn File);

impl ReadAt for FileReader<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        Ok(self
            .0
            .read_at(offset, &[vm_memory::VolatileSlice::from(buffer)])?)
    }

    fn size(&self) -> u64 {
        self.0.size().unwrap_or(0)
    }
}

/// Maps the program; returns what is added to the addresses in its file.
fn map_program(mm: &mut Mm, program: &Binary) -> Result<u64, Errno> {
    let span = program.image.span();
    let bias = match program.image.kind {
        Kind::Fixed => 0,
        Kind::Relocatable => RELOCATABLE_BASE
            .next_multiple_of(program.image.alignment())
            .wrapping_sub(span.start),
    };
    map_segments(mm, program, bias)?;
    mm.start_brk(bias.wrapping_add(span.end));
    Ok(bias)
}

fn map_interpreter(mm: &mut Mm, interpreter: &Binary) -> Result<u64, Errno> {
    let span = interpreter.image.span();
    let base = match interpreter.image.kind {
        Kind::Fixed => 0,
        Kind::Relocatable => {
            let alignment = interpreter.image.alignment();
            let gap = mm.find_gap(span.end - span.start + alignment)?;
            gap.next_multiple_of(alignment).wrapping_sub(span.start)
        }
    };
    map_segments(mm, interpreter, base)?;
    Ok(base)
}

fn map_segments(mm: &mut Mm, binary: &Binary, bias: u64) -> Result<(), Errno> {
    for segment in &binary.image.segments {
        let protection = Protection {
            read: segment.protection.read,
            write: segment.protection.write,
            execute: segment.protection.execute,
        };
        let start = page_floor(bias.wrapping_add(segment.vaddr));
        let file_end = bias
            .wrapping_add(segment.vaddr)
            .wrapping_add(segment.file_size);
        let memory_end = bias
            .wrapping_add(segment.vaddr)
            .wrapping_add(segment.memory_size);
        let end = page_ceil(memory_end).ok_or(Errno::NOMEM)?;
        let mut zeros_from = start;
        if segment.file_size > 0 {
            zeros_from = page_ceil(file_end).ok_or(Errno::NOMEM)?;
            let backing = Backing::File {
                file: Rc::clone(&binary.file),
                offset: page_floor(segment.file_offset),
                write_back: false,
                identity: None,
                patches: Rc::default(),
            };
            let area = Area {
                end: 0,
                protection,
                backing,
                shared: false,
                name: "",
            };
            mm.map(Placement::Replace(start), zeros_from - start, area)?;
            if segment.memory_size > segment.file_size {
                mm.zero_rest_of_page(file_end)?;
            }
        }
        if end > zeros_from {
            let area = Area::anonymous(0, protection, false, "");
            mm.map(Placement::Replace(zeros_from), end - zeros_from, area)?;
        }
    }
    Ok(())
}

/// The auxiliary vector but for what the stack adds (getauxval(3)).
fn auxiliary_vector(image: &Image, bias: u64, interpreter: u64) -> Vec<(u64, u64)> {
    // CPUID.1:EDX, as Linux passes it; HWCAP2 bit 1 tells that ring 3 may use wrfsbase.
    let hwcap = u64::from(std::arch::x86_64::__cpuid(1).edx);
    let headers = image
        .program_headers
        .address
        .map_or(0, |address| bias.wrapping_add(address));
    vec![
        (libc::AT_SYSINFO_EHDR, VDSO_BASE),
        (libc::AT_HWCAP, hwcap),
        (libc::AT_PAGESZ, PAGE_SIZE),
        (libc::AT_CLKTCK, 100),
        (libc::AT_PHDR, headers),
        (libc::AT_PHENT, image.program_headers.entry_size.into()),
        (libc::AT_PHNUM, image.program_headers.count.into()),
        (libc::AT_BASE, interpreter),
        (libc::AT_FLAGS, 0),
        (libc::AT_ENTRY, bias.wrapping_add(image.entry)),
        (libc::AT_UID, 0),
        (libc::AT_EUID, 0),
        (libc::AT_GID, 0),
        (libc::AT_EGID, 0),
        (libc::AT_SECURE, 0),
        (libc::AT_HWCAP2, 2),
    ]
}

fn build_stack(
    program: &Binary,
    argv: &[Vec<u8>],
    envp: &[Vec<u8>],
    auxv: &[(u64, u64)],
) -> Result<stack::InitialStack, ExecError> {
    let mut random = [0; 16];
    // The stack protector's canary comes from these bytes.
    crate::process::fill_random(&mut random);
    let contents = Contents {
        top: STACK_TOP,
        limit: STACK_SIZE,
        argv,
        envp,
        auxv,
        exec_filename: &program.path,
        platform: b"x86_64",
        random,
    };
    stack::build(&contents).map_err(|error| ExecError::Stack {
        subject: Subject::program(&program.path),
        error,
    })
}

fn describe(program: &Binary, argv: Vec<Vec<u8>>, envp: Vec<Vec<u8>>, stack: &[u8]) -> Program {
    let joined = |strings: &[Vec<u8>]| {
        strings
            .iter()
            .flat_map(|string| string.iter().copied().chain([0]))
            .collect()
    };
    let name = program
        .path
        .rsplit(|&byte| byte == b'/')
        .next()
        .unwrap_or_default();
    Program {
        exe: program.file.location().clone(),
        comm: name[..name.len().min(15)].to_vec(),
        cmdline: joined(&argv),
        environ: joined(&envp),
        auxv: auxv_bytes(stack, argv.len(), envp.len()),
    }
}

/// The auxiliary vector as it lies on the stack, behind argc, argv and envp with their NULLs.
fn auxv_bytes(stack: &[u8], arguments: usize, variables: usize) -> Vec<u8> {
    let start = (arguments.max(1) + variables + 3) * 8;
    let mut bytes = Vec::new();
    for entry in stack.get(start..).unwrap_or_default().chunks_exact(16) {
        bytes.extend(entry);
        if entry[..8] == [0; 8] {
            break;
        }
    }
    bytes
}

/// The syscalls of this module.
pub fn handler(number: Sysno) -> Option<Handler> {
    match number {
        Sysno::execve => Some(execve),
        Sysno::execveat => Some(execveat),
        _ => None,
    }
}

fn execve(guest: &mut Guest, arguments: &Arguments) -> Served<u64> {
    let path = guest.task.mm.read_string(arguments.address(0), PATH_MAX)?;
    let base = guest.task.cwd.clone();
    exec_with(
        guest,
        base,
        path,
        arguments.address(1),
        arguments.address(2),
    )
}

fn execveat(guest: &mut Guest, arguments: &Arguments) -> Served<u64> {
    let path = guest.task.mm.read_string(arguments.address(1), PATH_MAX)?;
    let flags = arguments.i32(4);
    if flags & !(libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::INVAL.into());
    }
    let number = arguments.i32(0);
    let (base, path) = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        // The descriptor itself, by the name that Linux gives such a program, too.
        (
            guest.vfs.root(),
            format!("/proc/self/fd/{number}").into_bytes(),
        )
    } else if number == libc::AT_FDCWD || path.starts_with(b"/") {
        (guest.task.cwd.clone(), path)
    } else {
        let description = guest.task.descriptors.get(number)?;
        (description.file(Errno::NOTDIR)?.location().clone(), path)
    };
    exec_with(
        guest,
        base,
        path,
        arguments.address(2),
        arguments.address(3),
    )
}

fn exec_with(
    guest: &mut Guest,
    base: Location,
    path: Vec<u8>,
    argv: u64,
    envp: u64,
) -> Served<u64> {
    let argv = read_strings(&mut guest.task.mm, argv)?;
    let envp = read_strings(&mut guest.task.mm, envp)?;
    match execute(
        guest,
        Request {
            base,
            path,
            argv,
            envp,
        },
    ) {
        Ok(()) => Err(Stop::Resume),
        Err(ExecError::Map(_)) => Err(Stop::End(crate::stop::Ended::Killed(libc::SIGKILL))),
        Err(error) => Err(error.errno().into()),
    }
}

/// Reads a NULL-terminated array of strings; a null pointer is an empty array.
fn read_strings(mm: &mut Mm, array: u64) -> Served<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    let mut total = 0;
    if array == 0 {
        return Ok(strings);
    }
    loop {
        let position = array
            .checked_add(strings.len() as u64 * 8)
            .ok_or(Errno::FAULT)?;
        let [address] = mm.read_u64s(position)?;
        if address == 0 {
            return Ok(strings);
        }
        let string = mm
            .read_string(address, stack::STRING_MAX as usize)
            .map_err(|error| {
                if error == Errno::NAMETOOLONG {
                    Errno::TOOBIG
                } else {
                    error
                }
            })?;
        total += string.len() as u64 + 9;
        if strings.len() >= STRINGS_MAX || total > STACK_SIZE {
            return Err(Errno::TOOBIG.into());
        }
        strings.push(string);
    }
}
