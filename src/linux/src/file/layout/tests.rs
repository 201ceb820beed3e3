use agentrt_vfs::FileKind;

use super::*;

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn sample() -> Stat {
    let time = |seconds| Timestamp {
        seconds,
        nanoseconds: 999_999_999,
    };
    Stat {
        dev: libc::makedev(0, 513),
        ino: 1 << 40,
        mode: libc::S_IFREG | 0o640,
        nlink: 3,
        uid: 11,
        gid: 12,
        rdev: libc::makedev(5, 1),
        size: 1 << 41,
        blksize: 4096,
        blocks: 77,
        atime: time(-1),
        mtime: time(2),
        ctime: time(3),
        btime: time(4),
        attributes: 0x2000,
        attributes_mask: 0x3000,
        mount_id: 21,
    }
}

/// Offsets of `struct stat` in `arch/x86/include/uapi/asm/stat.h`.
#[test]
fn stat_as_the_kernel_has_it() {
    let bytes = stat(&sample());
    assert_eq!(bytes.len(), 144);
    assert_eq!(u64_at(&bytes, 0), libc::makedev(0, 513));
    assert_eq!(u64_at(&bytes, 8), 1 << 40);
    assert_eq!(u64_at(&bytes, 16), 3);
    assert_eq!(u32_at(&bytes, 24), libc::S_IFREG | 0o640);
    assert_eq!(
        (u32_at(&bytes, 28), u32_at(&bytes, 32), u32_at(&bytes, 36)),
        (11, 12, 0)
    );
    assert_eq!(u64_at(&bytes, 40), libc::makedev(5, 1));
    assert_eq!(
        (u64_at(&bytes, 48), u64_at(&bytes, 56), u64_at(&bytes, 64)),
        (1 << 41, 4096, 77)
    );
    assert_eq!(
        (u64_at(&bytes, 72) as i64, u64_at(&bytes, 80)),
        (-1, 999_999_999)
    );
    assert_eq!((u64_at(&bytes, 88), u64_at(&bytes, 104)), (2, 3));
    assert_eq!(bytes[120..], [0; 24]);
}

/// Offsets of `struct statx` in `include/uapi/linux/stat.h`.
#[test]
fn statx_as_the_kernel_has_it() {
    let bytes = statx(&sample());
    assert_eq!(bytes.len(), 256);
    assert_eq!((u32_at(&bytes, 0), u32_at(&bytes, 4)), (0x1fff, 4096));
    assert_eq!(u64_at(&bytes, 8), 0x2000);
    assert_eq!(
        (u32_at(&bytes, 16), u32_at(&bytes, 20), u32_at(&bytes, 24)),
        (3, 11, 12)
    );
    assert_eq!(u32_at(&bytes, 28), libc::S_IFREG | 0o640);
    assert_eq!(
        (u64_at(&bytes, 32), u64_at(&bytes, 40), u64_at(&bytes, 48)),
        (1 << 40, 1 << 41, 77)
    );
    assert_eq!(u64_at(&bytes, 56), 0x3000);
    let seconds = [64, 80, 96, 112].map(|offset| u64_at(&bytes, offset) as i64);
    assert_eq!(seconds, [-1, 4, 3, 2]);
    assert_eq!((u32_at(&bytes, 72), u32_at(&bytes, 76)), (999_999_999, 0));
    let devices = [128, 132, 136, 140].map(|offset| u32_at(&bytes, offset));
    assert_eq!(devices, [5, 1, 0, 513]);
    assert_eq!(u64_at(&bytes, 144), 21);
    assert_eq!(bytes[152..], [0; 104]);
}

/// Offsets of `struct statfs` in `include/uapi/asm-generic/statfs.h`.
#[test]
fn statfs_as_the_kernel_has_it() {
    let bytes = statfs(&StatFs {
        magic: 1,
        block_size: 2,
        blocks: 3,
        blocks_free: 4,
        files: 5,
        files_free: 6,
        fsid: 7,
        name_max: 8,
        flags: 9,
    });
    assert_eq!(bytes.len(), 120);
    let words: Vec<u64> = (0..15).map(|index| u64_at(&bytes, index * 8)).collect();
    assert_eq!(words, [1, 2, 3, 4, 4, 5, 6, 7, 8, 2, 9, 0, 0, 0, 0]);
}

fn entry(name: &[u8]) -> DirEntry<'_> {
    DirEntry {
        ino: 42,
        kind: FileKind::Directory,
        name,
        next: 7,
    }
}

#[test]
fn entries_of_both_formats() {
    let mut list = Vec::new();
    assert!(push_dirent(
        &mut list,
        1000,
        DirentFormat::New,
        &entry(b"abcde")
    ));
    // 8 + 8 + 2 + 1 + 5 + NUL = 25, aligned.
    assert_eq!(list.len(), 32);
    assert_eq!((u64_at(&list, 0), u64_at(&list, 8)), (42, 7));
    assert_eq!(list[16..19], [32, 0, libc::DT_DIR]);
    assert_eq!(&list[19..], b"abcde\0\0\0\0\0\0\0\0");

    let mut list = Vec::new();
    assert!(push_dirent(
        &mut list,
        1000,
        DirentFormat::Old,
        &entry(b"abcd")
    ));
    // 8 + 8 + 2 + 4 + NUL + type = 24.
    assert_eq!(list.len(), 24);
    assert_eq!(&list[18..23], b"abcd\0");
    assert_eq!(list[23], libc::DT_DIR);
}

#[test]
fn entries_stop_at_the_room() {
    let mut list = Vec::new();
    assert!(push_dirent(&mut list, 47, DirentFormat::New, &entry(b"a")));
    assert!(!push_dirent(&mut list, 47, DirentFormat::New, &entry(b"b")));
    assert!(push_dirent(&mut list, 48, DirentFormat::New, &entry(b"b")));
    assert_eq!(list.len(), 48);
    assert!(!push_dirent(
        &mut Vec::new(),
        0,
        DirentFormat::Old,
        &entry(b"")
    ));
}
