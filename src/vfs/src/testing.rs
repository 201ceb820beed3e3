//! What the tests share: a process that looks at the tree, and short ways to use files.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use vm_memory::VolatileSlice;

use crate::{
    Config, CpuTime, FdView, File, Limit, Location, MemoryUsage, OpenFlags, Opened, ProcView,
    ResolveFlags, Result, Stat, Vfs,
};

pub(crate) struct TestView {
    pub(crate) cwd: Location,
    pub(crate) fds: BTreeMap<i32, FdView>,
    pub(crate) environ: Vec<u8>,
    /// How often `fd` was asked.
    pub(crate) fd_looks: Cell<usize>,
}

impl ProcView for TestView {
    fn pid(&self) -> i32 {
        7
    }
    fn ppid(&self) -> i32 {
        1
    }
    fn comm(&self) -> Vec<u8> {
        b"a b".to_vec()
    }
    fn cmdline(&self) -> Vec<u8> {
        b"python3\0-c\0".to_vec()
    }
    fn environ(&self) -> Vec<u8> {
        self.environ.clone()
    }
    fn auxv(&self) -> Vec<u8> {
        vec![0; 16]
    }
    fn exe(&self) -> Option<Location> {
        Some(self.cwd.clone())
    }
    fn cwd(&self) -> Location {
        self.cwd.clone()
    }
    fn umask(&self) -> u32 {
        0o22
    }
    fn fds(&self) -> Vec<i32> {
        self.fds.keys().copied().collect()
    }
    fn has_fd(&self, fd: i32) -> bool {
        self.fds.contains_key(&fd)
    }
    fn fd(&self, fd: i32) -> Option<FdView> {
        self.fd_looks.set(self.fd_looks.get() + 1);
        self.fds.get(&fd).cloned()
    }
    fn fd_stat(&self, fd: i32) -> Result<Stat> {
        let fd = self.fds.get(&fd).ok_or(Errno::BADF)?;
        match &fd.location {
            Some(place) => place.stat(self),
            None => Ok(Stat {
                mode: libc::S_IFIFO | 0o600,
                ..Stat::default()
            }),
        }
    }
    fn maps(&self) -> Vec<u8> {
        b"00400000-00402000 r-xp 00000000 00:15 5 /bin/x\n".to_vec()
    }
    fn memory(&self) -> MemoryUsage {
        MemoryUsage {
            total: 256 << 20,
            free: 128 << 20,
            virtual_size: 8192,
            ..MemoryUsage::default()
        }
    }
    fn cpu_time(&self) -> CpuTime {
        CpuTime::default()
    }
    fn start_time(&self) -> Duration {
        Duration::from_millis(20)
    }
    fn uptime(&self) -> Duration {
        Duration::from_secs(5)
    }
    fn limit(&self, _resource: u32) -> Limit {
        Limit::default()
    }
}

/// A tree and the process that uses it, with `/` as its current directory.
pub(crate) struct Guest {
    pub(crate) vfs: Vfs,
    pub(crate) view: TestView,
}

impl Guest {
    pub(crate) fn new(config: Config) -> Guest {
        let vfs = Vfs::new(config).unwrap();
        let cwd = vfs.root();
        let view = TestView {
            cwd,
            fds: BTreeMap::new(),
            environ: b"HOME=/root\0".to_vec(),
            fd_looks: Cell::new(0),
        };
        Guest { vfs, view }
    }

    pub(crate) fn on(image: &Path) -> Guest {
        Guest::new(Config::new(image))
    }

    pub(crate) fn open_raw(
        &mut self,
        path: &str,
        flags: i32,
        resolve: ResolveFlags,
    ) -> Result<Opened> {
        let flags = OpenFlags::from_bits_retain(flags as u32);
        let base = self.view.cwd.clone();
        self.vfs
            .open(&self.view, &base, path.as_bytes(), flags, 0o644, resolve)
    }

    pub(crate) fn open(&mut self, path: &str, flags: i32) -> Result<Box<dyn File>> {
        match self.open_raw(path, flags, ResolveFlags::empty())? {
            Opened::File(file) => Ok(file),
            Opened::Descriptor(_) | Opened::Terminal => Err(Errno::NOTTY),
        }
    }

