use super::*;
use crate::elf::PAGE_SIZE;

const TOP: u64 = 0x7fff_ffff_0000;

fn strings(list: &[&str]) -> Vec<Vec<u8>> {
    list.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn contents<'a>(argv: &'a [Vec<u8>], envp: &'a [Vec<u8>], auxv: &'a [(u64, u64)]) -> Contents<'a> {
    Contents {
        top: TOP,
        limit: 8 << 20,
        argv,
        envp,
        auxv,
        exec_filename: b"/bin/cat",
        platform: b"x86_64",
        random: *b"0123456789abcdef",
    }
}

/// Reads a stack the way libc does.
struct Reader(InitialStack);

impl Reader {
    fn bytes(&self, address: u64) -> &[u8] {
        &self.0.bytes[(address - self.0.stack_pointer) as usize..]
    }

    fn word(&self, index: u64) -> u64 {
        let bytes = self.bytes(self.0.stack_pointer + index * 8);
        u64::from_le_bytes(*bytes.first_chunk().unwrap())
    }

    fn string(&self, address: u64) -> &[u8] {
        self.bytes(address).split(|&byte| byte == 0).next().unwrap()
    }
}

#[test]
fn libc_finds_everything() {
    let argv = strings(&["cat", "", "file"]);
    let envp = strings(&["HOME=/root", "A=b"]);
    let stack = build(&contents(&argv, &envp, &[(6, PAGE_SIZE), (16, 7)])).unwrap();
    assert_eq!(stack.stack_pointer % 16, 0);
    assert_eq!(stack.stack_pointer + stack.bytes.len() as u64, TOP);

    let stack = Reader(stack);
    assert_eq!(stack.word(0), 3);
    for (index, string) in argv.iter().enumerate() {
        assert_eq!(stack.string(stack.word(1 + index as u64)), string);
    }
    assert_eq!(stack.word(4), 0);
    for (index, string) in envp.iter().enumerate() {
        assert_eq!(stack.string(stack.word(5 + index as u64)), string);
    }
    assert_eq!(stack.word(7), 0);
    let auxv: Vec<_> = (0..6)
        .map(|index| (stack.word(8 + 2 * index), stack.word(9 + 2 * index)))
        .collect();
    assert_eq!(auxv[..2], [(6, PAGE_SIZE), (16, 7)]);
    assert_eq!(auxv[2].0, AT_PLATFORM);
    assert_eq!(stack.string(auxv[2].1), b"x86_64");
    assert_eq!(auxv[3].0, AT_RANDOM);
    assert!(stack.bytes(auxv[3].1).starts_with(b"0123456789abcdef"));
    assert_eq!(auxv[4].0, AT_EXECFN);
    assert_eq!(stack.string(auxv[4].1), b"/bin/cat");
    assert_eq!(auxv[5], (AT_NULL, 0));
}

#[test]
fn strings_lie_as_on_linux() {
    let argv = strings(&["one", "two"]);
    let envp = strings(&["A=1", "B=2"]);
    let stack = build(&contents(&argv, &envp, &[])).unwrap();
    let expected = b"one\0two\0A=1\0B=2\0/bin/cat\0\0\0\0\0\0\0\0\0";
    assert!(stack.bytes.ends_with(expected));
}

#[test]
fn the_stack_pointer_is_aligned_whatever_lies_above() {
    for length in 0..40 {
        for count in 0..3 {
            let argv = vec![vec![b'a'; length]; count];
            let stack = build(&contents(&argv, &[], &[(6, PAGE_SIZE)])).unwrap();
            assert_eq!(stack.stack_pointer % 16, 0);
        }
    }
}

#[test]
fn without_arguments_there_is_an_empty_one() {
    let stack = Reader(build(&contents(&[], &[], &[])).unwrap());
    assert_eq!(stack.word(0), 1);
    assert_eq!(stack.string(stack.word(1)), b"");
    assert_eq!(stack.word(2), 0);
}

#[test]
fn one_string_is_bounded() {
    let argv = vec![vec![b'a'; STRING_MAX as usize - 1]];
    assert!(build(&contents(&argv, &[], &[])).is_ok());
    let argv = vec![vec![b'a'; STRING_MAX as usize]];
    assert_eq!(
        build(&contents(&argv, &[], &[])),
        Err(StackError::StringTooLong(STRING_MAX + 1))
    );
}

#[test]
fn the_total_is_a_quarter_of_the_limit_within_bounds() {
    let allowed = |limit: u64, size: usize| {
        let argv = vec![vec![b'a'; 1023]; size / 1032];
        let mut contents = contents(&argv, &[], &[]);
        contents.limit = limit;
        build(&contents)
    };
    assert!(allowed(8 << 20, (2 << 20) - 2048).is_ok());
    assert!(matches!(
        allowed(8 << 20, (2 << 20) + 2048),
        Err(StackError::TooLong { limit, .. }) if limit == 2 << 20
    ));
    assert!(allowed(0, (128 << 10) - 2048).is_ok());
    assert!(matches!(
        allowed(u64::MAX, (6 << 20) + 2048),
        Err(StackError::TooLong { limit, .. }) if limit == 6 << 20
    ));
}

#[test]
fn pointers_count_too() {
    let argv = vec![Vec::new(); 300_000];
    assert!(matches!(
        build(&contents(&argv, &[], &[])),
        Err(StackError::TooLong { size, .. }) if size > 2_700_000
    ));
}

#[test]
fn what_cannot_be_a_stack_is_refused() {
    let with_nul = strings(&["a\0b"]);
    assert_eq!(
        build(&contents(&with_nul, &[], &[])),
        Err(StackError::EmbeddedNul)
    );
    for kind in [AT_NULL, AT_PLATFORM, AT_RANDOM, AT_EXECFN] {
        assert_eq!(
            build(&contents(&[], &[], &[(kind, 1)])),
            Err(StackError::ReservedEntry(kind))
        );
    }
    for top in [TOP + 8, USER_END + 16, 64, 0] {
        let mut contents = contents(&[], &[], &[]);
        contents.top = top;
        assert_eq!(build(&contents), Err(StackError::Top(top)));
    }
}
