//! The arguments of a syscall, typed as its handler reads them.

use agentrt_vmm::Syscall;

/// The arguments of one syscall. Values are as the program left them: nothing is checked here.
#[derive(Clone, Copy, Debug)]
pub struct Arguments(pub [u64; 6]);

impl Arguments {
    /// The arguments of `call`.
    pub fn of(call: &Syscall) -> Arguments {
        Arguments(call.arguments)
    }

    /// Argument `index` (0 to 5) as an address in the program's memory.
    pub fn address(&self, index: usize) -> u64 {
        self.0[index]
    }

    /// As a length, count or other unsigned 64-bit number.
    pub fn u64(&self, index: usize) -> u64 {
        self.0[index]
    }

    /// As a signed 64-bit number, such as a file offset.
    pub fn i64(&self, index: usize) -> i64 {
        self.0[index] as i64
    }

    /// As an unsigned 32-bit number: Linux ignores the upper half of such arguments.
    pub fn u32(&self, index: usize) -> u32 {
        self.0[index] as u32
    }

    /// As a signed 32-bit number, such as a descriptor.
    pub fn i32(&self, index: usize) -> i32 {
        self.0[index] as i32
    }
}
