//! Coreutils, Perl, the sqlite3 shell and other tools of Debian, on real and on large data.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;

use super::harness::{Job, Linkage, Volume, assert_same, compile, listing, scratch, trial};

/// Commands that are compared as they are, in `/`.
const COMMANDS: &[(&str, &[&str])] = &[
    ("ls_share", &["ls", "-lR", "/usr/share"]),
    (
        "ls_device_files",
        &["ls", "/usr/bin", "/usr/lib/x86_64-linux-gnu"],
    ),
    (
        "find_names",
        &["find", "/usr", "-name", "*.py", "-newermt", "2000-01-01"],
    ),
    (
        "find_formatted",
        &[
            "find",
            "/usr/share",
            "-maxdepth",
            "2",
            "-printf",
            "%p %m %s %n %y %T@ %l\\n",
        ],
    ),
    ("du_share", &["du", "-s", "/usr/share"]),
    (
        "du_apparent",
        &["du", "-a", "--apparent-size", "/usr/share/perl5"],
    ),
    (
        "sha256sum",
        &[
            "sha256sum",
            "/usr/bin/python3",
            "/usr/bin/perl",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
        ],
    ),
    (
        "grep_recursive",
        &[
            "grep",
            "-r",
            "-c",
            "import",
            "/usr/lib/python3/dist-packages",
        ],
    ),
    (
        "grep_licenses",
        &["grep", "-rlE", "Apache|BSD-3", "/usr/share/doc"],
    ),
    (
        "awk_passwd",
        &[
            "mawk",
            "-F:",
            "{ print $1, $3; n += NF } END { print n }",
            "/etc/passwd",
        ],
    ),
    (
        "stat_format",
        &[
            "stat",
            "-L",
            "-c",
            "%A %U %G %s %Y %N",
            "/usr",
            "/etc/passwd",
            "/bin/sh",
            "/usr/bin/python3",
        ],
    ),
    (
        "wc_words",
        &[
            "wc",
            "/usr/share/common-licenses/GPL-3",
            "/usr/share/common-licenses/Artistic",
        ],
    ),
    (
        "date",
        &[
            "date",
            "-u",
            "-d",
            "2024-02-29 12:00 + 1 year",
            "+%A %d %B %Y %T",
        ],
    ),
    (
        "factor",
        &["factor", "123456789012345678", "18446744073709551557"],
    ),
    ("seq_wide", &["seq", "-w", "1", "20000"]),
    (
        "numfmt",
        &["numfmt", "--to=iec", "1", "2000", "3000000", "4000000000"],
    ),
    (
        "od_program",
        &["od", "-A", "d", "-t", "x4", "-N", "5000", "/usr/bin/true"],
    ),
    (
        "readelf",
        &["readelf", "-W", "-h", "-l", "-S", "/usr/bin/python3"],
    ),
    ("objdump", &["objdump", "-d", "/usr/bin/true"]),
    ("nm", &["nm", "-D", "/usr/lib/x86_64-linux-gnu/libc.so.6"]),
    (
        "xz",
        &["xz", "-T1", "-6", "-c", "/usr/share/common-licenses/GPL-3"],
    ),
    (
        "gzip",
        &["gzip", "-9", "-n", "-c", "/usr/share/common-licenses/GPL-3"],
    ),
    (
        "tar_stream",
        &["tar", "-c", "-C", "/usr/share", "common-licenses", "perl5"],
    ),
    (
        "perl_version",
        &["perl", "-e", "printf qq(%vd %s\\n), $^V, $^O"],
    ),
    ("env_split", &["env", "-S", "-i A=1 printenv A"]),
    ("ls_missing", &["ls", "/nowhere", "/etc/passwd"]),
    ("timeout_help", &["sort", "--version"]),
];

