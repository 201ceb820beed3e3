//! The processor's vulnerabilities, what their mitigations cost, and multithreading.

use std::path::Path;

use super::{Check, read};

#[cfg(test)]
mod tests;

/// Words in /sys/devices/system/cpu/vulnerabilities (Documentation/admin-guide/hw-vuln) that stand for work at
/// every entry to the kernel, every exit of a guest or every change of tenant.
const COSTLY: [&str; 10] = [
    "PTI",
    "Clear CPU buffers",
    "cache flushes",
    "Mitigation: IBRS",
    "IBPB on VMEXIT",
    "IBPB before exit to userspace",
    "Mitigation: IBPB",
    "Safe RET",
    "untrained return thunk",
    "Retpolines",
];

/// One file of the kernel's vulnerabilities directory.
struct Vulnerability {
    name: String,
    state: String,
}

pub fn checks(root: &Path) -> Vec<Check> {
    let vulnerabilities = list(root);
    vec![
        unmitigated(&vulnerabilities),
        mitigations(&vulnerabilities),
        smt(root, &vulnerabilities),
    ]
}

fn list(root: &Path) -> Vec<Vulnerability> {
    let directory = "sys/devices/system/cpu/vulnerabilities";
    let Ok(entries) = std::fs::read_dir(root.join(directory)) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut list: Vec<_> = names
        .filter_map(|name| {
            let state = read(root, &format!("{directory}/{name}"))?;
            Some(Vulnerability { name, state })
        })
        .collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    list
}

fn unmitigated(vulnerabilities: &[Vulnerability]) -> Check {
    let name = "cpu.vulnerabilities";
    let open = describe(vulnerabilities, |state| state.contains("Vulnerable"));
    match open.as_str() {
        "" if vulnerabilities.is_empty() => Check::warn(
            name,
            "the kernel does not list them",
            "mount -t sysfs sysfs /sys; for a container: do not mask /sys/devices/system",
        ),
        "" => Check::ok(name, "every known one is mitigated or absent"),
        open => Check::warn(
            name,
            format!("untrusted programs may read other tenants' data: {open}"),
            "remove mitigations=off from the kernel's command line; apt install intel-microcode amd64-microcode \
             and a current kernel, reboot; in a virtual machine, have its host pass the CPU's mitigations through",
        ),
    }
}

fn mitigations(vulnerabilities: &[Vulnerability]) -> Check {
    let name = "cpu.mitigations";
    let costly = describe(vulnerabilities, |state| {
        !state.contains("Vulnerable") && COSTLY.iter().any(|word| state.contains(word))
    });
    match costly.as_str() {
        "" => Check::ok(name, "none that slows entries and exits"),
        costly => Check::ok(
            name,
            format!("needed, and slow at entries and exits: {costly}"),
        ),
    }
}

fn smt(root: &Path, vulnerabilities: &[Vulnerability]) -> Check {
    let name = "cpu.smt";
    let state = |file| read(root, &format!("sys/devices/system/cpu/smt/{file}"));
    let control = state("control").unwrap_or_else(|| "not in this kernel".to_owned());
    if state("active").as_deref() != Some("1") {
        return Check::ok(name, format!("not active ({control})"));
    }
    let leaks = describe(vulnerabilities, |state| state.contains("SMT vulnerable"));
    match leaks.as_str() {
        "" => Check::ok(name, "active"),
        leaks => Check::warn(
            name,
            format!("active, and siblings can read each other's data: {leaks}"),
            "echo off > /sys/devices/system/cpu/smt/control, or nosmt on the kernel's command line",
        ),
    }
}

fn describe(vulnerabilities: &[Vulnerability], mut picked: impl FnMut(&str) -> bool) -> String {
    let texts: Vec<_> = vulnerabilities
        .iter()
        .filter(|vulnerability| picked(&vulnerability.state))
        .map(|vulnerability| {
            let state = vulnerability.state.trim_start_matches("Mitigation: ");
            format!("{} ({state})", vulnerability.name)
        })
        .collect();
    texts.join(", ")
}
