//! What differs between the kinds of KVM, in one place.
//!
//! - **PVM** implements KVM in software with shadow page tables. Ring 3 runs natively, ring 0 is
//!   emulated. A `syscall` in ring 3 jumps to MSR_LSTAR *staying in ring 3*, so LSTAR names the
//!   shim itself. `int3` with its ring-0 stub is the cheapest way out; CPUID in ring 3 shows the
//!   host's leaves, whatever KVM was told.
//! - **Hardware** (VMX, SVM): `syscall` enters ring 0, so LSTAR names a stub that bounces to the
//!   shim in ring 3. `out` from ring 3 through the TSS's I/O permission bitmap is the cheapest way
//!   out. CPUID leaves are filtered.

use std::arch::x86_64::__cpuid;

use agentrt_shim::ExitInstruction;
use agentrt_shim_abi::ENTRY_LSTAR;
use kvm_bindings::kvm_cpuid_entry2;

use crate::ring0;

/// A kind of KVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// KVM in software, without virtualisation extensions.
    Pvm,
    /// KVM on VMX or SVM.
    Hardware {
        /// The processor is itself emulated by QEMU's TCG, which lets `out` through the I/O bitmap
        /// only where the TSS is typed "available"; processors want "busy" (SDM vol. 3C, 27.3.1.2).
        emulated: bool,
    },
}

/// TSS descriptor types (SDM vol. 3A, table 3-2).
const TSS_AVAILABLE: u8 = 9;
const TSS_BUSY: u8 = 11;

impl Platform {
    /// The kind of this host's KVM: hardware if its processor has VMX or SVM, else PVM.
    pub fn detect() -> Platform {
        // CPUID.1:ECX[5] is VMX (SDM vol. 2A, CPUID), CPUID.8000_0001h:ECX[2] SVM (APM vol. 3, E.4.2).
        let vmx = __cpuid(1).ecx & (1 << 5) != 0;
        let svm = __cpuid(0x8000_0001).ecx & (1 << 2) != 0;
        if vmx || svm {
            Platform::Hardware {
                emulated: hypervisor_signature() == *b"TCGTCGTCGTCG",
            }
        } else {
            Platform::Pvm
        }
    }

    /// The instruction by which the shim leaves the VM.
    pub fn exit_instruction(self) -> ExitInstruction {
        match self {
            Platform::Pvm => ExitInstruction::Breakpoint,
            Platform::Hardware { .. } => ExitInstruction::Out,
        }
    }

    /// Where a `syscall` instruction of the program lands.
    pub(crate) fn syscall_target(self) -> u64 {
        match self {
            Platform::Pvm => ENTRY_LSTAR,
            Platform::Hardware { .. } => ring0::SYSCALL_BOUNCE,
        }
    }

    /// Type of the task state segment in TR.
    pub(crate) fn tss_type(self) -> u8 {
        match self {
            Platform::Hardware { emulated: true } => TSS_AVAILABLE,
            _ => TSS_BUSY,
        }
    }

    /// Takes out of the CPUID leaves what a guest has no use for. PVM cannot mask CPUID in ring 3,
    /// so there the leaves only tell KVM what the guest may use.
    pub(crate) fn filter_cpuid(self, entries: &mut [kvm_cpuid_entry2]) {
        if self == Platform::Pvm {
            return;
        }
        for entry in entries {
            match (entry.function, entry.index) {
                // VMX, x2APIC, PCID and TSC-deadline: privileged, all of them.
                (1, _) => entry.ecx &= !(1 << 5 | 1 << 17 | 1 << 21 | 1 << 24),
                // Leaf 7: no protection keys (CR4.PKE stays off) and no shadow stacks.
                (7, 0) => entry.ecx &= !(1 << 3 | 1 << 4 | 1 << 7),
                // SVM.
                (0x8000_0001, _) => entry.ecx &= !(1 << 2),
                // No hypervisor leaves: agents get no paravirtual interfaces.
                (0x4000_0000..=0x4fff_ffff, _) => {
                    (entry.eax, entry.ebx, entry.ecx, entry.edx) = (0, 0, 0, 0);
                }
                _ => {}
            }
        }
    }
}

fn hypervisor_signature() -> [u8; 12] {
    // CPUID.1:ECX[31] tells that the hypervisor leaves exist (kernel doc virt/kvm/x86/cpuid).
    if __cpuid(1).ecx & (1 << 31) == 0 {
        return [0; 12];
    }
    let leaf = __cpuid(0x4000_0000);
    let mut signature = [0; 12];
    for (bytes, register) in signature
        .chunks_exact_mut(4)
        .zip([leaf.ebx, leaf.ecx, leaf.edx])
    {
        bytes.copy_from_slice(&register.to_le_bytes());
    }
    signature
}
