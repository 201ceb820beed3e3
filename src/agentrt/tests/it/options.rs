//! The options of `agentrt run`, as README.md documents them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::harness::{ENVIRONMENT, Ended, Job, listing, process, scratch, tests};

tests![
    environment_is_clean,
    environment_is_set,
    directory,
    root_is_an_image,
    root_is_never_changed,
    hide,
    volume_is_writable,
    volume_is_read_only,
    volumes_nest,
    volume_of_one_file,
    volume_with_colons,
    memory_limit,
    timeout,
    timeout_while_reading,
    help_and_version,
];

/// An image with busybox and nothing else.
pub fn image() -> TempDir {
    let image = scratch();
    let path = |name: &str| image.path().join(name);
    for directory in ["bin", "etc", "tmp"] {
        fs::create_dir(path(directory)).expect("a directory");
    }
    fs::copy("/usr/bin/busybox", path("bin/busybox")).expect("a static busybox");
    symlink("busybox", path("bin/sh")).expect("a link");
    fs::write(path("etc/motd"), "of the image\n").expect("a file");
    image
}

/// A busybox command in an image.
fn busybox(image: &Path, command: &[&str]) -> Job {
    let mut root = std::ffi::OsString::from("--root=");
    root.push(image);
    Job::new([&["/bin/busybox"], command].concat()).option(root)
}

fn environment_is_clean() {
    let outcome = Job::new(["/usr/bin/env"]).guest().ok();
    let expected: String = ENVIRONMENT
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    assert_eq!(outcome.out(), expected);
}

fn environment_is_set() {
    let job = Job::new(["/usr/bin/env"])
        .option("--env=A=1")
        .option("--env=HOME=/tmp");
    let out = job
        .option("--env=A=2=3")
        .option("--env=EMPTY=")
        .guest()
        .ok()
        .out();
    let lines: Vec<&str> = out.lines().collect();
    for line in ["A=2=3", "HOME=/tmp", "EMPTY=", "USER=root"] {
        assert!(lines.contains(&line), "{line}: {out}");
    }
    assert_eq!(lines.len(), 6, "{out}");
}

fn directory() {
    let pwd = |directory: &str| Job::new(["/bin/pwd", "-P"]).directory(directory).guest();
    assert_eq!(pwd("/usr/share").ok().out(), "/usr/share\n");
    assert_eq!(pwd("/usr/../usr/./lib//").ok().out(), "/usr/lib\n");
    for wrong in ["/nowhere", "/etc/passwd"] {
        let outcome = pwd(wrong).ended(Ended::Exit(125));
        assert!(outcome.err().contains(wrong), "{outcome:?}");
    }
}

fn root_is_an_image() {
    let image = image();
    let out = busybox(image.path(), &["cat", "/etc/motd"])
        .guest()
        .ok()
        .out();
    assert_eq!(out, "of the image\n");
    // A name in PATH, and the shell that is a link.
    let job = Job::new(["sh", "-c", "echo $0; cd /; echo *"]);
    let out = job
        .option(format!("--root={}", image.path().display()))
        .guest()
        .ok()
        .out();
    assert!(
        out.starts_with("sh\n") && out.contains("bin") && out.contains("etc"),
        "{out}"
    );
    assert!(!out.contains("usr"), "{out}");
    let missing = busybox(image.path(), &["true"]).option("--root=/nowhere/at/all");
    assert!(!missing.guest().err().is_empty());
}

fn root_is_never_changed() {
    let image = image();
    let before = listing(image.path());
    // Redirections are the shell's own work: no fork.
    let script = "echo changed >/etc/motd; echo x >/new; : >/bin/busybox";
    busybox(image.path(), &["sh", "-c", script]).guest().ok();
    assert_eq!(listing(image.path()), before);
    let script = "import os\n\
        open('/etc/motd', 'w').write('changed')\n\
        os.mkdir('/new'); open('/new/file', 'w').write('x')\n\
        os.rename('/tmp', '/moved'); os.remove('/etc/passwd'); os.chmod('/usr', 0)\n\
        print(open('/etc/motd').read(), os.listdir('/new'), os.path.exists('/etc/passwd'))";
    let host = (
        fs::read("/etc/motd").ok(),
        fs::metadata("/usr").expect("/usr").permissions(),
    );
    assert_eq!(
        Job::python(script).guest().ok().out(),
        "changed ['file'] False\n"
    );
    assert_eq!(
        host,
        (
            fs::read("/etc/motd").ok(),
            fs::metadata("/usr").expect("/usr").permissions()
        )
    );
    assert!(Path::new("/etc/passwd").exists() && !Path::new("/new").exists());
}

fn hide() {
    let directory = scratch();
    fs::write(directory.path().join("secret"), "hidden").expect("a file");
    let path = directory.path().display().to_string();
    let list = Job::new(["/bin/ls", "-A", &path]);
    assert_eq!(list.guest().ok().out(), "secret\n");
    let outcome = list.option(format!("--hide={path}")).guest();
    assert!(!outcome.out().contains("secret"), "{outcome:?}");
}

fn volume_is_writable() {
    let directory = scratch();
    let job =
        Job::new(["/bin/cp", "/etc/hostname", "/data/copy"]).volume(directory.path(), "/data");
    job.guest().ok();
    let copy = fs::read(directory.path().join("copy")).expect("the copy");
    assert_eq!(copy, fs::read("/etc/hostname").expect("the original"));
}

