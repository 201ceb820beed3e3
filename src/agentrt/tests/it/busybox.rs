//! Applets of the static busybox, each with real arguments, in a directory with the same files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use libtest_mimic::Trial;

use super::harness::{Job, Volume, trial};

/// Names of tests, their applets' arguments, and what they read on standard input.
const CASES: &[(&str, &[&str], &str)] = &[
    ("cat", &["cat", "-n", "words", "numbers"], ""),
    ("cat_input", &["cat", "words", "-"], "from the input\n"),
    ("head", &["head", "-n", "3", "words"], ""),
    ("head_bytes", &["head", "-c", "10", "words"], ""),
    ("tail", &["tail", "-n", "3", "words"], ""),
    ("tail_from", &["tail", "-n", "+3", "words"], ""),
    ("sort", &["sort", "words"], ""),
    ("sort_numbers", &["sort", "-n", "-r", "numbers"], ""),
    ("sort_key", &["sort", "-t:", "-k3,3n", "table"], ""),
    ("uniq", &["uniq", "-c", "numbers"], ""),
    ("wc", &["wc", "words", "numbers", "table"], ""),
    ("cut", &["cut", "-d:", "-f1,3", "table"], ""),
    ("tr", &["tr", "a-z", "A-Z"], "some text\n"),
    ("tr_delete", &["tr", "-d", "aeiou"], "some text\n"),
    (
        "sed",
        &["sed", "-e", "s/\\(a\\)\\(.\\)/\\2\\1/g;2d;$a end", "words"],
        "",
    ),
    ("sed_in_place", &["sed", "-i", "s/one/1/", "words"], ""),
    (
        "awk",
        &[
            "awk",
            "-F:",
            "{ sum += $3; print NR, $1, length($2) } END { printf \"%.3f\\n\", sum }",
            "table",
        ],
        "",
    ),
    (
        "awk_program",
        &[
            "awk",
            "BEGIN { for (i = 0; i < 2000; i++) a[i % 7] += i; for (k = 0; k < 7; k++) print k, a[k] }",
        ],
        "",
    ),
    ("grep", &["grep", "-n", "-i", "T", "words"], ""),
    ("grep_recursive", &["grep", "-r", "deep", "tree"], ""),
    ("grep_nothing", &["grep", "no such line", "words"], ""),
    ("egrep", &["grep", "-E", "-o", "[a-z]+e(r|n)?", "words"], ""),
    (
        "find",
        &["find", "tree", "-type", "f", "-name", "*.txt"],
        "",
    ),
    ("find_links", &["find", ".", "-type", "l"], ""),
    ("find_size", &["find", "tree", "-size", "+4k"], ""),
    ("ls", &["ls", "-1", "-a", "tree"], ""),
    ("ls_recursive", &["ls", "-R", "-p"], ""),
    ("cp", &["cp", "words", "copy"], ""),
    ("cp_tree", &["cp", "-r", "tree", "copy"], ""),
    ("cp_preserving", &["cp", "-a", "tree", "copy"], ""),
    ("mv", &["mv", "words", "renamed"], ""),
    ("mv_directory", &["mv", "tree", "moved"], ""),
    ("mv_over", &["mv", "words", "numbers"], ""),
    ("rm", &["rm", "words", "numbers"], ""),
    ("rm_tree", &["rm", "-r", "tree"], ""),
    ("rm_missing", &["rm", "nowhere"], ""),
    ("mkdir", &["mkdir", "-p", "-m", "750", "a/b/c"], ""),
    ("mkdir_exists", &["mkdir", "tree"], ""),
    ("rmdir", &["rmdir", "empty"], ""),
    ("rmdir_full", &["rmdir", "tree"], ""),
    ("ln", &["ln", "words", "hard"], ""),
    ("ln_symbolic", &["ln", "-s", "nowhere", "soft"], ""),
    ("ln_force", &["ln", "-s", "-f", "words", "link"], ""),
    ("touch", &["touch", "new"], ""),
    (
        "touch_date",
        &["touch", "-d", "2001-02-03 04:05:06", "words"],
        "",
    ),
    ("chmod", &["chmod", "-R", "u=rwx,go-w", "tree"], ""),
    (
        "stat",
        &["stat", "-c", "%n %s %a %h %F", "words", "tree", "link"],
        "",
    ),
    ("du", &["du", "-a", "-k", "tree/one.txt"], ""),
    ("date", &["date", "-u", "-d", "@1234567890"], ""),
    ("cal", &["cal", "2", "2024"], ""),
    ("md5sum", &["md5sum", "words", "binary"], ""),
    ("sha1sum", &["sha1sum", "words", "binary"], ""),
    ("sha256sum", &["sha256sum", "words", "binary"], ""),
    ("sha512sum", &["sha512sum", "binary"], ""),
    ("cksum", &["cksum", "binary"], ""),
    ("od", &["od", "-A", "x", "-t", "x1z", "binary"], ""),
    ("hexdump", &["hexdump", "-C", "binary"], ""),
    ("xxd", &["xxd", "binary"], ""),
    ("base64", &["base64", "binary"], ""),
    ("base64_decode", &["base64", "-d"], "aGVsbG8gd29ybGQK\n"),
    ("strings", &["strings", "binary"], ""),
    ("expr", &["expr", "6", "*", "7"], ""),
    (
        "printf",
        &["printf", "%05d|%-8s|%x\\n", "42", "left", "255"],
        "",
    ),
    ("echo", &["echo", "-e", "a\\tb\\n"], ""),
    ("seq", &["seq", "1", "7", "100"], ""),
    ("test", &["test", "-f", "words", "-a", "-d", "tree"], ""),
    (
        "test_false",
        &["test", "-s", "words", "-a", "-L", "words"],
        "",
    ),
    ("true", &["true"], ""),
    ("false", &["false"], ""),
    ("basename", &["basename", "/a/b/file.txt", ".txt"], ""),
    ("dirname", &["dirname", "/a/b/file.txt"], ""),
    ("readlink", &["readlink", "link"], ""),
    ("realpath", &["realpath", "tree/../link"], ""),
    ("tee", &["tee", "-a", "words", "second"], "more\n"),
    ("uname", &["uname", "-s", "-m"], ""),
    ("sleep", &["sleep", "0.05"], ""),
    ("pwd", &["pwd"], ""),
    ("tac", &["tac", "words"], ""),
    ("rev", &["rev", "words"], ""),
    ("nl", &["nl", "words"], ""),
    ("fold", &["fold", "-w", "7", "words"], ""),
    ("expand", &["expand", "-t", "4"], "a\tb\tc\n"),
    ("split", &["split", "-l", "2", "words", "part-"], ""),
    ("cmp", &["cmp", "words", "numbers"], ""),
    ("cmp_same", &["cmp", "words", "words"], ""),
    (
        "diff",
        &["diff", "-u", "-L", "a", "-L", "b", "words", "numbers"],
        "",
    ),
    ("comm", &["comm", "words", "numbers"], ""),
    (
        "dd",
        &[
            "dd",
            "if=binary",
            "of=block",
            "bs=64",
            "count=3",
            "skip=1",
            "seek=2",
        ],
        "",
    ),
    ("dd_pipe", &["dd", "bs=1"], "byte by byte"),
    ("truncate", &["truncate", "-s", "1000", "words"], ""),
    ("tar_create", &["tar", "-c", "-f", "all.tar", "empty"], ""),
    ("tar_list", &["tar", "-t", "-f", "given.tar"], ""),
    ("tar_extract", &["tar", "-x", "-f", "given.tar"], ""),
    ("gzip", &["gzip", "-c", "-n", "binary"], ""),
    ("gunzip", &["gunzip", "given.gz"], ""),
    ("bzip2", &["bzip2", "binary"], ""),
    ("bunzip2", &["bunzip2", "-c", "given.bz2"], ""),
    ("cpio", &["cpio", "-o", "-H", "newc"], ""),
    (
        "ash",
        &[
            "sh",
            "-c",
            "for i in 1 2 3; do echo $((i * i)); done; echo ${PATH#*:}; read x <words; echo \"$x\"",
        ],
        "",
    ),
    (
        "ash_input",
        &["sh"],
        "x=5\nwhile [ $x -gt 0 ]; do x=$((x - 1)); echo $x; done\nexit 4\n",
    ),
    (
        "ash_redirects",
        &[
            "sh",
            "-c",
            "echo out >file; echo more >>file; exec 3<file; read a <&3; read b <&3; echo $b $a >&2; cd tree; pwd",
        ],
        "",
    ),
    ("dc", &["dc", "-e", "2 10 ^ p"], ""),
    ("bc", &["bc"], "2^100; scale=5; 1/3\n"),
    ("which", &["which", "ls"], ""),
    ("no_such_applet", &["nosuchapplet"], ""),
];

