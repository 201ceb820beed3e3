//! The guest's time stamp counter.
//!
//! Under PVM ring 3 runs natively and reads the host's own counter. Hardware adds an offset, by
//! which KVM lets a new processor's counter begin at zero; it can be set since Linux 5.16 (KVM API
//! documentation, KVM_VCPU_TSC_CTRL). Before that it can only be guessed.

use std::os::fd::AsRawFd;

use kvm_bindings::{KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET, kvm_device_attr};
use kvm_ioctls::VcpuFd;

use crate::platform::Platform;

/// `_IOW(KVMIO, 0xe1, struct kvm_device_attr)` (linux/kvm.h).
const KVM_SET_DEVICE_ATTR: libc::Ioctl = 0x4018_aee1;

/// Makes a new processor's counter equal to the host's; false if it cannot be.
pub(crate) fn adopt_hosts(vcpu: &VcpuFd, platform: Platform) -> bool {
    match platform {
        Platform::Pvm => true,
        Platform::Hardware { .. } => clear_offset(vcpu),
    }
}

fn clear_offset(vcpu: &VcpuFd) -> bool {
    let offset = 0u64;
    let attribute = kvm_device_attr {
        group: KVM_VCPU_TSC_CTRL,
        attr: KVM_VCPU_TSC_OFFSET.into(),
        addr: &raw const offset as u64,
        flags: 0,
    };
    // SAFETY: the descriptor is a processor's, and the request reads the structure and the eight
    // bytes that it points to; both live until it returns.
    unsafe { libc::ioctl(vcpu.as_raw_fd(), KVM_SET_DEVICE_ATTR, &raw const attribute) == 0 }
}
