use super::*;

fn memfd(seals: Seals, flags: OpenFlags) -> Rc<Description> {
    let (reader, _) = rustix::pipe::pipe().unwrap();
    let stream = Rc::new(crate::stream::Stream::new(reader, 1).unwrap());
    Description::with_seals(
        Object::Stream(stream),
        flags,
        Some(Rc::new(Cell::new(seals))),
    )
}

#[test]
fn seals_are_added_until_sealed() {
    let file = memfd(Seals::empty(), OpenFlags::RDWR);
    assert_eq!(add(&file, libc::F_SEAL_GROW as u32), Ok(()));
    assert_eq!(add(&file, 1 << 20), Err(Errno::INVAL));
    assert_eq!(add(&file, libc::F_SEAL_SEAL as u32), Ok(()));
    assert_eq!(add(&file, libc::F_SEAL_WRITE as u32), Err(Errno::PERM));
    assert_eq!(
        get(&file),
        Ok((libc::F_SEAL_GROW | libc::F_SEAL_SEAL) as u64)
    );
    let read_only = memfd(Seals::empty(), OpenFlags::empty());
    assert_eq!(add(&read_only, libc::F_SEAL_GROW as u32), Err(Errno::PERM));
}

#[test]
fn what_seals_forbid() {
    assert_eq!(check_write(Seals::WRITE, 10, 5), Err(Errno::PERM));
    assert_eq!(check_write(Seals::FUTURE_WRITE, 10, 5), Err(Errno::PERM));
    assert_eq!(check_write(Seals::GROW | Seals::SHRINK, 10, 10), Ok(()));
    assert_eq!(check_write(Seals::GROW, 10, 11), Err(Errno::PERM));
    assert_eq!(check_resize(Seals::SHRINK, 10, 11), Ok(()));
    assert_eq!(check_resize(Seals::SHRINK, 10, 9), Err(Errno::PERM));
    assert_eq!(check_resize(Seals::GROW, 10, 9), Ok(()));
    assert_eq!(check_resize(Seals::GROW, 10, 11), Err(Errno::PERM));
}