/// The tests of this module.
pub fn tests() -> Vec<Trial> {
    let test = |&(name, arguments, input): &'static (&str, &[&str], &str)| {
        trial(&format!("busybox::{name}"), move || {
            let command = [&["/usr/bin/busybox"], arguments].concat();
            Job::new(command)
                .input(input)
                .same_in(&Volume::filled(fill));
        })
    };
    CASES.iter().map(test).collect()
}

/// The files that the applets work on.
fn fill(directory: &Path) {
    let write = |name: &str, contents: &[u8]| {
        fs::write(directory.join(name), contents).expect("a file");
    };
    write("words", b"one\ntwo\nthree\nfour\nFIVE\nsix\nthe last one\n");
    write("numbers", b"5\n5\n10\n-3\n7\n7\n7\n100\n");
    write(
        "table",
        b"root:x:0:/root\nuser:secret:1000:/home\nnobody::65534:/\n",
    );
    let binary: Vec<u8> = (0..2_000u32)
        .map(|number| (number * number / 7) as u8)
        .collect();
    write("binary", &binary);
    write("given.gz", GZIP);
    write("given.bz2", BZIP2);
    for path in ["empty", "tree/deep/deeper"] {
        fs::create_dir_all(directory.join(path)).expect("a directory");
    }
    write("tree/one.txt", b"1\n");
    write("tree/deep/two.txt", b"deep\n");
    write("tree/deep/deeper/large", &binary.repeat(10));
    symlink("words", directory.join("link")).expect("a link");
    symlink("../one.txt", directory.join("tree/deep/up")).expect("a link");
    let script = directory.join("tree/script");
    write("tree/script", b"#!/bin/sh\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("a mode");
    write("given.tar", &tar("inside.txt", b"from the archive\n"));
}

/// "compressed\n", as gzip(1) and bzip2(1) compress it.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xce\xcf\x2d\x28\x4a\x2d\x2e\x4e\x4d\xe1\x02\x00\xbb\x6d\x4f\xc8\x0b\x00\x00\x00";
const BZIP2: &[u8] = b"\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x7e\x03\xdd\xfe\x00\x00\x00\xc1\x80\x00\x10\x0e\x02\xd8\x00\x20\x00\x22\x00\xcd\x42\x0c\x98\x8b\xac\x06\x99\xcb\xc5\xdc\x91\x4e\x14\x24\x1f\x80\xf7\x7f\x80";

/// A tar archive of one file (POSIX ustar).
fn tar(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    let mut put = |offset: usize, text: &str| {
        header[offset..offset + text.len()].copy_from_slice(text.as_bytes())
    };
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", contents.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend(contents);
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    archive
}
