use super::*;
use crate::testing::Guest;

fn volume(host: impl Into<PathBuf>, guest: &str) -> Volume {
    Volume {
        host: host.into(),
        guest: guest.into(),
        read_only: false,
    }
}

fn error(config: &Config) -> SetupError {
    match build(config) {
        Ok(_) => panic!("{config:?} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn what_is_wrong_is_named() {
    let image = tempfile::tempdir().unwrap();
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("file"), "").unwrap();
    let missing = error(&Config::new("/does/not/exist"));
    assert!(matches!(
        missing,
        SetupError::Root {
            reason: Errno::NOENT,
            ..
        }
    ));
    assert!(missing.to_string().contains("/does/not/exist"));
    let file = error(&Config::new(host.path().join("file")));
    assert!(matches!(
        file,
        SetupError::Root {
            reason: Errno::NOTDIR,
            ..
        }
    ));
    let with = |volumes: Vec<Volume>| {
        let mut config = Config::new(image.path());
        config.volumes = volumes;
        error(&config)
    };
    let path = host.path();
    assert!(matches!(
        with(vec![volume(path.join("none"), "/x")]),
        SetupError::VolumeHost { .. }
    ));
    assert!(matches!(
        with(vec![volume("/dev/null", "/x")]),
        SetupError::VolumeKind { .. }
    ));
    for kernel in ["/proc", "/proc/version", "/sys/kernel"] {
        assert!(
            matches!(
                with(vec![volume(kernel, "/x")]),
                SetupError::VolumeKernel { .. }
            ),
            "{kernel}"
        );
    }
    for guest in ["x", "/", "", "/a/../b"] {
        assert!(
            matches!(
                with(vec![volume(path, guest)]),
                SetupError::GuestPath { .. }
            ),
            "{guest}"
        );
    }
    let twice = vec![volume(path, "/x"), volume(path, "/x/")];
    assert!(matches!(with(twice), SetupError::Duplicate { .. }));
    assert!(matches!(
        with(vec![volume(path, "/proc")]),
        SetupError::Duplicate { .. }
    ));
    assert!(matches!(
        with(vec![volume(path, "/proc/x")]),
        SetupError::MountPoint { .. }
    ));
    assert!(matches!(
        with(vec![volume(path, "/sys/x")]),
        SetupError::MountPoint { .. }
    ));
    let nested = vec![volume(path, "/x"), volume(path, "/x/none")];
    assert!(matches!(
        with(nested),
        SetupError::MountPoint {
            reason: Errno::NOENT,
            ..
        }
    ));
    let mismatch = vec![volume(path, "/x"), volume(path, "/x/file")];
    assert!(matches!(with(mismatch), SetupError::KindMismatch { .. }));
    assert!(matches!(
        with(vec![volume(path, "/x"); 300]),
        SetupError::TooManyVolumes { .. }
    ));
}

#[test]
fn volumes_nest_and_follow_links() {
    let image = tempfile::tempdir().unwrap();
    let host = tempfile::tempdir().unwrap();
    std::fs::create_dir(host.path().join("sub")).unwrap();
    std::fs::write(host.path().join("file"), "file").unwrap();
    std::os::unix::fs::symlink("/real", image.path().join("link")).unwrap();
    std::fs::create_dir(image.path().join("real")).unwrap();
    let mut config = Config::new(image.path());
    // Named before the volume that holds it.
    config.volumes = vec![
        volume(host.path(), "/link/x/sub"),
        volume(host.path(), "/link/x"),
    ];
    let mut guest = Guest::new(config);
    assert_eq!(guest.read("/real/x/sub/file").unwrap(), "file");
    assert_eq!(guest.read("/real/x/sub/../file").unwrap(), "file");
    assert_eq!(
        guest.rename("/real/x/sub", "/real/x/y").err(),
        Some(Errno::BUSY)
    );
    let place = guest.find("/real/x/sub/sub").unwrap();
    assert_eq!(guest.vfs.path_of(&place), b"/real/x/sub/sub");
    let mounts = guest.read("/proc/mounts").unwrap();
    assert!(mounts.contains("volume /real/x/sub volume rw"), "{mounts}");
}

#[test]
fn no_quota_is_a_tree_that_cannot_change() {
    let image = tempfile::tempdir().unwrap();
    let mut config = Config::new(image.path());
    config.overlay_quota = 0;
    let mut guest = Guest::new(config);
    assert_eq!(guest.mkdir("x").err(), Some(Errno::NOSPC));
    assert!(guest.open("/dev/null", libc::O_RDWR).is_ok());
}
