//! Why a program cannot be started.

use agentrt_loader::elf::ElfError;
use agentrt_loader::stack::StackError;
use rustix::io::Errno;

use super::SCRIPTS_MAX;

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// A file cannot be opened or is not executable.
    #[error("cannot execute {subject}: {}", open_failure(*error))]
    File {
        /// The file at fault.
        subject: Subject,
        /// What is wrong.
        error: Errno,
    },
    /// A file is not a program that can be mapped.
    #[error("cannot execute {subject}: {error}; install or build it anew for x86-64 Linux")]
    Elf {
        /// The file at fault.
        subject: Subject,
        /// The rule it breaks.
        error: ElfError,
    },
    /// Scripts name each other as interpreters.
    #[error(
        "cannot execute {subject}: more than {SCRIPTS_MAX} scripts are each other's interpreter; \
         name a program behind #!"
    )]
    ScriptLoop {
        /// The first script.
        subject: Subject,
    },
    /// Arguments or environment do not fit.
    #[error("cannot execute {subject}: {error}; pass less, or pass it in a file")]
    Stack {
        /// The program.
        subject: Subject,
        /// What does not fit.
        error: StackError,
    },
    /// Mapping failed after the old image was gone: the process cannot go on.
    #[error(
        "cannot map the program: {}; give the guest more memory, or use a program that is linked \
         to addresses from 64 KiB on",
        std::io::Error::from(*.0)
    )]
    Map(Errno),
}

/// A file that shall be executed, and who needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Guest path of the file.
    pub path: Vec<u8>,
    /// Guest path of the program that names the file as its interpreter.
    pub program: Option<Vec<u8>>,
    /// The file is an ELF interpreter, whose faults `execve` reports in another way.
    elf_interpreter: bool,
}

impl Subject {
    /// The program itself.
    pub(crate) fn program(path: &[u8]) -> Subject {
        Subject {
            path: path.to_vec(),
            program: None,
            elf_interpreter: false,
        }
    }

    /// What a program, or a script, names as its interpreter.
    pub(super) fn interpreter(path: &[u8], program: &[u8], elf: bool) -> Subject {
        Subject {
            path: path.to_vec(),
            program: Some(program.to_vec()),
            elf_interpreter: elf,
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Names come from the image: they must not reach a terminal's controls.
        let printable = |path: &[u8]| -> String {
            let text = String::from_utf8_lossy(path);
            text.chars()
                .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .collect()
        };
        if let Some(program) = &self.program {
            write!(f, "{}: its interpreter ", printable(program))?;
        }
        write!(f, "{}", printable(&self.path))
    }
}

fn open_failure(error: Errno) -> String {
    let remedy = match error {
        Errno::NOENT | Errno::NOTDIR => "; check that the image has it",
        Errno::ACCESS => "; it must be a regular file that is executable (chmod +x)",
        _ => "",
    };
    format!("{}{remedy}", std::io::Error::from(error))
}

impl ExecError {
    /// What `execve` answers.
    pub fn errno(&self) -> Errno {
        match self {
            ExecError::File { error, .. } | ExecError::Map(error) => *error,
            ExecError::Elf { error, subject } if subject.elf_interpreter => {
                error.interpreter_errno()
            }
            ExecError::Elf { error, .. } => error.errno(),
            ExecError::ScriptLoop { .. } => Errno::LOOP,
            ExecError::Stack { .. } => Errno::TOOBIG,
        }
    }
}
