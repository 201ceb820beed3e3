//! Attempts to get out: an image and a volume, with secrets beside both.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::harness::{Ended, Job, listing, scratch, tests};

tests![
    the_secret_stays_secret,
    nothing_is_written_outside,
    calls_are_refused,
    read_only_volume,
    through_the_whole_root
];

const ATTEMPTS: &str = include_str!("scripts/escape.py");
/// What must never be seen inside.
const SECRET: &str = "the-secret-of-the-host";

/// `outside/` holds secrets, `outside/image` is the root, `outside/volume` is at /data.
struct Prison {
    outside: TempDir,
}

impl Prison {
    fn new() -> Prison {
        let prison = Prison { outside: scratch() };
        let path = |name: &str| prison.outside.path().join(name);
        for directory in [
            "image",
            "image/tmp",
            "image/data",
            "image/usr",
            "volume/sub",
        ] {
            fs::create_dir_all(path(directory)).expect("a directory");
        }
        fs::write(path("secret"), SECRET).expect("a secret");
        fs::set_permissions(path("secret"), fs::Permissions::from_mode(0o644)).expect("a mode");
        fs::write(path("volume/file"), "inside").expect("a file");
        for (target, name) in [
            (path("secret").as_path(), "volume/absolute"),
            (Path::new("../secret"), "volume/relative"),
            (Path::new(".."), "volume/up"),
            (Path::new("../.."), "volume/sub/up"),
            (Path::new("/"), "volume/root"),
            (path("new").as_path(), "volume/dangling"),
            (path("secret").as_path(), "image/image-link"),
            (Path::new(".."), "image/image-up"),
        ] {
            symlink(target, path(name)).expect("a link");
        }
        for directory in ["bin", "lib", "lib64"] {
            symlink(
                Path::new("usr").join(directory),
                path("image").join(directory),
            )
            .expect("a link");
        }
        prison
    }

    /// The attempts, in Python, whose own files are a volume.
    fn job(&self, mode: &str) -> Job {
        let outside = self.outside.path().display();
        Job::new([
            "/usr/bin/python3",
            "-c",
            ATTEMPTS,
            &format!("{outside}/secret"),
        ])
        .option(format!("--root={outside}/image"))
        .option(format!("--volume={outside}/volume:/data{mode}"))
        .option("--volume=/usr:/usr:ro")
    }

    /// What is outside of image and volume.
    fn surroundings(&self) -> String {
        let text = listing(self.outside.path());
        let kept = text.lines().filter(|line| !line.contains(" \"volume"));
        kept.collect::<Vec<_>>().join("\n")
    }
}

fn the_secret_stays_secret() {
    let prison = Prison::new();
    let outcome = prison.job("").guest();
    assert_eq!(outcome.ended, Ended::Exit(0), "{outcome:?}");
    let reports = outcome.out();
    assert!(reports.lines().count() >= 25, "{outcome:?}");
    for report in reports.lines() {
        assert!(!report.contains(SECRET), "{report}");
        // The names of what lies beside image and volume are none of its business either.
        assert!(
            !report.contains("image volume") && !report.contains("'secret'"),
            "{report}"
        );
    }
}

fn nothing_is_written_outside() {
    let prison = Prison::new();
    let before = prison.surroundings();
    prison.job("").guest().ended(Ended::Exit(0));
    assert_eq!(prison.surroundings(), before);
    // What was meant for the volume is there.
    assert!(prison.outside.path().join("volume/deep/d/d").is_dir());
}

fn calls_are_refused() {
    let out = Prison::new().job("").guest().out();
    let line = |name: &str| {
        out.lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {out}"))
            .to_owned()
    };
    assert_eq!(line("refused_calls").trim(), "refused_calls allowed:");
    assert_eq!(line("proc_writes").trim(), "proc_writes written:");
    assert_eq!(line("device_nodes"), "device_nodes []");
    assert!(
        !line("file_handles").contains("got"),
        "{}",
        line("file_handles")
    );
}

fn read_only_volume() {
    let prison = Prison::new();
    let volume = listing(&prison.outside.path().join("volume"));
    let before = prison.surroundings();
    let outcome = prison.job(":ro").guest();
    assert!(!outcome.out().contains(SECRET), "{outcome:?}");
    assert_eq!(prison.surroundings(), before);
    assert_eq!(listing(&prison.outside.path().join("volume")), volume);
}

/// With the host's root as the image the secret can be read, as it is part of the image; it and all
/// else cannot be changed.
fn through_the_whole_root() {
    let prison = Prison::new();
    let before = listing(prison.outside.path());
    let path = prison.outside.path().display();
    let script = format!(
        "import os, shutil\n\
         print(open('{path}/secret').read())\n\
         open('{path}/secret', 'w').write('x'); shutil.rmtree('{path}/volume'); os.rename('{path}', '/tmp/moved')\n\
         print(open('/tmp/moved/secret').read())"
    );
    let outcome = Job::python(&script).guest().ok();
    assert_eq!(outcome.out(), format!("{SECRET}\nx\n"));
    assert_eq!(listing(prison.outside.path()), before);
}
