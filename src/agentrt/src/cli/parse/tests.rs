use super::*;

#[test]
fn sizes() {
    assert_eq!(size("4096"), Ok(4096));
    assert_eq!(size("64K"), Ok(64 << 10));
    assert_eq!(size("2G"), Ok(2 << 30));
    for bad in ["", "M", "-1", "1.5G", "1GB", "99999999999T", "é"] {
        assert_eq!(size(bad), Err(ValueError::Size), "{bad}");
    }
}

#[test]
fn durations() {
    assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
    assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
    for bad in ["", "s", "-1s", "0", "1e300h", "nan"] {
        assert_eq!(duration(bad), Err(ValueError::Duration), "{bad}");
    }
}

#[test]
fn volumes() {
    let read_only = volume("/a:b:/c:ro").unwrap();
    assert_eq!(read_only.host, PathBuf::from("/a:b"));
    assert_eq!(read_only.guest, PathBuf::from("/c"));
    assert!(read_only.read_only && !volume("a:/c").unwrap().read_only);
    for bad in ["", "/a", "/a:c", ":/c", "/a:ro"] {
        assert!(volume(bad).is_err(), "{bad}");
    }
}

#[test]
fn destinations() {
    assert_eq!(destination("fd:3"), Ok(Destination::Descriptor(3)));
    assert_eq!(
        destination("x.json"),
        Ok(Destination::File("x.json".into()))
    );
    assert_eq!(destination("fd:-1"), Err(ValueError::Descriptor));
}