/// The tests of this module.
pub fn tests() -> Vec<Trial> {
    let test = |&(name, command): &'static (&str, &[&str])| {
        trial(&format!("tools::{name}"), move || {
            let program = format!("/usr/bin/{}", command[0]);
            let job = command[1..]
                .iter()
                .fold(Job::new([program]), |job, argument| job.argument(*argument));
            job.limit(Duration::from_secs(120)).same();
        })
    };
    let named: [(&str, fn()); 9] = [
        ("sort_large", sort_large),
        ("perl_text", perl_text),
        ("sqlite_shell", sqlite_shell),
        ("copy_tree", copy_tree),
        ("tar_round_trip", tar_round_trip),
        ("compressors", compressors),
        ("large_file", large_file),
        ("rewritten_text_is_hidden", rewritten_text_is_hidden),
        ("writable_layer", writable_layer),
    ];
    let named = named
        .into_iter()
        .map(|(name, test)| trial(&format!("tools::{name}"), test));
    COMMANDS.iter().map(test).chain(named).collect()
}

/// Lines of numbers that look random and are the same each time.
fn numbers(lines: u64) -> String {
    let mut text = String::new();
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..lines {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let _ = writeln!(text, "{state:020}");
    }
    text
}

fn sort_large() {
    let volume = Volume::filled(|directory| {
        fs::write(directory.join("numbers"), numbers(2_400_000)).expect("50 MB of numbers");
    });
    let command = [
        "/usr/bin/sort",
        "--parallel=1",
        "-S",
        "300M",
        "-o",
        "sorted",
        "numbers",
    ];
    Job::new(command)
        .limit(Duration::from_secs(180))
        .same_in(&volume)
        .ok();
    // Little memory makes it merge temporary files.
    let command = [
        "/usr/bin/sort",
        "--parallel=1",
        "-S",
        "4M",
        "-T",
        ".",
        "-o",
        "merged",
        "numbers",
    ];
    let job = Job::new(command)
        .option("--memory=64M")
        .limit(Duration::from_secs(180));
    job.directory("/data")
        .volume(volume.guest(), "/data")
        .guest()
        .ok();
    let read = |name: &str| fs::read(volume.guest().join(name)).expect("a sorted file");
    assert!(
        read("sorted") == read("merged"),
        "merging gave another order"
    );
}

fn perl_text() {
    let script = r#"
use strict; use warnings; use List::Util qw(sum max); use Data::Dumper; $Data::Dumper::Sortkeys = 1;
my %count; while (<>) { $count{lc $1}++ while /(\w+)/g }
printf "%-20s %d\n", $_, $count{$_} for grep { $count{$_} > 30 } sort keys %count;
print sum(values %count), " ", max(values %count), "\n", Dumper({ map { $_ => [1, { x => $_ }] } qw(a b) });
open my $out, ">", "out" or die; print $out scalar reverse "olleh\n"; close $out;
print sprintf("%.10f", atan2(1, 1) * 4), " ", join(",", map { sprintf "%b", $_ } 1 .. 9), "\n";
sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } print f(20), "\n"; exit 3;
"#;
    let license = fs::read("/usr/share/common-licenses/GPL-3").expect("a text");
    Job::new(["/usr/bin/perl", "-e", script])
        .input(license)
        .same_in(&Volume::new());
}

fn sqlite_shell() {
    let statements = "create table t (id integer primary key, text, value real);\n\
        with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000)\n\
        insert into t select x, 'row ' || (x * 7919 % 1000), x / 8.0 from n;\n\
        create index i on t (text); create view v as select text, count(*) c from t group by text;\n\
        delete from t where id % 5 = 0;\n.mode csv\nselect * from v order by c desc, text limit 5;\n\
        pragma integrity_check;\n";
    let volume = Volume::new();
    Job::new(["/usr/bin/sqlite3", "data.db"])
        .input(statements)
        .same_in(&volume)
        .ok();
    let dump = |directory: &Path| {
        let output = Command::new("/usr/bin/sqlite3")
            .arg(directory.join("data.db"))
            .arg(".dump")
            .output();
        output.expect("sqlite3 starts").stdout
    };
    let (native, guest) = (dump(volume.native()), dump(volume.guest()));
    assert!(native.len() > 50_000);
    assert_same("the dump", &native, &guest);
}

