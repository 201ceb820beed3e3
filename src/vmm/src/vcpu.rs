//! Runs a guest and decodes why it stopped.
//!
//! Registers come and go in the shared `kvm_run` page (KVM_CAP_SYNC_REGS), so a syscall costs one
//! KVM_RUN and no further ioctl.
//!
//! The guest stops in one of two places: in a ring-0 stub, with the frame of the exception on the
//! ring-0 stack; or in ring 3 at the shim's `out` (hardware only). [`Vcpu`] hides which.

use agentrt_shim_abi::{ENTRY_LSTAR, ENTRY_PATCHED, SYSCALL_PORT};
use kvm_bindings::{
    CpuId, KVM_MAX_CPUID_ENTRIES, Msrs, kvm_msr_entry, kvm_regs, kvm_segment, kvm_sregs, kvm_xcrs,
};
use kvm_ioctls::{Kvm, SyncReg, VcpuExit, VcpuFd, VmFd};

use crate::immediate_exit::ImmediateExit;
use crate::memory::GuestMemory;
use crate::platform::Platform;
use crate::ring0::{self, frame};
use crate::tsc;
use crate::vm::VmError;

/// Why the guest stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program made a syscall; [`Vcpu::answer`] it.
    Syscall(Syscall),
    /// The program caused an exception; running again repeats the instruction.
    Exception(Exception),
    /// The host asked for it: a signal arrived, or the immediate-exit flag was set.
    Interrupted,
    /// The VM cannot go on.
    Failed(Failure),
}

/// A syscall as the program made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// Number (`rax`).
    pub number: u64,
    /// Arguments (`rdi`, `rsi`, `rdx`, `r10`, `r8`, `r9`).
    pub arguments: [u64; 6],
    /// Address behind the `syscall` instruction (`rcx`); the program may have forged it.
    pub return_address: u64,
    /// How the call reached the shim.
    pub route: Route,
}

/// How a syscall reached the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through the trampoline of a rewritten site.
    Patched,
    /// Through MSR_LSTAR, from a `syscall` instruction.
    Trapped,
}

/// A processor exception in ring 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Vector (SDM vol. 3A, table 6-1), below 32.
    pub vector: u8,
    /// Error code, 0 for vectors without one.
    pub error_code: u64,
    /// Faulting address (CR2), meaningful for page faults only.
    pub address: u64,
    /// Instruction pointer.
    pub instruction_pointer: u64,
    /// Stack pointer.
    pub stack_pointer: u64,
}

/// Why a VM cannot go on. None of these is in reach of a program that KVM serves correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An exception inside a ring-0 stub.
    #[error("exception {0} in ring 0")]
    Ring0Exception(u8),
    /// The processor met an exception that it could not deliver.
    #[error("the virtual processor shut down (triple fault)")]
    Shutdown,
    /// KVM could not emulate an instruction or failed otherwise.
    #[error("KVM internal error")]
    Internal,
    /// KVM left the guest for a reason that agentrt never asks for.
    #[error("unexpected KVM exit")]
    UnexpectedExit,
    /// KVM_RUN itself failed.
    #[error("KVM_RUN failed with errno {0}")]
    Run(i32),
}

/// Where the guest is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// In a ring-0 stub: what the program sees is in the frame.
    InStub,
    /// In ring 3: what the program sees is in the registers.
    InRing3,
}

/// The one virtual processor of a guest.
pub struct Vcpu {
    fd: VcpuFd,
    ring0: u64,
    stopped: Stopped,
    platform: Platform,
    exit_length: u64,
    tsc_is_hosts: bool,
}

impl Vcpu {
    /// Creates the processor: 64-bit mode, ring 3, page tables at `root`, ring-0 area at
    /// guest-physical `ring0`.
    ///
    /// # Errors
    /// The step that KVM refused.
    pub(crate) fn new(
        kvm: &Kvm,
        vm: &VmFd,
        platform: Platform,
        root: u64,
        ring0: u64,
    ) -> Result<Vcpu, VmError> {
        let mut fd = vm.create_vcpu(0).map_err(VmError::Vcpu)?;
        let mut cpuid = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(VmError::Cpuid)?;
        platform.filter_cpuid(cpuid.as_mut_slice());
        fd.set_cpuid2(&cpuid).map_err(VmError::Cpuid)?;
        let tsc_is_hosts = tsc::adopt_hosts(&fd, platform);
        let mut sregs = fd.get_sregs().map_err(VmError::Registers)?;
        set_system_registers(&mut sregs, platform, root);
        fd.set_sregs(&sregs).map_err(VmError::Registers)?;
        // KVM fills the shared page when the guest stops; until then it holds nothing.
        fd.sync_regs_mut().sregs = sregs;
        set_msrs(&fd, platform)?;
        set_xcr0(&cpuid, &fd)?;
        fd.set_sync_valid_reg(SyncReg::Register);
        fd.set_sync_valid_reg(SyncReg::SystemRegister);
        let exit_length = agentrt_shim::exit_length(platform.exit_instruction());
        Ok(Vcpu {
            fd,
            ring0,
            stopped: Stopped::InRing3,
            platform,
            exit_length,
            tsc_is_hosts,
        })
    }

