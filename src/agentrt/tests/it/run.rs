//! The kinds of programs that can be run, and their exit statuses.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::harness::{Ended, Job, Linkage, Volume, compile, tests, text};

tests![
    static_program,
    static_pie_program,
    dynamic_program,
    exit_status,
    arguments_of_any_bytes,
    many_arguments,
    found_in_path,
    relative_to_directory,
    scripts,
    script_loop,
    exec_replaces_the_program,
];

fn echo(linkage: Linkage) {
    let job = Job::new([compile("echo", linkage)])
        .argument("one")
        .argument("");
    let outcome = job.input("some\ninput").same().ended(Ended::Exit(3));
    assert!(
        outcome.out().ends_with("HOME=/root\nsome\ninput"),
        "{outcome:?}"
    );
}

fn static_program() {
    echo(Linkage::Static);
}

fn static_pie_program() {
    echo(Linkage::StaticPie);
}

fn dynamic_program() {
    echo(Linkage::Dynamic);
}

fn exit_status() {
    let end = compile("end", Linkage::Static);
    for status in [0, 1, 2, 77, 100, 124, 125, 126, 127, 128, 129, 137, 255] {
        let job = Job::new([&end])
            .argument("exit")
            .argument(status.to_string());
        assert_eq!(job.guest().ended(Ended::Exit(status)).out(), "before\n");
    }
    // Only the low eight bits count.
    let job = Job::new([&end]).argument("exit").argument("511");
    job.same().ended(Ended::Exit(255));
}

fn arguments_of_any_bytes() {
    let all: Vec<u8> = (1..=255).collect();
    let job = Job::new([compile("echo", Linkage::Dynamic)]).argument(OsString::from_vec(all));
    job.argument("--help")
        .argument("-")
        .argument("--")
        .same()
        .ended(Ended::Exit(5));
}

fn many_arguments() {
    let job = Job::new(["/usr/bin/printf", "%s\n"]);
    (0..5_000)
        .fold(job, |job, number| {
            job.argument(format!("argument {number}"))
        })
        .same()
        .ok();
}

fn found_in_path() {
    Job::new(["true"]).guest().ok();
    let outcome = Job::new(["printenv", "PATH"])
        .option("--env=PATH=/nowhere:/usr/bin")
        .guest()
        .ok();
    assert_eq!(outcome.out(), "/nowhere:/usr/bin\n");
}

fn relative_to_directory() {
    Job::new(["./env", "pwd"]).directory("/usr/bin").same().ok();
}

fn write_script(path: &Path, contents: &str) {
    fs::write(path, contents).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("an executable script");
}

fn scripts() {
    let echo = text(
        compile("echo", Linkage::Static)
            .as_os_str()
            .as_encoded_bytes(),
    );
    let volume = Volume::filled(|directory| {
        write_script(&directory.join("plain"), &format!("#!{echo}\nnot read"));
        write_script(
            &directory.join("argument"),
            &format!("#! \t{echo}  one argument \n"),
        );
        write_script(&directory.join("no-newline"), &format!("#!{echo} x"));
        write_script(&directory.join("relative"), "#!./argument  of the script\n");
        write_script(&directory.join("nested"), "#!./relative\n");
        write_script(
            &directory.join("shell"),
            "#!/bin/sh\nset -- $0 $#\necho \"$@\"; exit 9\n",
        );
        write_script(
            &directory.join("env"),
            "#!/usr/bin/env python3\nimport sys; print(sys.argv)\n",
        );
    });
    for script in [
        "plain",
        "argument",
        "no-newline",
        "relative",
        "nested",
        "shell",
        "env",
    ] {
        Job::new([format!("./{script}")])
            .argument("given")
            .same_in(&volume);
    }
}

fn script_loop() {
    let volume = Volume::filled(|directory| {
        write_script(&directory.join("loop"), "#!./loop\n");
        write_script(&directory.join("missing"), "#!/nowhere/interpreter\n");
    });
    let job = |script: &str| {
        Job::new([script])
            .directory("/data")
            .volume(volume.guest(), "/data")
    };
    let outcome = job("./loop").guest().ended(Ended::Exit(126));
    assert!(outcome.err().contains("loop"), "{outcome:?}");
    let outcome = job("./missing").guest().ended(Ended::Exit(127));
    assert!(
        outcome.err().contains("/nowhere/interpreter"),
        "{outcome:?}"
    );
}

fn exec_replaces_the_program() {
    let outcome = Job::new(["/usr/bin/env", "-i", "A=1", "/bin/sh", "-c"])
        .argument("exec 3</etc/passwd; exec nice -n 0 env")
        .guest()
        .ended(Ended::Exit(0));
    assert!(outcome.out().starts_with("A=1\n"), "{outcome:?}");
    let outcome = Job::python(
        "import os\n\
         os.set_inheritable(os.open('/etc/passwd', os.O_RDONLY), True)\n\
         os.open('/etc/passwd', os.O_RDONLY)\n\
         os.execv('/bin/ls', ['ls', '/proc/self/fd'])",
    );
    // 3 is inherited, 4 was closed. A directory of /proc shows what there was when it was opened.
    assert_eq!(outcome.guest().ok().out(), "0\n1\n2\n3\n");
}
