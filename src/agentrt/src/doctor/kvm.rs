//! KVM: the device, the kind of virtualisation behind it, its capabilities, and whether a vCPU can be made.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use kvm_ioctls::{Cap, Kvm};

use super::{Check, read};

#[cfg(test)]
mod tests;

/// The only version KVM_GET_API_VERSION may return (Documentation/virt/kvm/api.rst, 4.1).
const API_VERSION: i32 = 12;

/// KVM_SYNC_X86_REGS and KVM_SYNC_X86_SREGS of the KVM ABI: the general and the system registers travel with
/// the kvm_run page.
const SYNC_REGS_AND_SREGS: i32 = 0b11;

const NO_EXTENSION: &str = "neither vmx nor svm";

/// What the answer to KVM_CHECK_EXTENSION must be.
enum Needs {
    AtLeast(i32),
    Bits(i32),
}

/// A capability agentrt cannot do without.
struct Capability {
    name: &'static str,
    cap: Cap,
    needs: Needs,
    purpose: &'static str,
}

impl Capability {
    const fn new(name: &'static str, cap: Cap, needs: Needs, purpose: &'static str) -> Self {
        Capability {
            name,
            cap,
            needs,
            purpose,
        }
    }
}

const CAPABILITIES: [Capability; 10] = [
    Capability::new(
        "kvm.cap.user_memory",
        Cap::UserMemory,
        Needs::AtLeast(1),
        "guest memory is ordinary memory of the host process",
    ),
    Capability::new(
        "kvm.cap.sync_mmu",
        Cap::SyncMmu,
        Needs::AtLeast(1),
        "guests see changed mappings of the host at once",
    ),
    Capability::new(
        "kvm.cap.destroy_memory_region_works",
        Cap::DestroyMemoryRegionWorks,
        Needs::AtLeast(1),
        "guest memory can be taken away again",
    ),
    Capability::new(
        "kvm.cap.nr_memslots",
        Cap::NrMemslots,
        Needs::AtLeast(32),
        "guest memory is made of several regions",
    ),
    Capability::new(
        "kvm.cap.readonly_mem",
        Cap::ReadonlyMem,
        Needs::AtLeast(1),
        "guests share pages they must not write",
    ),
    Capability::new(
        "kvm.cap.ext_cpuid",
        Cap::ExtCpuid,
        Needs::AtLeast(1),
        "guests are told which CPU features to use",
    ),
    Capability::new(
        "kvm.cap.sync_regs",
        Cap::SyncRegs,
        Needs::Bits(SYNC_REGS_AND_SREGS),
        "registers cost no system call of their own",
    ),
    Capability::new(
        "kvm.cap.immediate_exit",
        Cap::ImmediateExit,
        Needs::AtLeast(1),
        "a running guest is stopped without a race",
    ),
    Capability::new(
        "kvm.cap.xsave",
        Cap::Xsave,
        Needs::AtLeast(1),
        "vector registers can be saved and set",
    ),
    Capability::new(
        "kvm.cap.xcrs",
        Cap::Xcrs,
        Needs::AtLeast(1),
        "the set of vector registers can be chosen",
    ),
];

pub fn checks(root: &Path) -> Vec<Check> {
    let mut checks = vec![device(root)];
    let Ok(kvm) = Kvm::new() else {
        return checks;
    };
    checks.push(kind(root));
    checks.push(judge_api(kvm.get_api_version()));
    checks.extend(CAPABILITIES.iter().map(|capability| {
        let answer = kvm.check_extension_int(capability.cap);
        judge_capability(capability, answer)
    }));
    checks.push(vcpu(&kvm));
    checks
}

fn device(root: &Path) -> Check {
    let name = "kvm.device";
    let path = root.join("dev/kvm");
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Check::ok(name, "/dev/kvm can be opened"),
        Err(error) => Check::fail(
            name,
            format!("/dev/kvm: {error}"),
            device_remedy(root, error.kind()),
        ),
    }
}

fn device_remedy(root: &Path, error: io::ErrorKind) -> &'static str {
    match (error, extension(root)) {
        (io::ErrorKind::PermissionDenied, _) => {
            "usermod -aG kvm \"$USER\" as root, then log in again; for a container: docker run --device /dev/kvm"
        }
        (_, Some("vmx")) => "modprobe kvm_intel; for a container: docker run --device /dev/kvm",
        (_, Some(_)) => "modprobe kvm_amd; for a container: docker run --device /dev/kvm",
        (_, None) => {
            "enable VT-x (Intel) or SVM (AMD) in the firmware; in a virtual machine, enable nested virtualisation \
             on its host, or run a kernel with software KVM and modprobe kvm_pvm"
        }
    }
}

