//! Stops a processor from outside.

use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use agentrt_shim_abi::PAGE_SIZE;
use kvm_bindings::kvm_run;
use kvm_ioctls::VcpuFd;

use crate::vm::VmError;

/// The flag that makes the next KVM_RUN return at once (KVM API documentation, `immediate_exit`).
///
/// A signal that arrives during KVM_RUN makes it return, too; a handler that sets the flag closes
/// the gap before it. Its own mapping of the `kvm_run` page keeps the flag valid, and the kernel's
/// part of the virtual machine alive, for as long as this value lives.
pub struct ImmediateExit {
    page: NonNull<u8>,
}

// SAFETY: the page is only accessed through an atomic byte.
unsafe impl Send for ImmediateExit {}
// SAFETY: as above.
unsafe impl Sync for ImmediateExit {}

impl ImmediateExit {
    pub(crate) fn of(vcpu: &VcpuFd) -> Result<ImmediateExit, VmError> {
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE_SIZE as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                vcpu.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(VmError::RunPage(std::io::Error::last_os_error()));
        }
        match NonNull::new(page.cast()) {
            Some(page) => Ok(ImmediateExit { page }),
            None => Err(VmError::RunPage(std::io::ErrorKind::InvalidData.into())),
        }
    }

    /// Sets the flag. Async-signal-safe.
    pub fn set(&self) {
        let offset = std::mem::offset_of!(kvm_run, immediate_exit);
        // SAFETY: the offset lies in the mapped page, which lives as long as `self`; the kernel
        // reads the byte and nobody else accesses it but atomically or on the processor's thread
        // while KVM_RUN is not under way.
        unsafe { AtomicU8::from_ptr(self.page.as_ptr().add(offset)) }.store(1, Ordering::SeqCst);
    }
}

impl Drop for ImmediateExit {
    fn drop(&mut self) {
        // SAFETY: the page was mapped by `of` and nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE_SIZE as usize) };
    }
}
