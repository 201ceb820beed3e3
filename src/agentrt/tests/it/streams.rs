//! Standard streams: pipes, files, devices, closed ones.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::harness::{Ended, Job, Volume, process, scratch, tests, text};

tests![
    large_pipes,
    files_keep_their_offsets,
    appended_file,
    devices,
    closed_streams,
    reader_goes_away,
    lines_as_they_come,
    shared_descriptor,
    nothing_of_the_host_shows,
];

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command without pipes of the harness's.
fn status(command: &mut Command) -> Ended {
    let mut child = command.process_group(0).spawn().expect("agentrt starts");
    process::wait(&mut child, LIMIT)
        .expect("an end in time")
        .into()
}

fn large_pipes() {
    let input: Vec<u8> = (0..3_000_000u32)
        .flat_map(|number| number.to_ne_bytes())
        .collect();
    let outcome = Job::new(["/bin/cat"]).input(input.clone()).guest().ok();
    assert!(
        outcome.stdout == input,
        "{} bytes came back",
        outcome.stdout.len()
    );
}

fn files_keep_their_offsets() {
    let directory = scratch();
    let (input, output) = (
        directory.path().join("input"),
        directory.path().join("output"),
    );
    fs::write(&input, "skipped\none\ntwo\nthree\n").expect("an input");
    for command in [Job::native_command, Job::guest_command] {
        let mut from = File::open(&input).expect("the input");
        from.seek(SeekFrom::Start(8)).expect("a seek");
        let mut to = File::create(&output).expect("an output");
        to.write_all(b"before\n").expect("a write");
        // head reads ahead, and seeks back to behind the line that it printed.
        let job = Job::new(["/usr/bin/head", "-n1"]);
        let mut command = command(&job);
        command
            .stdin(from.try_clone().expect("a copy"))
            .stdout(to.try_clone().expect("a copy"));
        assert_eq!(status(&mut command), Ended::Exit(0));
        to.write_all(b"after\n").expect("a write");
        let mut rest = String::new();
        from.read_to_string(&mut rest).expect("the rest");
        assert_eq!(rest, "two\nthree\n");
        assert_eq!(
            fs::read_to_string(&output).expect("the output"),
            "before\none\nafter\n"
        );
    }
}

fn appended_file() {
    let directory = scratch();
    let log = directory.path().join("log");
    fs::write(&log, "first\n").expect("a log");
    for _ in 0..2 {
        let file = File::options().append(true).open(&log).expect("the log");
        let mut command = Job::new(["/bin/echo", "next"]).guest_command();
        assert_eq!(status(command.stdout(file)), Ended::Exit(0));
    }
    assert_eq!(
        fs::read_to_string(&log).expect("the log"),
        "first\nnext\nnext\n"
    );
}

fn devices() {
    let job = Job::new(["/usr/bin/head", "-c100000"]);
    let zero = File::open("/dev/zero").expect("/dev/zero");
    let output = job
        .guest_command()
        .stdin(zero)
        .output()
        .expect("agentrt starts");
    assert!(output.status.success() && output.stdout == vec![0; 100_000]);

    let mut command = Job::new(["/bin/cat"]).guest_command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert_eq!(status(&mut command), Ended::Exit(0));

    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full")
    };
    let job = Job::new(["/bin/echo", "lost"]);
    let native = job
        .native_command()
        .stdout(full())
        .output()
        .expect("echo starts");
    let guest = job
        .guest_command()
        .stdout(full())
        .output()
        .expect("agentrt starts");
    assert_eq!(
        (guest.status, &guest.stderr),
        (native.status, &native.stderr)
    );
}

