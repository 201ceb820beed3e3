//! The host's reads and writes of the program's memory, with the program's own rights.

use agentrt_shim_abi::PAGE_SIZE;
use agentrt_vmm::Protection;
use rustix::io::Errno;
use vm_memory::VolatileSlice;

use super::Mm;

/// Most bytes that [`Mm::slices`] hands out at once.
pub const TRANSFER_MAX: usize = 1 << 20;

/// What the host does with the program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The host reads it.
    Read,
    /// The host writes it.
    Write,
}

impl Access {
    fn needed(self) -> Protection {
        match self {
            Access::Read => Protection::READ,
            Access::Write => Protection::READ_WRITE,
        }
    }
}

impl Mm {
    /// Copies from the program's memory.
    ///
    /// # Errors
    /// EFAULT if the program could not read all of it.
    pub fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < buffer.len() {
            let position = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
            let slice = self.page_part(position, buffer.len() - done, Access::Read)?;
            done += slice.copy_to(&mut buffer[done..]);
        }
        Ok(())
    }

    /// Copies to the program's memory.
    ///
    /// # Errors
    /// EFAULT if the program could not write all of it; some may have been written.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let position = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
            let slice = self.page_part(position, bytes.len() - done, Access::Write)?;
            slice.copy_from(&bytes[done..]);
            done += slice.len();
        }
        Ok(())
    }

    /// Reads an array of numbers of the machine's byte order.
    ///
    /// # Errors
    /// EFAULT.
    pub fn read_u64s<const N: usize>(&mut self, address: u64) -> Result<[u64; N], Errno> {
        let mut words = [0; N];
        let mut bytes = [0; 8];
        for (index, word) in words.iter_mut().enumerate() {
            let position = address.checked_add(index as u64 * 8).ok_or(Errno::FAULT)?;
            self.read(position, &mut bytes)?;
            *word = u64::from_ne_bytes(bytes);
        }
        Ok(words)
    }

    /// Reads a string up to its NUL, which is left out.
    ///
    /// # Errors
    /// EFAULT; ENAMETOOLONG if there is no NUL in the first `max` bytes.
    pub fn read_string(&mut self, address: u64, max: usize) -> Result<Vec<u8>, Errno> {
        let mut string = Vec::new();
        while string.len() < max {
            let position = address
                .checked_add(string.len() as u64)
                .ok_or(Errno::FAULT)?;
            let slice = self.page_part(position, max - string.len(), Access::Read)?;
            let old = string.len();
            string.resize(old + slice.len(), 0);
            slice.copy_to(&mut string[old..]);
            if let Some(end) = string[old..].iter().position(|&byte| byte == 0) {
                string.truncate(old + end);
                return Ok(string);
            }
        }
        Err(Errno::NAMETOOLONG)
    }

    /// The program's memory from `address` on, for the host to read or write in place. Shorter
    /// than `length` if a later part is not accessible or at [`TRANSFER_MAX`].
    ///
    /// # Errors
    /// EFAULT if the first byte is not accessible.
    pub fn slices(
        &mut self,
        address: u64,
        length: usize,
        access: Access,
    ) -> Result<Vec<VolatileSlice<'_>>, Errno> {
        let length = length.min(TRANSFER_MAX);
        let mut accessible = 0;
        while accessible < length {
            let position = address.checked_add(accessible as u64).ok_or(Errno::FAULT)?;
            match self.page_part(position, length - accessible, access) {
                Ok(slice) => accessible += slice.len(),
                Err(_) if accessible > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if self.collect(address, accessible)?.is_empty() && length > 0 {
            // Memory is so short that bringing in the later pages took the first one back.
            return Ok(vec![self.page_part(address, length, access)?]);
        }
        self.collect(address, accessible)
    }

    /// Slices of the pages that are there, up to the first that is not; neighbours in one.
    fn collect(&self, address: u64, length: usize) -> Result<Vec<VolatileSlice<'_>>, Errno> {
        let mut runs: Vec<(u64, usize)> = Vec::new();
        let mut done = 0;
        while done < length {
            let position = address + done as u64;
            let Some((physical, _)) = self.space.translate(position) else {
                break;
            };
            let part = (length - done).min((PAGE_SIZE - position % PAGE_SIZE) as usize);
            match runs.last_mut() {
                Some((start, size)) if *start + *size as u64 == physical => *size += part,
                _ => runs.push((physical, part)),
            }
            done += part;
        }
        let memory = self.space.memory();
        runs.into_iter()
            .map(|(start, size)| memory.slice(start, size).ok_or(Errno::FAULT))
            .collect()
    }

    /// What of `length` bytes from `address` on lies in one page, brought in if need be.
    fn page_part(
        &mut self,
        address: u64,
        length: usize,
        access: Access,
    ) -> Result<VolatileSlice<'_>, Errno> {
        self.fault(address, access.needed())
            .map_err(|_| Errno::FAULT)?;
        self.space.slice(address, length).ok_or(Errno::FAULT)
    }
}