fn volume_is_read_only() {
    let directory = scratch();
    fs::write(directory.path().join("file"), "contents").expect("a file");
    let before = listing(directory.path());
    let script = "import os\n\
        print(open('/data/file').read())\n\
        for name, arguments in [('mkdir', ['/data/new']), ('remove', ['/data/file']),\n   \
          ('rename', ['/data/file', '/data/other']), ('symlink', ['x', '/data/link']),\n   \
          ('link', ['/data/file', '/data/link']), ('chmod', ['/data/file', 0]),\n   \
          ('truncate', ['/data/file', 0]), ('utime', ['/data/file']),\n   \
          ('open', ['/data/file', os.O_WRONLY]), ('open', ['/data/new', os.O_CREAT])]:\n \
         try: getattr(os, name)(*arguments); print(name, 'done')\n \
         except OSError as error: print(name, error.strerror)";
    let volume = format!("--volume={}:/data:ro", directory.path().display());
    let out = Job::python(script).option(volume).guest().ok().out();
    let (first, rest) = out.split_once('\n').expect("lines");
    assert_eq!(first, "contents");
    assert_eq!(rest.lines().count(), 10, "{out}");
    assert!(
        rest.lines()
            .all(|line| line.ends_with(" Read-only file system")),
        "{out}"
    );
    assert_eq!(listing(directory.path()), before);
}

fn volumes_nest() {
    let (outer, inner) = (scratch(), scratch());
    fs::create_dir(outer.path().join("sub")).expect("a directory");
    fs::write(inner.path().join("file"), "inner").expect("a file");
    let script = "import os\n\
        print(os.listdir('/data'), open('/data/sub/file').read())\n\
        open('/data/sub/new', 'w').write('x'); open('/data/other', 'w').write('y')\n\
        try: os.rename('/data/sub/new', '/data/moved')\n\
        except OSError as error: print(error.strerror)\n\
        try: os.rmdir('/data/sub')\n\
        except OSError as error: print(error.strerror)";
    let job = Job::python(script)
        .volume(outer.path(), "/data")
        .volume(inner.path(), "/data/sub");
    let out = job.guest().ok().out();
    assert_eq!(
        out,
        "['sub'] inner\nInvalid cross-device link\nDevice or resource busy\n"
    );
    assert!(inner.path().join("new").exists() && outer.path().join("other").exists());
}

fn volume_of_one_file() {
    let directory = scratch();
    let file = directory.path().join("settings");
    fs::write(&file, "one\n").expect("a file");
    fs::write(directory.path().join("other"), "not shown").expect("a file");
    let job = Job::python(
        "open('/etc/settings', 'a').write('two\\n')\nimport os\nprint(os.listdir('/etc').count('settings'))",
    );
    assert_eq!(job.volume(&file, "/etc/settings").guest().ok().out(), "1\n");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "one\ntwo\n");
}

fn volume_with_colons() {
    let directory = scratch();
    let host = directory.path().join("a:b");
    fs::create_dir(&host).expect("a directory");
    Job::new(["/usr/bin/touch", "/data/file"])
        .volume(&host, "/data")
        .guest()
        .ok();
    assert!(host.join("file").exists());
}

fn memory_limit() {
    let job = Job::python("x = bytearray(200 << 20); print(len(x))");
    assert_eq!(job.guest().ok().out(), "209715200\n");
    // Refused at once, as more than all there is.
    let outcome = job
        .clone()
        .option("--memory=128M")
        .guest()
        .ended(Ended::Exit(1));
    assert!(outcome.err().contains("MemoryError"), "{outcome:?}");
    // Used up piece by piece.
    let greedy = Job::python("x = []\nwhile True: x.append(bytearray(1 << 20))");
    let outcome = greedy
        .option("--memory=128M")
        .guest()
        .ended(Ended::Signal(9));
    assert!(outcome.err().contains("--memory"), "{outcome:?}");
    // A small machine is enough for a small program.
    Job::new(["/bin/true"]).option("--memory=16M").guest().ok();
    for memory in ["0", "4096", "1T", "16777215T"] {
        let outcome = Job::new(["/bin/true"])
            .option(format!("--memory={memory}"))
            .guest();
        let fine = outcome.ended == Ended::Exit(0) || outcome.err().starts_with("agentrt: ");
        assert!(
            fine && matches!(outcome.ended, Ended::Exit(0 | 125)),
            "{memory}: {outcome:?}"
        );
    }
}

fn timeout() {
    for wait in ["while True: pass", "import time; time.sleep(1000)"] {
        let started = Instant::now();
        let outcome = Job::python(wait)
            .option("--timeout=500ms")
            .guest()
            .ended(Ended::Exit(124));
        assert!(outcome.err().contains("--timeout"), "{outcome:?}");
        let took = started.elapsed();
        assert!((500..10_000).contains(&took.as_millis()), "{took:?}");
    }
    Job::new(["/bin/true"])
        .option("--timeout=1h")
        .limit(Duration::from_secs(10))
        .guest()
        .ok();
}

/// A program that waits for input, which its starter keeps open.
fn timeout_while_reading() {
    let job = Job::new(["/bin/cat"]).option("--timeout=300ms");
    let mut child = process::spawn(job.guest_command());
    let _input = child.stdin.take();
    let outcome = process::finish_child(child, Vec::new(), Duration::from_secs(20));
    assert_eq!(outcome.expect("an end in time").ended, Ended::Exit(124));
}

fn help_and_version() {
    let run = |arguments: &[&str]| {
        std::process::Command::new(super::harness::agentrt())
            .args(arguments)
            .output()
            .expect("agentrt")
    };
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["--version"],
        &["help", "run"],
    ] {
        let output = run(arguments);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        assert!(!output.stdout.is_empty());
    }
    let help = String::from_utf8_lossy(&run(&["run", "--help"]).stdout).into_owned();
    let documented = [
        "root", "memory", "cwd", "env", "volume", "timeout", "stats", "strace",
    ];
    for option in documented {
        assert!(help.contains(&format!("--{option}")), "{option}: {help}");
    }
}
