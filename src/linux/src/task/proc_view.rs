//! How /proc shows the process.

use std::time::Duration;

use agentrt_vfs::{
    CpuTime, FdView, Limit, Location, MemoryUsage, OpenFlags, ProcView, Result, Stat,
};
use rustix::fs::SeekFrom;

use super::{FIRST_PID, Task};
use crate::descriptor::Object;

impl ProcView for Task {
    fn pid(&self) -> i32 {
        FIRST_PID
    }

    fn ppid(&self) -> i32 {
        0
    }

    fn comm(&self) -> Vec<u8> {
        self.program.comm.clone()
    }

    fn cmdline(&self) -> Vec<u8> {
        self.program.cmdline.clone()
    }

    fn environ(&self) -> Vec<u8> {
        self.program.environ.clone()
    }

    fn auxv(&self) -> Vec<u8> {
        self.program.auxv.clone()
    }

    fn exe(&self) -> Option<Location> {
        Some(self.program.exe.clone())
    }

    fn cwd(&self) -> Location {
        self.cwd.clone()
    }

    fn umask(&self) -> u32 {
        self.umask
    }

    fn fds(&self) -> Vec<i32> {
        self.descriptors.numbers()
    }

    fn has_fd(&self, fd: i32) -> bool {
        self.descriptors.get(fd).is_ok()
    }

    fn fd(&self, fd: i32) -> Option<FdView> {
        let description = self.descriptors.get(fd).ok()?;
        let (link, location, offset) = match &description.object {
            Object::File(file) => {
                let location = Some(file.location().clone());
                (Vec::new(), location, description.offset.get())
            }
            Object::Stream(stream) => {
                let offset = stream.seek(SeekFrom::Current(0)).unwrap_or(0);
                (stream.link(), None, offset)
            }
        };
        let mut flags = description.flags.get();
        flags.set(OpenFlags::CLOEXEC, self.descriptors.close_on_exec(fd).ok()?);
        Some(FdView {
            link,
            location,
            flags: flags.bits(),
            offset,
        })
    }

    fn fd_stat(&self, fd: i32) -> Result<Stat> {
        self.descriptors.get(fd)?.stat()
    }

    fn maps(&self) -> Vec<u8> {
        self.mm.areas_text()
    }

    fn memory(&self) -> MemoryUsage {
        self.mm.usage()
    }

    fn cpu_time(&self) -> CpuTime {
        self.used_cpu_time()
    }

    fn start_time(&self) -> Duration {
        Duration::ZERO
    }

    fn uptime(&self) -> Duration {
        Task::uptime(self)
    }

    fn limit(&self, resource: u32) -> Limit {
        self.limits.get(resource)
    }
}
