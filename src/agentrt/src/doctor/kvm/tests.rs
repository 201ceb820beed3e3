use super::super::Status;
use super::super::tests::host;
use super::*;

const CPUINFO_SVM: (&str, &str) = (
    "proc/cpuinfo",
    "processor\t: 0\nflags\t\t: fpu svm nx\n\nprocessor\t: 1\nflags\t\t: fpu svm nx\n",
);
const CPUINFO_NONE: (&str, &str) = ("proc/cpuinfo", "flags\t\t: fpu nx\nvmx flags\t: x\n");

#[test]
fn kinds_of_kvm_are_told_apart() {
    let pvm = host(&[CPUINFO_NONE, ("sys/module/kvm_pvm/refcnt", "0\n")]);
    let pvm = kind(pvm.path());
    assert_eq!(pvm.status, Status::Warn);
    assert!(pvm.found.contains("PVM") && pvm.found.contains("neither"));

    let parameter = "sys/module/kvm_amd/parameters/npt";
    let svm = |npt| kind(host(&[CPUINFO_SVM, (parameter, npt)]).path());
    assert_eq!(
        svm("Y\n"),
        Check::ok("kvm.kind", "hardware KVM (SVM) with nested paging")
    );
    assert_eq!(svm("1\n").status, Status::Ok);
    assert_eq!(
        svm("N\n").remedy.unwrap(),
        "modprobe -r kvm_amd && modprobe kvm_amd npt=1"
    );

    assert_eq!(kind(host(&[]).path()).status, Status::Warn);
}

#[test]
fn missing_device_is_remedied_by_the_module_of_the_cpu() {
    let remedy = |files: &[_]| device(host(files).path()).remedy.unwrap();
    assert!(remedy(&[CPUINFO_SVM]).starts_with("modprobe kvm_amd"));
    assert!(remedy(&[("proc/cpuinfo", "flags : vmx\n")]).starts_with("modprobe kvm_intel"));
    assert!(remedy(&[CPUINFO_NONE]).contains("firmware"));
    assert!(
        device_remedy(Path::new("/"), io::ErrorKind::PermissionDenied)
            .starts_with("usermod -aG kvm")
    );
}

#[test]
fn capabilities_are_judged_by_amount_or_by_bits() {
    let capability = |name| {
        let found = CAPABILITIES
            .iter()
            .find(|capability| capability.name == name);
        found.unwrap()
    };
    let sync_regs = |answer| judge_capability(capability("kvm.cap.sync_regs"), answer).status;
    assert_eq!(sync_regs(7), Status::Ok);
    assert_eq!(sync_regs(3), Status::Ok);
    assert_eq!(sync_regs(5), Status::Fail);
    assert_eq!(sync_regs(0), Status::Fail);
    assert_eq!(sync_regs(-1), Status::Fail);
    let memslots = |answer| judge_capability(capability("kvm.cap.nr_memslots"), answer).status;
    assert_eq!(memslots(32_764), Status::Ok);
    assert_eq!(memslots(31), Status::Fail);
}

#[test]
fn only_the_one_api_version_will_do() {
    assert_eq!(judge_api(12).status, Status::Ok);
    assert_eq!(judge_api(11).status, Status::Fail);
    assert_eq!(judge_api(-1).status, Status::Fail);
}
