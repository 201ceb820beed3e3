//! Descriptors and what they refer to.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use agentrt_vfs::{File, FileKind, OpenFlags, Stat};
use rustix::io::Errno;

use crate::file::locks::Locks;
use crate::file::memfd::Seals;
use crate::stream::Stream;

/// Most descriptors a program may have (hard RLIMIT_NOFILE).
pub const DESCRIPTORS_MAX: u64 = 4096;
/// Soft RLIMIT_NOFILE at the start, as Linux has it.
pub const DESCRIPTORS_DEFAULT: u64 = 1024;

/// An open file description (open(2)): what `dup` shares.
pub struct Description {
    /// What is open.
    pub object: Object,
    /// Status flags and access mode, as `F_GETFL` shows them.
    pub flags: Cell<OpenFlags>,
    /// File offset in bytes; the cookie of the next entry for directories.
    pub offset: Cell<u64>,
    /// The seals of a memfd, which all its descriptions share; `None` if it cannot be sealed.
    pub seals: Option<Rc<Cell<Seals>>>,
    /// The locks that belong to this description: those of flock and open file description locks.
    pub locks: RefCell<Locks>,
}

/// What a description refers to.
pub enum Object {
    /// A file, directory or handle of the tree.
    File(Rc<dyn File>),
    /// One of the host's streams: standard input, output, error.
    Stream(Rc<Stream>),
}

impl Description {
    /// A description at offset 0.
    pub fn new(object: Object, flags: OpenFlags) -> Rc<Description> {
        Description::with_seals(object, flags, None)
    }

    /// A description at offset 0 of a memfd.
    pub fn with_seals(
        object: Object,
        flags: OpenFlags,
        seals: Option<Rc<Cell<Seals>>>,
    ) -> Rc<Description> {
        Rc::new(Description {
            object,
            flags: Cell::new(flags),
            offset: Cell::new(0),
            seals,
            locks: RefCell::default(),
        })
    }

    /// `fstat`.
    ///
    /// # Errors
    /// As the file of the tree or the host gives them.
    pub fn stat(&self) -> Result<Stat, Errno> {
        match &self.object {
            Object::File(file) => file.stat(),
            Object::Stream(stream) => stream.stat(),
        }
    }

    /// The type of the file.
    pub fn kind(&self) -> FileKind {
        match &self.object {
            Object::File(file) => file.kind(),
            Object::Stream(stream) => stream.kind(),
        }
    }

    /// Whether it is only a handle (`O_PATH`), good for no I/O.
    pub fn is_handle(&self) -> bool {
        self.flags.get().contains(OpenFlags::PATH)
    }

    /// The seals that are set; none if it cannot be sealed.
    pub fn seals(&self) -> Seals {
        self.seals
            .as_ref()
            .map_or(Seals::empty(), |seals| seals.get())
    }

    /// The file of the tree, or `error` if it is something else.
    pub fn file(&self, error: Errno) -> Result<&Rc<dyn File>, Errno> {
        match &self.object {
            Object::File(file) => Ok(file),
            Object::Stream(_) => Err(error),
        }
    }
}

#[derive(Clone)]
struct Descriptor {
    description: Rc<Description>,
    close_on_exec: bool,
}

/// The descriptor table of a program.
pub struct Descriptors {
    entries: RefCell<Vec<Option<Descriptor>>>,
    /// Soft RLIMIT_NOFILE.
    pub limit: Cell<u64>,
}

impl Default for Descriptors {
    fn default() -> Self {
        Descriptors {
            entries: RefCell::default(),
            limit: Cell::new(DESCRIPTORS_DEFAULT),
        }
    }
}

impl Descriptors {
    /// What `number` refers to.
    ///
    /// # Errors
    /// EBADF if it is not open.
    pub fn get(&self, number: i32) -> Result<Rc<Description>, Errno> {
        self.with(number, |descriptor| descriptor.description.clone())
    }

    /// What `number` refers to, if that is more than a handle (`O_PATH`).
    ///
    /// # Errors
    /// EBADF if it is not open, or only a handle.
    pub fn usable(&self, number: i32) -> Result<Rc<Description>, Errno> {
        let description = self.get(number)?;
        if description.is_handle() {
            Err(Errno::BADF)
        } else {
            Ok(description)
        }
    }

