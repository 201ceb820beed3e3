use proptest::prelude::*;

use super::*;

fn file(quota: u64) -> MemoryFile {
    MemoryFile::new(&Budget::new(quota))
}

fn write(file: &mut MemoryFile, offset: u64, bytes: &[u8]) -> Result<usize> {
    let mut bytes = bytes.to_vec();
    file.write_at(offset, &[VolatileSlice::from(&mut bytes[..])])
}

fn read(file: &MemoryFile, offset: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0xaa; count];
    let count = file
        .read_at(offset, &[VolatileSlice::from(&mut bytes[..])])
        .unwrap();
    bytes.truncate(count);
    bytes
}

const KEEP: u32 = libc::FALLOC_FL_KEEP_SIZE as u32;
const PUNCH: u32 = libc::FALLOC_FL_PUNCH_HOLE as u32;
const ZERO: u32 = libc::FALLOC_FL_ZERO_RANGE as u32;

#[test]
fn sizes_and_offsets_are_bounded() {
    let mut file = file(1 << 20);
    assert_eq!(write(&mut file, MAX_FILE_SIZE, b"x"), Err(Errno::FBIG));
    assert_eq!(write(&mut file, u64::MAX, b"xyz"), Err(Errno::FBIG));
    assert_eq!(write(&mut file, MAX_FILE_SIZE - 1, b"xy"), Ok(1));
    assert_eq!(file.truncate(MAX_FILE_SIZE + 1), Err(Errno::FBIG));
    assert_eq!(file.allocate(0, u64::MAX, u64::MAX), Err(Errno::FBIG));
    assert_eq!(file.allocate(0, 0, 0), Err(Errno::INVAL));
    assert_eq!(file.allocate(0, 0, MAX_FILE_SIZE), Err(Errno::NOSPC));
    assert_eq!(file.allocate(8, 0, 1), Err(Errno::OPNOTSUPP));
    assert_eq!(file.allocate(PUNCH, 0, 1), Err(Errno::OPNOTSUPP));
    assert_eq!(file.blocks(), 8);
    file.allocate(PUNCH | KEEP, 0, MAX_FILE_SIZE).unwrap();
    assert_eq!(file.blocks(), 0);
    assert_eq!(file.size(), MAX_FILE_SIZE);
    assert_eq!(read(&file, u64::MAX, 4), b"");
}

#[test]
fn holes_are_found() {
    let mut file = file(1 << 20);
    write(&mut file, 10_000, b"x").unwrap();
    file.truncate(50_000).unwrap();
    assert_eq!(file.seek_data(0), Ok(8192));
    assert_eq!(file.seek_data(9000), Ok(9000));
    assert_eq!(file.seek_data(12_288), Err(Errno::NXIO));
    assert_eq!(file.seek_hole(0), Ok(0));
    assert_eq!(file.seek_hole(9000), Ok(12_288));
    assert_eq!(file.seek_hole(50_000), Err(Errno::NXIO));
    file.truncate(10_001).unwrap();
    assert_eq!(file.seek_hole(9000), Ok(10_001));
}

#[derive(Clone, Debug)]
enum Op {
    Write(u64, Vec<u8>),
    Truncate(u64),
    Allocate(u32, u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    let modes = prop::sample::select(vec![0, KEEP, PUNCH | KEEP, ZERO, ZERO | KEEP]);
    prop_oneof![
        (0..30_000u64, prop::collection::vec(1u8.., 0..9000)).prop_map(|(at, b)| Op::Write(at, b)),
        (0..40_000u64).prop_map(Op::Truncate),
        (modes, 0..30_000u64, 1..15_000u64).prop_map(|(m, at, n)| Op::Allocate(m, at, n)),
    ]
}

/// The same on plain bytes.
fn apply(model: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(_, bytes) if bytes.is_empty() => {}
        Op::Write(offset, bytes) => {
            let (start, end) = (*offset as usize, *offset as usize + bytes.len());
            model.resize(model.len().max(end), 0);
            model[start..end].copy_from_slice(bytes);
        }
        Op::Truncate(size) => model.resize(*size as usize, 0),
        Op::Allocate(mode, offset, length) => {
            let (start, end) = (*offset as usize, (offset + length) as usize);
            if mode & (PUNCH | ZERO) != 0 {
                let (from, to) = (start.min(model.len()), end.min(model.len()));
                model[from..to].fill(0);
            }
            if mode & KEEP == 0 {
                model.resize(model.len().max(end), 0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_plain_bytes(ops in prop::collection::vec(op(), 0..40)) {
        let budget = Budget::new(1 << 20);
        let mut file = MemoryFile::new(&budget);
        let mut model = Vec::new();
        for op in &ops {
            match op {
                Op::Write(offset, bytes) => {
                    prop_assert_eq!(write(&mut file, *offset, bytes), Ok(bytes.len()));
                }
                Op::Truncate(size) => file.truncate(*size).unwrap(),
                Op::Allocate(mode, offset, length) => {
                    file.allocate(*mode, *offset, *length).unwrap();
                }
            }
            apply(&mut model, op);
            prop_assert_eq!(file.size(), model.len() as u64);
            prop_assert!(read(&file, 0, 100_000) == model, "contents differ");
            let charged = budget.limit() - budget.free();
            prop_assert_eq!(charged, file.blocks() / 8 * CHUNK_COST);
        }
        drop(file);
        prop_assert_eq!(budget.free(), budget.limit());
    }
}