    /// Sets the program's registers as at the start of a program image: all general registers
    /// zero, FS and GS bases zero.
    pub fn start(&mut self, memory: &GuestMemory, instruction_pointer: u64, stack_pointer: u64) {
        self.set_fs_base(0);
        self.set_gs_base(0);
        match self.stopped {
            Stopped::InRing3 => {
                let regs = kvm_regs {
                    rip: instruction_pointer,
                    rsp: stack_pointer,
                    rflags: ring0::USER_FLAGS,
                    ..Default::default()
                };
                self.fd.sync_regs_mut().regs = regs;
            }
            Stopped::InStub => {
                memory.store(self.ring0 + frame::INSTRUCTION_POINTER, instruction_pointer);
                memory.store(self.ring0 + frame::STACK_POINTER, stack_pointer);
                memory.store(self.ring0 + frame::FLAGS, ring0::USER_FLAGS);
                let old = self.fd.sync_regs().regs;
                self.fd.sync_regs_mut().regs = kvm_regs {
                    rip: old.rip,
                    rsp: old.rsp,
                    rflags: old.rflags,
                    ..Default::default()
                };
            }
        }
        self.fd.set_sync_dirty_reg(SyncReg::Register);
    }

    /// Runs the guest until it stops.
    pub fn run(&mut self, memory: &GuestMemory) -> Exit {
        let port = match self.fd.run() {
            Ok(VcpuExit::IoOut(port, _)) => port,
            Ok(VcpuExit::IoIn(..)) => return self.forbidden_input(),
            Ok(VcpuExit::Intr) => return self.interrupted(),
            Ok(VcpuExit::Shutdown) => return Exit::Failed(Failure::Shutdown),
            Ok(VcpuExit::InternalError) => return Exit::Failed(Failure::Internal),
            Ok(_) => return Exit::Failed(Failure::UnexpectedExit),
            Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => {
                return self.interrupted();
            }
            Err(error) => return Exit::Failed(Failure::Run(error.errno())),
        };
        self.clear_dirty();
        if port == SYSCALL_PORT {
            self.stopped = Stopped::InRing3;
            let instruction_pointer = self.fd.sync_regs().regs.rip;
            // The exit leaves RIP at the `out` or behind it, as the KVM version pleases.
            let entry = [ENTRY_PATCHED, ENTRY_PATCHED + self.exit_length];
            return self.syscall(entry.contains(&instruction_pointer));
        }
        self.stopped = Stopped::InStub;
        self.exception(memory, port)
    }

    /// Answers the syscall that the guest is stopped at.
    pub fn answer(&mut self, result: i64) {
        self.fd.sync_regs_mut().regs.rax = result as u64;
        self.fd.set_sync_dirty_reg(SyncReg::Register);
    }

    /// The base of FS, which holds the thread pointer.
    pub fn fs_base(&self) -> u64 {
        self.fd.sync_regs().sregs.fs.base
    }

    /// Sets the base of FS.
    pub fn set_fs_base(&mut self, base: u64) {
        self.system_registers().fs.base = base;
    }

    /// The base of GS.
    pub fn gs_base(&self) -> u64 {
        self.fd.sync_regs().sregs.gs.base
    }

    /// Sets the base of GS.
    pub fn set_gs_base(&mut self, base: u64) {
        self.system_registers().gs.base = base;
    }

    /// The system registers, to be changed: all of them are set anew at the next run.
    fn system_registers(&mut self) -> &mut kvm_sregs {
        self.fd.set_sync_dirty_reg(SyncReg::SystemRegister);
        let platform = self.platform;
        let sregs = &mut self.fd.sync_regs_mut().sregs;
        // KVM shows a task register that is always busy (`svm_get_segment` in Linux).
        sregs.tr.type_ = platform.tss_type();
        sregs
    }

    /// What makes the next [`Vcpu::run`] return [`Exit::Interrupted`].
    ///
    /// # Errors
    /// If its page cannot be mapped.
    pub fn immediate_exit(&self) -> Result<ImmediateExit, VmError> {
        ImmediateExit::of(&self.fd)
    }

    /// Does `rdtsc` in the guest read what it reads on the host?
    pub fn tsc_is_hosts(&self) -> bool {
        self.tsc_is_hosts
    }

    fn interrupted(&mut self) -> Exit {
        self.fd.set_kvm_immediate_exit(0);
        Exit::Interrupted
    }

    /// No stub reads a port: the program did, and it may only write to the one port that the I/O
    /// bitmap opens to it. Anywhere else it would have met a general protection fault (vector 13).
    fn forbidden_input(&mut self) -> Exit {
        self.clear_dirty();
        self.stopped = Stopped::InRing3;
        let regs = self.fd.sync_regs().regs;
        Exit::Exception(Exception {
            vector: 13,
            error_code: 0,
            address: 0,
            instruction_pointer: regs.rip,
            stack_pointer: regs.rsp,
        })
    }