    pub(crate) fn write(&mut self, path: &str, text: &str) -> Result<()> {
        let file = self.open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC)?;
        write(&*file, 0, text.as_bytes()).map(drop)
    }

    pub(crate) fn read(&mut self, path: &str) -> Result<String> {
        let file = self.open(path, libc::O_RDONLY)?;
        Ok(String::from_utf8_lossy(&read_all(&*file)?).into_owned())
    }

    pub(crate) fn stat(&mut self, path: &str) -> Result<Stat> {
        let base = self.view.cwd.clone();
        self.vfs.stat(&self.view, &base, path.as_bytes(), true)
    }

    pub(crate) fn lstat(&mut self, path: &str) -> Result<Stat> {
        let base = self.view.cwd.clone();
        self.vfs.stat(&self.view, &base, path.as_bytes(), false)
    }

    pub(crate) fn find(&mut self, path: &str) -> Result<Location> {
        let base = self.view.cwd.clone();
        self.vfs.lookup(&self.view, &base, path.as_bytes(), false)
    }

    pub(crate) fn readlink(&mut self, path: &str) -> Result<String> {
        let base = self.view.cwd.clone();
        let text = self.vfs.readlink(&self.view, &base, path.as_bytes())?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub(crate) fn mkdir(&mut self, path: &str) -> Result<()> {
        let base = self.view.cwd.clone();
        self.vfs.mkdir(&self.view, &base, path.as_bytes(), 0o755)
    }

    pub(crate) fn rmdir(&mut self, path: &str) -> Result<()> {
        let base = self.view.cwd.clone();
        self.vfs.rmdir(&self.view, &base, path.as_bytes())
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Result<()> {
        let base = self.view.cwd.clone();
        self.vfs.unlink(&self.view, &base, path.as_bytes())
    }

    pub(crate) fn symlink(&mut self, target: &str, path: &str) -> Result<()> {
        let base = self.view.cwd.clone();
        self.vfs
            .symlink(&self.view, target.as_bytes(), &base, path.as_bytes())
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) -> Result<()> {
        let from = self.find(from)?;
        let base = self.view.cwd.clone();
        self.vfs.link(&self.view, &from, &base, to.as_bytes())
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.rename_with(from, to, 0)
    }

    pub(crate) fn rename_with(&mut self, from: &str, to: &str, flags: u32) -> Result<()> {
        let base = self.view.cwd.clone();
        let flags = crate::RenameFlags::from_bits_retain(flags);
        let (from, to) = ((&base, from.as_bytes()), (&base, to.as_bytes()));
        self.vfs.rename(&self.view, from, to, flags)
    }

    /// Names in the order of the listing, `.` and `..` left out.
    pub(crate) fn list(&mut self, path: &str) -> Result<Vec<String>> {
        let directory = self.open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let names = entries(&*directory, 0)?.into_iter().map(|(name, _)| name);
        Ok(names.filter(|name| name != "." && name != "..").collect())
    }

    /// Opens what was opened as descriptor `fd` of the process.
    pub(crate) fn give_fd(&mut self, fd: i32, location: Option<Location>, link: &str) {
        let view = FdView {
            link: link.as_bytes().to_vec(),
            location,
            flags: 0,
            offset: 0,
        };
        self.view.fds.insert(fd, view);
    }
}

pub(crate) fn entries(directory: &dyn File, cookie: u64) -> Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    directory.read_dir(cookie, &mut |entry| {
        found.push((String::from_utf8_lossy(entry.name).into_owned(), entry.next));
        true
    })?;
    Ok(found)
}

pub(crate) fn write(file: &dyn File, offset: u64, bytes: &[u8]) -> Result<usize> {
    let mut bytes = bytes.to_vec();
    file.write_at(offset, &[VolatileSlice::from(&mut bytes[..])])
}

pub(crate) fn read(file: &dyn File, offset: u64, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0xaa; count];
    let count = file.read_at(offset, &[VolatileSlice::from(&mut bytes[..])])?;
    bytes.truncate(count);
    Ok(bytes)
}

pub(crate) fn read_all(file: &dyn File) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let part = read(file, all.len() as u64, 1 << 16)?;
        if part.is_empty() {
            return Ok(all);
        }
        all.extend(part);
    }
}
