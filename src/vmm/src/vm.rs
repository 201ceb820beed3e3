//! Puts a virtual machine together: memory, address space, ring-0 area, shim, vDSO, processor.

use agentrt_shim_abi::{PAGE_SIZE, RING0_BASE, SHIM_BASE};
use kvm_ioctls::Kvm;

use crate::address_space::AddressSpace;
use crate::memory::{GuestMemory, MEMORY_RANGE, OutOfMemory};
use crate::page_table::{Owner, Protection};
use crate::platform::Platform;
use crate::ring0;
use crate::vcpu::{Exit, Vcpu};
use crate::vdso::{self, TimePagePlace};

/// Why a virtual machine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// /dev/kvm cannot be opened.
    #[error("cannot open /dev/kvm: {0}; `agentrt doctor` tells what is missing and how to get it")]
    Open(kvm_ioctls::Error),
    /// KVM made no virtual machine.
    #[error("KVM_CREATE_VM failed: {0}")]
    Create(kvm_ioctls::Error),
    /// The size of the memory is out of range.
    #[error(
        "guest memory of {0} bytes is out of range: give {low} to {high} bytes",
        low = MEMORY_RANGE.start(),
        high = MEMORY_RANGE.end()
    )]
    MemorySize(u64),
    /// The host refused the mapping for the guest's memory.
    #[error("cannot reserve guest memory: {0}; give less memory or raise vm.max_map_count")]
    Memory(vm_memory::mmap::MmapRegionError),
    /// KVM refused a memslot.
    #[error("KVM_SET_USER_MEMORY_REGION failed: {0}")]
    Memslot(kvm_ioctls::Error),
    /// The memory is too small even for an empty guest.
    #[error("guest memory is too small: {0}")]
    TooSmall(#[from] OutOfMemory),
    /// KVM made no virtual processor.
    #[error("KVM_CREATE_VCPU failed: {0}")]
    Vcpu(kvm_ioctls::Error),
    /// KVM refused the CPUID leaves.
    #[error("KVM refused the guest's CPUID leaves: {0}")]
    Cpuid(kvm_ioctls::Error),
    /// KVM refused registers.
    #[error("KVM refused the guest's registers: {0}")]
    Registers(kvm_ioctls::Error),
    /// The page that a processor shares with its thread cannot be mapped.
    #[error("cannot map the virtual processor's page: {0}")]
    RunPage(std::io::Error),
    /// KVM refused the MSRs that `syscall` needs.
    #[error("KVM refused MSR_STAR, MSR_LSTAR or MSR_FMASK")]
    Msrs,
}

/// A virtual machine with nothing in it but the shim and the vDSO.
pub struct Vm {
    /// The guest's address space.
    pub space: AddressSpace,
    /// The guest's processor.
    pub vcpu: Vcpu,
    /// Where the vDSO reads the time.
    pub time_page: TimePagePlace,
}

impl Vm {
    /// Makes a virtual machine with `memory` bytes.
    ///
    /// # Errors
    /// The step that failed.
    pub fn new(memory: u64) -> Result<Vm, VmError> {
        let kvm = Kvm::new().map_err(VmError::Open)?;
        let platform = Platform::detect();
        let vm = kvm.create_vm().map_err(VmError::Create)?;
        let mut space = AddressSpace::new(GuestMemory::new(vm, memory)?)?;
        let ring0 = space.map_new(
            RING0_BASE,
            ring0::PAGES,
            Protection {
                read: true,
                write: true,
                execute: true,
            },
            Owner::Supervisor,
        )?;
        ring0::install(space.memory(), ring0.start, platform);
        let shim = space.map_new(SHIM_BASE, 1, Protection::READ_EXECUTE, Owner::Program)?;
        let text = agentrt_shim::text(platform.exit_instruction());
        debug_assert!(text.len() <= PAGE_SIZE as usize);
        if let Some(slice) = space.memory().slice(shim.start, text.len()) {
            slice.copy_from(text);
        }
        let time_page = vdso::install(&mut space)?;
        let vcpu = Vcpu::new(
            &kvm,
            space.memory().vm(),
            platform,
            space.root(),
            ring0.start,
        )?;
        Ok(Vm {
            space,
            vcpu,
            time_page,
        })
    }

    /// Runs the guest until it stops.
    pub fn run(&mut self) -> Exit {
        self.vcpu.run(self.space.memory())
    }

    /// Starts a program image.
    pub fn start(&mut self, instruction_pointer: u64, stack_pointer: u64) {
        self.vcpu
            .start(self.space.memory(), instruction_pointer, stack_pointer);
    }
}

#[cfg(test)]
mod tests;