    /// Makes sure that `open` will find a free number.
    ///
    /// # Errors
    /// EMFILE if no number is free.
    pub fn check_free(&self) -> Result<(), Errno> {
        let limit = self.limit.get() as usize;
        let entries = self.entries.borrow();
        let taken = entries
            .iter()
            .take(limit)
            .filter(|entry| entry.is_some())
            .count();
        if taken < limit {
            Ok(())
        } else {
            Err(Errno::MFILE)
        }
    }

    /// Opens the lowest free number that is at least `from`.
    ///
    /// # Errors
    /// EINVAL if `from` is beyond the limit, EMFILE if no number is free.
    pub fn open_from(
        &self,
        from: i32,
        description: Rc<Description>,
        close_on_exec: bool,
    ) -> Result<i32, Errno> {
        let limit = self.limit.get() as usize;
        let from = usize::try_from(from).map_err(|_| Errno::INVAL)?;
        if from >= limit {
            return Err(if from == 0 {
                Errno::MFILE
            } else {
                Errno::INVAL
            });
        }
        let mut entries = self.entries.borrow_mut();
        let free = (from..entries.len()).find(|&index| entries[index].is_none());
        let number = free.unwrap_or(entries.len().max(from));
        if number >= limit {
            return Err(Errno::MFILE);
        }
        if number >= entries.len() {
            entries.resize(number + 1, None);
        }
        entries[number] = Some(Descriptor {
            description,
            close_on_exec,
        });
        Ok(number as i32)
    }

    /// Opens the lowest free number.
    ///
    /// # Errors
    /// EMFILE if no number is free.
    pub fn open(&self, description: Rc<Description>, close_on_exec: bool) -> Result<i32, Errno> {
        self.open_from(0, description, close_on_exec)
    }

    /// Opens `number` itself, closing what it referred to.
    ///
    /// # Errors
    /// EBADF if the number is beyond the limit.
    pub fn open_at(
        &self,
        number: i32,
        description: Rc<Description>,
        close_on_exec: bool,
    ) -> Result<(), Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        if index as u64 >= self.limit.get() {
            return Err(Errno::BADF);
        }
        let mut entries = self.entries.borrow_mut();
        if index >= entries.len() {
            entries.resize(index + 1, None);
        }
        entries[index] = Some(Descriptor {
            description,
            close_on_exec,
        });
        Ok(())
    }

    /// Closes `number`.
    ///
    /// # Errors
    /// EBADF if it is not open.
    pub fn close(&self, number: i32) -> Result<(), Errno> {
        let closed = usize::try_from(number).ok().and_then(|index| {
            self.entries
                .borrow_mut()
                .get_mut(index)
                .and_then(Option::take)
        });
        closed.map(drop).ok_or(Errno::BADF)
    }

    /// The close-on-exec flag of `number`.
    ///
    /// # Errors
    /// EBADF if it is not open.
    pub fn close_on_exec(&self, number: i32) -> Result<bool, Errno> {
        self.with(number, |descriptor| descriptor.close_on_exec)
    }

    /// Sets the close-on-exec flag of `number`.
    ///
    /// # Errors
    /// EBADF if it is not open.
    pub fn set_close_on_exec(&self, number: i32, close_on_exec: bool) -> Result<(), Errno> {
        self.with(number, |descriptor| {
            descriptor.close_on_exec = close_on_exec
        })
    }

    /// Closes what is to be closed when a new program image starts.
    pub fn close_for_exec(&self) {
        for entry in self.entries.borrow_mut().iter_mut() {
            entry.take_if(|descriptor| descriptor.close_on_exec);
        }
    }

    /// The open numbers, ascending.
    pub fn numbers(&self) -> Vec<i32> {
        let entries = self.entries.borrow();
        (0i32..)
            .zip(entries.iter())
            .filter(|(_, entry)| entry.is_some())
            .map(|(n, _)| n)
            .collect()
    }

    /// What is open, by ascending number.
    pub fn descriptions(&self) -> Vec<Rc<Description>> {
        let entries = self.entries.borrow();
        entries
            .iter()
            .flatten()
            .map(|entry| entry.description.clone())
            .collect()
    }

    fn with<T>(&self, number: i32, f: impl FnOnce(&mut Descriptor) -> T) -> Result<T, Errno> {
        let mut entries = self.entries.borrow_mut();
        let entry = usize::try_from(number)
            .ok()
            .and_then(|index| entries.get_mut(index));
        entry.and_then(Option::as_mut).map(f).ok_or(Errno::BADF)
    }
}