fn copy_tree() {
    // Into a volume, compared by the host.
    let volume = Volume::new();
    Job::new(["/bin/cp", "-a", "/usr/share/perl5", "copy"])
        .same_in(&volume)
        .ok();
    assert_eq!(
        listing(&volume.guest().join("copy")),
        listing(Path::new("/usr/share/perl5"))
    );
    // Into the writable layer, compared by the same program that made the copy.
    let script = "import shutil, filecmp, os\n\
        shutil.copytree('/usr/lib/python3', '/tmp/copy', symlinks=True)\n\
        def differences(c): return c.left_only + c.right_only + c.diff_files + c.funny_files + \
        [name for sub in c.subdirs.values() for name in differences(sub)]\n\
        print(differences(filecmp.dircmp('/usr/lib/python3', '/tmp/copy')))\n\
        shutil.rmtree('/tmp/copy'); print(os.path.exists('/tmp/copy'))";
    assert_eq!(Job::python(script).guest().ok().out(), "[]\nFalse\n");
}

fn tar_round_trip() {
    let volume = Volume::new();
    let create = [
        "/bin/tar",
        "-cf",
        "all.tar",
        "--sort=name",
        "-C",
        "/usr/share",
        "perl5",
        "common-licenses",
    ];
    Job::new(create).same_in(&volume).ok();
    Job::new(["/bin/tar", "-tvf", "all.tar"])
        .same_in(&volume)
        .ok();
    Job::new(["/bin/tar", "-xf", "all.tar"])
        .same_in(&volume)
        .ok();
    assert_eq!(
        listing(&volume.guest().join("perl5")),
        listing(Path::new("/usr/share/perl5"))
    );
}

fn compressors() {
    let volume = Volume::filled(|directory| {
        fs::write(directory.join("numbers"), numbers(100_000)).expect("2 MB of numbers");
    });
    let commands: [&[&str]; 6] = [
        &["/usr/bin/gzip", "-n", "-k", "numbers"],
        &["/usr/bin/gzip", "-t", "-v", "numbers.gz"],
        &["/usr/bin/gzip", "-d", "-f", "numbers.gz"],
        &["/usr/bin/xz", "-T1", "-k", "-1", "numbers"],
        &["/usr/bin/xz", "-l", "numbers.xz"],
        &["/usr/bin/xz", "-d", "-f", "-T1", "numbers.xz"],
    ];
    for command in commands {
        Job::new(command).same_in(&volume);
    }
}

fn large_file() {
    let volume = Volume::new();
    let command = [
        "/bin/dd",
        "if=/dev/zero",
        "of=zeros",
        "bs=1M",
        "count=100",
        "status=none",
    ];
    Job::new(command).same_in(&volume).ok();
    Job::new(["/usr/bin/md5sum", "zeros"]).same_in(&volume).ok();
}

/// A program reads its own code as the file has it, although what runs is rewritten.
fn rewritten_text_is_hidden() {
    let program = compile("echo", Linkage::Static);
    for file in [program.as_path(), Path::new("/usr/bin/sha256sum")] {
        Job::new([Path::new("/usr/bin/sha256sum"), file])
            .same()
            .ok();
    }
}

fn writable_layer() {
    let script = "import os, hashlib\n\
        data = os.urandom(1 << 20) * 30\n\
        with open('/var/tmp/large', 'wb') as f: f.write(data)\n\
        with open('/var/tmp/large', 'rb') as f: print(hashlib.sha256(f.read()).digest() == hashlib.sha256(data).digest())\n\
        print(os.stat('/var/tmp/large').st_size)";
    assert_eq!(
        Job::python(script).guest().ok().out(),
        format!("True\n{}\n", 30 << 20)
    );
    let directory = scratch();
    assert!(!directory.path().join("large").exists());
}
