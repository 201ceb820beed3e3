//! The program's memory as /proc shows it.

use std::fmt::Write as _;

use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vfs::MemoryUsage;

use super::Mm;
use super::area::{Area, Backing};

/// Most bytes of /proc/self/maps: room for as many areas as there may be with names of usual
/// length. What is beyond is left out.
const TEXT_MAX: usize = 16 << 20;

impl Mm {
    /// The text of /proc/self/maps (proc_pid_maps(5)).
    pub fn areas_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (start, area) in self.areas.iter() {
            if text.len() > TEXT_MAX {
                break;
            }
            let line_start = text.len();
            text.extend(area_line(start, area).into_bytes());
            let name = match &area.backing {
                Backing::File { file, .. } => file.location().path(),
                Backing::Anonymous => area.name.as_bytes().to_vec(),
            };
            if !name.is_empty() {
                // Names start at column 73, as on Linux.
                text.resize(text.len().max(line_start + 73), b' ');
                text.extend(name);
            }
            text.push(b'\n');
        }
        text
    }

    /// The numbers of /proc/self/status and /proc/meminfo.
    pub fn usage(&self) -> MemoryUsage {
        let memory = self.space.memory();
        let resident = self.space.resident_pages() * PAGE_SIZE;
        let sum = |wanted: fn(&Area) -> bool| -> u64 {
            self.areas
                .iter()
                .filter(|(_, area)| wanted(area))
                .map(|(start, area)| area.end - start)
                .sum()
        };
        MemoryUsage {
            total: memory.size(),
            free: memory.size().saturating_sub(resident),
            virtual_size: self.areas.size(),
            resident,
            resident_peak: resident,
            text: sum(|area| area.protection.execute),
            data: sum(|area| area.protection.write && !area.shared),
            stack: sum(|area| area.name == "[stack]"),
        }
    }
}

fn area_line(start: u64, area: &Area) -> String {
    let flag = |set: bool, letter: char| if set { letter } else { '-' };
    let (offset, device, inode) = match &area.backing {
        Backing::File { file, offset, .. } => {
            let stat = file.stat().unwrap_or_default();
            (*offset, stat.dev, stat.ino)
        }
        Backing::Anonymous => (0, 0, 0),
    };
    let mut line = String::new();
    let _ = write!(
        line,
        "{start:08x}-{:08x} {}{}{}{} {offset:08x} {:02x}:{:02x} {inode} ",
        area.end,
        flag(area.protection.read, 'r'),
        flag(area.protection.write, 'w'),
        flag(area.protection.execute, 'x'),
        if area.shared { 's' } else { 'p' },
        libc::major(device),
        libc::minor(device),
    );
    line
}