/// The processor's virtualisation extension, by its CPUID name: `vmx`, `svm`, or none visible here.
fn extension(root: &Path) -> Option<&'static str> {
    let cpuinfo = read(root, "proc/cpuinfo")?;
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    let mut flags = flags.split_whitespace();
    flags.find_map(|flag| ["vmx", "svm"].into_iter().find(|name| *name == flag))
}

fn kind(root: &Path) -> Check {
    let name = "kvm.kind";
    let module = |module: &str| root.join("sys/module").join(module).exists();
    if module("kvm_pvm") {
        let cpu = extension(root).unwrap_or(NO_EXTENSION);
        return Check::warn(
            name,
            format!("software KVM (PVM) with shadow page tables; the CPU shows {cpu}"),
            "agentrt works; for full speed run it where the CPU shows vmx or svm (bare metal, or a virtual \
             machine with nested virtualisation)",
        );
    }
    let (module, nested_paging, label) = match extension(root) {
        Some("vmx") if module("kvm_intel") => ("kvm_intel", "ept", "hardware KVM (VMX)"),
        Some("svm") if module("kvm_amd") => ("kvm_amd", "npt", "hardware KVM (SVM)"),
        found => {
            let cpu = found.unwrap_or(NO_EXTENSION);
            return Check::warn(
                name,
                format!("unknown: /sys/module names no KVM module; the CPU shows {cpu}"),
                "mount -t sysfs sysfs /sys; for a container: do not mask /sys/module",
            );
        }
    };
    let parameter = format!("sys/module/{module}/parameters/{nested_paging}");
    match read(root, &parameter).as_deref() {
        Some("Y" | "1") | None => Check::ok(name, format!("{label} with nested paging")),
        Some(_) => Check::warn(
            name,
            format!("{label} without nested paging: page faults of guests cost an exit each"),
            format!("modprobe -r {module} && modprobe {module} {nested_paging}=1"),
        ),
    }
}

fn judge_api(version: i32) -> Check {
    let name = "kvm.api";
    let found = format!("version {version}");
    match version {
        API_VERSION => Check::ok(name, found),
        _ => Check::fail(name, found, "boot a kernel whose KVM has API version 12"),
    }
}

fn judge_capability(capability: &Capability, answer: i32) -> Check {
    let suffices = match capability.needs {
        Needs::AtLeast(least) => answer >= least,
        Needs::Bits(bits) => answer >= 0 && answer & bits == bits,
    };
    if suffices {
        return Check::ok(capability.name, format!("{answer}: {}", capability.purpose));
    }
    let wanted = match capability.needs {
        Needs::AtLeast(least) => format!("at least {least}"),
        Needs::Bits(bits) => format!("the bits {bits:#b}"),
    };
    Check::fail(
        capability.name,
        format!("{answer}, needs {wanted}: {}", capability.purpose),
        "boot Linux 5.15 or newer with its own KVM modules",
    )
}

/// Whether the capabilities add up to a machine: creates one with a vCPU, and drops it.
fn vcpu(kvm: &Kvm) -> Check {
    let name = "kvm.vcpu";
    match kvm.create_vm().and_then(|vm| vm.create_vcpu(0)) {
        Ok(_) => Check::ok(name, "a virtual machine with a vCPU can be created"),
        Err(error) => Check::fail(
            name,
            format!("cannot create a virtual machine with a vCPU: {error}"),
            vcpu_remedy(error.errno()),
        ),
    }
}

fn vcpu_remedy(errno: i32) -> &'static str {
    match errno {
        libc::EBUSY => {
            "another hypervisor owns the CPU's virtualisation: stop it (VirtualBox: modprobe -r vboxdrv)"
        }
        libc::EMFILE | libc::ENFILE => "ulimit -n 65536",
        libc::ENOMEM => "free memory, or raise the memory limit of the control group",
        _ => {
            "dmesg names the reason; reload KVM: modprobe -r kvm_intel kvm_amd; modprobe kvm_intel or kvm_amd"
        }
    }
}