fn closed_streams() {
    let report = "import os\n\
        def state(number):\n \
         try: os.fstat(number); return 'open'\n \
         except OSError as error: return error.strerror\n\
        states = [state(number) for number in range(3)]\n\
        open('report', 'w').write(' '.join(states))";
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"] {
        let volume = Volume::new();
        let path = text(volume.native().as_os_str().as_encoded_bytes());
        let job = Job::python(report)
            .directory(volume.native())
            .volume(volume.guest(), &path);
        for command in [job.native_command(), job.guest_command()] {
            // A shell closes what `Command` cannot.
            let mut shell = Command::new("/bin/sh");
            shell
                .arg("-c")
                .arg(format!("exec \"$@\" {closed}"))
                .arg("sh");
            shell.arg(command.get_program()).args(command.get_args());
            shell.current_dir(command.get_current_dir().unwrap_or(Path::new("/")));
            assert_eq!(status(&mut shell), Ended::Exit(0), "{closed}");
        }
        let read =
            |directory: &Path| fs::read_to_string(directory.join("report")).expect("a report");
        assert_eq!(read(volume.native()), read(volume.guest()), "{closed}");
    }
}

fn reader_goes_away() {
    let job = Job::new(["/usr/bin/yes"]);
    for mut command in [job.native_command(), job.guest_command()] {
        let command = command.stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("yes starts");
        let mut lines = [0; 200];
        child
            .stdout
            .take()
            .expect("a pipe")
            .read_exact(&mut lines)
            .expect("lines");
        let ended: Ended = process::wait(&mut child, LIMIT)
            .expect("an end in time")
            .into();
        assert_eq!(ended, Ended::Signal(13));
    }
    // A program that ignores the signal gets EPIPE instead.
    let script = "import os, sys\n\
        try:\n \
         while True: os.write(1, bytes(1000))\n\
        except BrokenPipeError: sys.exit(7)";
    let mut command = Job::python(script).guest_command();
    let mut child = command
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("agentrt starts");
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_exact(&mut [0; 100])
        .expect("some bytes");
    assert_eq!(
        process::wait(&mut child, LIMIT).expect("an end").code(),
        Some(7)
    );
}

/// A conversation: each line is answered before the next one is sent.
fn lines_as_they_come() {
    let script = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)";
    let mut child = process::spawn(Job::python(script).guest_command());
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    for word in ["one", "two", "three"] {
        writeln!(input, "{word}").expect("a reader");
        let mut line = String::new();
        output.read_line(&mut line).expect("an answer");
        assert_eq!(line, format!("{}\n", word.to_uppercase()));
    }
    drop(input);
    assert_eq!(
        process::wait(&mut child, LIMIT)
            .expect("an end in time")
            .code(),
        Some(0)
    );
}

/// Standard output and error on one pipe keep their order.
fn shared_descriptor() {
    let script = "import sys\n\
        for number in range(100):\n \
         print(number, file=[sys.stdout, sys.stderr][number % 2], flush=True)";
    let job = Job::python(script);
    let mut shell = Command::new("/bin/sh");
    let guest = job.guest_command();
    shell
        .args(["-c", "exec \"$@\" 2>&1", "sh"])
        .arg(guest.get_program())
        .args(guest.get_args());
    let output = shell.output().expect("a shell");
    let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
    assert_eq!(text(&output.stdout), expected);
}

/// What a guest cannot do with its streams, whatever they are on the host.
fn nothing_of_the_host_shows() {
    let directory = scratch();
    let path = directory.path().join("secret-name");
    let mut command =
        Job::new(["/bin/readlink", "/proc/self/fd/0", "/proc/self/fd/1"]).guest_command();
    fs::write(&path, "x").expect("a file");
    let output = command
        .stdin(File::open(&path).expect("the file"))
        .output()
        .expect("agentrt");
    assert!(!text(&output.stdout).contains("secret-name"), "{output:?}");
    // Opening it again by its name in /proc is not a way to more rights.
    let mut command = Job::new(["/bin/sh", "-c", "echo changed >/proc/self/fd/0"]).guest_command();
    command
        .stdin(File::open(&path).expect("the file"))
        .output()
        .expect("agentrt");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "x");
}