    fn clear_dirty(&mut self) {
        self.fd.clear_sync_dirty_reg(SyncReg::Register);
        self.fd.clear_sync_dirty_reg(SyncReg::SystemRegister);
    }

    fn syscall(&self, patched: bool) -> Exit {
        let regs = self.fd.sync_regs().regs;
        Exit::Syscall(Syscall {
            number: regs.rax,
            arguments: [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9],
            return_address: regs.rcx,
            route: if patched {
                Route::Patched
            } else {
                Route::Trapped
            },
        })
    }

    fn exception(&self, memory: &GuestMemory, port: u16) -> Exit {
        let vector = port as u8;
        let word = |offset| memory.load(self.ring0 + offset);
        if port >= u16::from(ring0::VECTORS) {
            return Exit::Failed(Failure::UnexpectedExit);
        }
        if word(frame::CODE_SEGMENT) & 3 != 3 {
            return Exit::Failed(Failure::Ring0Exception(vector));
        }
        let instruction_pointer = word(frame::INSTRUCTION_POINTER);
        if vector == 3 && self.platform == Platform::Pvm {
            let entry = instruction_pointer.wrapping_sub(self.exit_length);
            if entry == ENTRY_PATCHED || entry == ENTRY_LSTAR {
                return self.syscall(entry == ENTRY_PATCHED);
            }
        }
        let error_code = if ring0::has_error_code(vector) {
            word(frame::ERROR_CODE)
        } else {
            0
        };
        Exit::Exception(Exception {
            vector,
            error_code,
            address: self.fd.sync_regs().sregs.cr2,
            instruction_pointer,
            stack_pointer: word(frame::STACK_POINTER),
        })
    }
}

fn set_system_registers(sregs: &mut kvm_sregs, platform: Platform, root: u64) {
    let flat = kvm_segment {
        limit: 0xffff_ffff,
        present: 1,
        dpl: 3,
        s: 1,
        g: 1,
        ..Default::default()
    };
    sregs.cs = kvm_segment {
        selector: ring0::USER_CODE,
        type_: 11,
        l: 1,
        ..flat
    };
    sregs.ss = kvm_segment {
        selector: ring0::USER_DATA,
        type_: 3,
        db: 1,
        ..flat
    };
    let unusable = kvm_segment {
        unusable: 1,
        ..Default::default()
    };
    (sregs.ds, sregs.es, sregs.fs, sregs.gs, sregs.ldt) =
        (unusable, unusable, unusable, unusable, unusable);
    sregs.tr = kvm_segment {
        base: ring0::TSS.0,
        limit: ring0::TSS.1.into(),
        selector: ring0::TASK_STATE,
        type_: platform.tss_type(),
        present: 1,
        ..Default::default()
    };
    (sregs.gdt.base, sregs.gdt.limit) = ring0::GDT;
    (sregs.idt.base, sregs.idt.limit) = ring0::IDT;
    sregs.cr0 = 0x8005_0033; // PE, MP, ET, NE, WP, AM, PG (SDM vol. 3A, 2.5)
    sregs.cr4 = 0x0005_0620; // PAE, OSFXSR, OSXMMEXCPT, FSGSBASE, OSXSAVE
    sregs.efer = 0xd01; // SCE, LME, LMA, NXE
    sregs.cr3 = root;
}

fn set_msrs(fd: &VcpuFd, platform: Platform) -> Result<(), VmError> {
    // STAR, LSTAR, FMASK (SDM vol. 4, table 2-2); the mask is the one that Linux uses.
    let entries = [
        (
            0xc000_0081,
            (u64::from(ring0::KERNEL_CODE) | 0x23 << 16) << 32,
        ),
        (0xc000_0082, platform.syscall_target()),
        (0xc000_0084, 0x4_7700),
    ]
    .map(|(index, data)| kvm_msr_entry {
        index,
        data,
        ..Default::default()
    });
    let msrs = Msrs::from_entries(&entries).map_err(|_| VmError::Msrs)?;
    match fd.set_msrs(&msrs).map_err(VmError::Registers)? {
        done if done == entries.len() => Ok(()),
        _ => Err(VmError::Msrs),
    }
}

fn set_xcr0(cpuid: &CpuId, fd: &VcpuFd) -> Result<(), VmError> {
    // x87, SSE, AVX and the three parts of AVX-512 (SDM vol. 1, 13.3), as far as KVM has them.
    const WANTED: u64 = 0b1110_0111;
    let leaf = cpuid
        .as_slice()
        .iter()
        .find(|leaf| leaf.function == 0xd && leaf.index == 0);
    let Some(leaf) = leaf else { return Ok(()) };
    let mut xcrs = kvm_xcrs {
        nr_xcrs: 1,
        ..Default::default()
    };
    xcrs.xcrs[0].value = WANTED & (u64::from(leaf.eax) | u64::from(leaf.edx) << 32) | 3;
    fd.set_xcrs(&xcrs).map_err(VmError::Registers)
}
