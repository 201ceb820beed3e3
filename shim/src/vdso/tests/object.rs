//! Reads the image as a libc does: through its segments, by name and version.

pub const STB_GLOBAL: u8 = 1;
pub const STB_WEAK: u8 = 2;
const STT_FUNC: u8 = 2;

#[derive(Debug, PartialEq, Eq)]
pub struct Symbol {
    pub binding: u8,
    pub value: u64,
    pub size: u64,
}

pub struct Object<'a> {
    bytes: &'a [u8],
    /// Address, size and flags of what is loaded.
    pub load: (u64, u64, u32),
    dynamic: Vec<(u64, u64)>,
}

impl<'a> Object<'a> {
    pub fn parse(bytes: &'a [u8]) -> Object<'a> {
        assert_eq!(&bytes[..7], b"\x7fELF\x02\x01\x01");
        assert_eq!((half(bytes, 16), half(bytes, 18)), (3, 62));
        let segment = |kind| {
            let start = long(bytes, 32) as usize;
            (0..usize::from(half(bytes, 56)))
                .map(|index| start + index * 56)
                .find(|&segment| word(bytes, segment) == kind)
                .unwrap()
        };
        let load = segment(1);
        assert_eq!(long(bytes, load + 8), 0, "offsets are addresses");
        let dynamic = long(bytes, segment(2) + 16) as usize;
        Object {
            bytes,
            load: (
                long(bytes, load + 16),
                long(bytes, load + 40),
                word(bytes, load + 4),
            ),
            dynamic: (0..)
                .map(|index| dynamic + index * 16)
                .map(|entry| (long(bytes, entry), long(bytes, entry + 8)))
                .take_while(|&(tag, _)| tag != 0)
                .collect(),
        }
    }

    pub fn dynamic(&self, tag: u64) -> Option<u64> {
        self.dynamic
            .iter()
            .find(|entry| entry.0 == tag)
            .map(|entry| entry.1)
    }

    fn table(&self, tag: u64) -> usize {
        self.dynamic(tag).unwrap() as usize
    }

    fn string(&self, offset: u64) -> &'a str {
        assert!(offset < self.dynamic(10).unwrap());
        let bytes = &self.bytes[self.table(5) + offset as usize..];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap();
        std::str::from_utf8(&bytes[..end]).unwrap()
    }

    pub fn soname(&self) -> &'a str {
        self.string(self.dynamic(14).unwrap())
    }

    /// Follows the chain of the name's bucket.
    pub fn find(&self, name: &str, version: &str) -> Option<Symbol> {
        let hash = self.table(4);
        let (buckets, chains) = (word(self.bytes, hash), word(self.bytes, hash + 4));
        let bucket = elf_hash(name) % buckets;
        let mut index = word(self.bytes, hash + 8 + bucket as usize * 4);
        let mut left = chains;
        while index != 0 {
            assert!(index < chains && left > 0, "a chain without end");
            let symbol = self.table(6) + index as usize * 24;
            let found = self.string(word(self.bytes, symbol).into());
            if found == name && self.version_of(index) == version {
                return Some(self.symbol(symbol));
            }
            index = word(self.bytes, hash + 8 + (buckets + index) as usize * 4);
            left -= 1;
        }
        None
    }

    fn symbol(&self, at: usize) -> Symbol {
        let info = self.bytes[at + 4];
        assert_eq!(info & 15, STT_FUNC);
        assert_ne!(half(self.bytes, at + 6), 0, "undefined");
        Symbol {
            binding: info >> 4,
            value: long(self.bytes, at + 8),
            size: long(self.bytes, at + 16),
        }
    }

    fn version_of(&self, symbol: u32) -> &'a str {
        let wanted = half(self.bytes, self.table(0x6fff_fff0) + symbol as usize * 2);
        let mut definition = self.table(0x6fff_fffc);
        for _ in 0..self.dynamic(0x6fff_fffd).unwrap() {
            let name = definition + word(self.bytes, definition + 12) as usize;
            let text = self.string(word(self.bytes, name).into());
            assert_eq!(word(self.bytes, definition + 8), elf_hash(text));
            if half(self.bytes, definition + 4) == wanted {
                return text;
            }
            definition += word(self.bytes, definition + 16) as usize;
        }
        panic!("no version {wanted}")
    }
}

/// The hash of the System V gABI, chapter 5.
fn elf_hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let sum = (hash << 4) + u32::from(byte);
        let high = sum & 0xf000_0000;
        (sum ^ high >> 24) & !high
    })
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
