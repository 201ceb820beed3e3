//! Analyses programs and libraries that this machine has and compares with what `objdump` makes of
//! them.
//!
//! A byte pair that the analysis calls a site and `objdump` does not would corrupt a program: there
//! must be none. What the analysis leaves alone must be known and explained.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agentrt_loader::elf;
use agentrt_loader::rewriter::{Analysis, Site, SiteKind, analyse, lazy};

/// Instructions before a `syscall` whose addresses are kept: a run has at most five.
const BEFORE: usize = 6;

/// Why a site is left alone that only an indirect jump leads to.
const BEHIND_SWITCH: &str = "behind a jump table, and the number is not loaded right before";

/// A file, and what of `objdump`'s findings the analysis may leave alone.
struct Binary {
    name: &'static str,
    path: Option<PathBuf>,
    /// How many of `objdump`'s sites may be unknown to the analysis, and why.
    explained: (usize, &'static str),
}

fn binaries() -> Vec<Binary> {
    let binary = |name, path: &str| Binary {
        name,
        path: Some(PathBuf::from(path)),
        explained: (0, ""),
    };
    let libraries = "/lib/x86_64-linux-gnu";
    let mut libc = binary("libc.so.6", &format!("{libraries}/libc.so.6"));
    libc.explained = (2, BEHIND_SWITCH);
    let mut crypto = binary("libcrypto.so.3", &format!("{libraries}/libcrypto.so.3"));
    crypto.explained = (
        1,
        "objdump disassembles tables between functions, one holds these bytes",
    );
    vec![
        libc,
        binary("ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
        binary("libgomp.so.1", &format!("{libraries}/libgomp.so.1")),
        binary("ldconfig (static)", "/sbin/ldconfig"),
        binary("busybox (static)", "/bin/busybox"),
        binary("python3.11", "/usr/bin/python3.11"),
        binary(
            "libpython3.11.so",
            &format!("{libraries}/libpython3.11.so.1.0"),
        ),
        crypto,
        Binary {
            name: "OpenBLAS of numpy",
            path: openblas(),
            explained: (0, ""),
        },
        Binary {
            name: "node",
            path: on_path("node"),
            explained: (0, ""),
        },
        Binary {
            name: "docker (Go)",
            path: on_path("docker"),
            explained: (2, BEHIND_SWITCH),
        },
        Binary {
            name: "this test",
            path: std::env::current_exe().ok(),
            explained: (0, ""),
        },
    ]
}

#[test]
fn sites_agree_with_objdump() {
    println!(
        "binary | candidates | true sites | patched | trapped | unknown | rejected | lazy | objdump | false"
    );
    let mut seen = 0;
    for binary in binaries() {
        let Some(path) = binary.path.filter(|path| path.exists()) else {
            println!("{} | not on this machine", binary.name);
            continue;
        };
        let file = fs::read(&path).unwrap();
        let analysis = analyse(&file).unwrap();
        let truth = Truth::of(&path, &file);
        let false_sites: Vec<u64> = analysis
            .sites
            .iter()
            .filter(|site| !truth.confirms(site))
            .map(|site| site.file_offset)
            .collect();
        report(binary.name, &file, &analysis, &truth, false_sites.len());
        assert_eq!(false_sites, [0; 0], "{}: false sites", binary.name);

        let left: Vec<u64> = truth
            .syscalls
            .keys()
            .copied()
            .filter(|offset| {
                !analysis
                    .sites
                    .iter()
                    .any(|site| site.file_offset == *offset)
            })
            .collect();
        let (most, reason) = binary.explained;
        assert!(
            left.len() <= most && left.iter().all(|offset| analysis.unknown.contains(offset)),
            "{}: left {left:x?}; {reason}",
            binary.name
        );
        seen += 1;
    }
    assert!(seen > 0, "none of the binaries is on this machine");
}

/// A file may come without section headers; unwind tables are then found by their program header.
#[test]
fn section_headers_are_not_needed() {
    let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let Ok(mut file) = fs::read(path) else {
        println!("{} is not on this machine", path.display());
        return;
    };
    let whole = analyse(&file).unwrap();
    // e_shoff, then e_shnum and e_shstrndx.
    file[40..48].fill(0);
    file[60..64].fill(0);
    let stripped = analyse(&file).unwrap();
    println!(
        "sites: {}, without sections: {}",
        whole.sites.len(),
        stripped.sites.len()
    );
    assert!(stripped.sites.len() * 100 >= whole.sites.len() * 95);
    for site in &stripped.sites {
        let is_known = whole
            .sites
            .iter()
            .any(|known| known.file_offset == site.file_offset);
        assert!(is_known, "{:#x}", site.file_offset);
    }
}

fn report(name: &str, file: &[u8], analysis: &Analysis, truth: &Truth, false_sites: usize) {
    let Analysis {
        sites,
        rejected,
        unknown,
    } = analysis;
    let patched = sites
        .iter()
        .filter(|site| site.kind != SiteKind::Trap)
        .count();
    let lazily = sites.iter().filter(|site| is_lazy(file, site)).count();
    println!(
        "{name} | {} | {} | {patched} | {} | {} | {} | {lazily} | {} | {false_sites}",
        sites.len() + rejected.len() + unknown.len(),
        sites.len(),
        sites.len() - patched,
        unknown.len(),
        rejected.len(),
        truth.syscalls.len(),
    );
}

/// Whether a site would be patched at run time if the analysis had not found it.
fn is_lazy(file: &[u8], site: &Site) -> bool {
    let before = &file[..site.file_offset as usize];
    let number = before.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    number.is_some_and(|number| {
        lazy::displaced_length(&before[before.len().saturating_sub(32)..], number).is_some()
    })
}

/// What `objdump` says.
struct Truth {
    /// File offsets of `syscall`s, and of the instructions before each.
    syscalls: BTreeMap<u64, Vec<u64>>,
}

impl Truth {
    fn of(path: &Path, file: &[u8]) -> Self {
        let image = elf::parse(file).unwrap();
        let to_offset = |address: u64| {
            image.segments.iter().find_map(|segment| {
                let distance = address.checked_sub(segment.vaddr)?;
                (distance < segment.file_size).then(|| segment.file_offset + distance)
            })
        };
        let syscalls = disassembly(path, file)
            .lines()
            .filter_map(|line| {
                let addresses = line
                    .split(' ')
                    .map(|word| u64::from_str_radix(word, 16).unwrap());
                let mut offsets = addresses.filter_map(to_offset);
                Some((offsets.next()?, offsets.collect()))
            })
            .collect();
        Self { syscalls }
    }

    /// Whether there is such a `syscall`, and the displaced bytes start with an instruction.
    fn confirms(&self, site: &Site) -> bool {
        let Some(before) = self.syscalls.get(&site.file_offset) else {
            return false;
        };
        match &site.kind {
            SiteKind::Trap => true,
            SiteKind::Patch {
                start_file_offset, ..
            } => before.contains(start_file_offset),
        }
    }
}

/// A line for each `syscall`: its address and those of the instructions before it. Kept from run to
/// run, because disassembling 100 MB takes long.
fn disassembly(path: &Path, file: &[u8]) -> String {
    let kept = cache_directory().join(format!("objdump-{}", blake3::hash(file).to_hex()));
    if let Ok(text) = fs::read_to_string(&kept) {
        return text;
    }
    let mut objdump = Command::new("objdump")
        .args(["--disassemble", "--wide", "--no-show-raw-insn"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("objdump, of the package binutils");
    let lines = BufReader::new(objdump.stdout.take().unwrap());
    let mut text = String::new();
    let mut before: Vec<String> = Vec::new();
    for line in lines.split(b'\n') {
        let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
        let Some((address, instruction)) = line.split_once(":\t") else {
            continue;
        };
        let address = address.trim().to_owned();
        if instruction.trim() == "syscall" {
            text.push_str(&address);
            for address in before.iter().rev() {
                text.push(' ');
                text.push_str(address);
            }
            text.push('\n');
        }
        before.push(address);
        if before.len() > BEFORE {
            before.remove(0);
        }
    }
    assert!(objdump.wait().unwrap().success());
    fs::write(&kept, &text).unwrap();
    text
}

fn cache_directory() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// OpenBLAS out of numpy's wheel, `None` if it cannot be had (no network).
fn openblas() -> Option<PathBuf> {
    const FETCH: &str = r#"
import glob, subprocess, sys, zipfile
directory = sys.argv[1]
pattern = directory + "/numpy-*.whl"
if not glob.glob(pattern):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
        "--only-binary=:all:", "--dest", directory, "numpy"], check=True, timeout=120)
with zipfile.ZipFile(glob.glob(pattern)[0]) as wheel:
    name = next(name for name in wheel.namelist() if "openblas" in name)
    print(wheel.extract(name, directory))
"#;
    let output = Command::new("python3")
        .args(["-c", FETCH])
        .arg(cache_directory())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()))
}
