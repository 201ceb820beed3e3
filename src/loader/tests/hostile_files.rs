//! Arbitrary and damaged files: every function that reads one answers, and never panics.

use std::fs;

use agentrt_loader::rewriter::{SiteKind, Trampolines, analyse};
use agentrt_loader::{elf, script};
use proptest::prelude::*;

/// Small, with symbols' and unwind tables and true sites.
const VICTIM: &str = "/lib64/ld-linux-x86-64.so.2";

fn try_everything(file: &[u8]) {
    if let Ok(image) = elf::parse(file) {
        let span = image.span();
        assert!(span.start < span.end && span.end <= elf::USER_END);
        for segment in &image.segments {
            assert!(segment.file_offset.saturating_add(segment.file_size) <= file.len() as u64);
            assert!(segment.memory_size >= segment.file_size);
        }
    }
    script::parse(file);
    if let Ok(analysis) = analyse(file) {
        for site in &analysis.sites {
            let offset = site.file_offset as usize;
            assert_eq!(file[offset..offset + 2], [0x0f, 0x05]);
            if let SiteKind::Patch {
                start_file_offset,
                displaced,
            } = &site.kind
            {
                let start = *start_file_offset as usize;
                assert_eq!(&file[start..offset], displaced);
            }
        }
        assert!(Trampolines::area_size(&analysis.sites) <= 64 * file.len());
    }
}

/// Offsets of a file, mostly in its headers.
fn offset(size: usize) -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..size.min(1024), 2 => size - size.min(2048)..size, 1 => 0..size]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        try_everything(&bytes);
    }

    #[test]
    fn an_elf_header_and_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        let mut file = fs::read(VICTIM).unwrap();
        file.truncate(64);
        file.extend(bytes);
        try_everything(&file);
    }

    #[test]
    fn damaged_files(
        changes in prop::collection::vec((offset(200_000), any::<u8>()), 1..8),
        keep in prop_oneof![3 => Just(1.0), 1 => 0.0..1.0_f64],
    ) {
        let mut file = fs::read(VICTIM).unwrap();
        for (offset, byte) in changes {
            if let Some(place) = file.get_mut(offset) {
                *place = byte;
            }
        }
        file.truncate((file.len() as f64 * keep) as usize);
        try_everything(&file);
    }

    #[test]
    fn damaged_words(
        changes in prop::collection::vec((offset(200_000), any::<u64>()), 1..4),
    ) {
        let mut file = fs::read(VICTIM).unwrap();
        for (offset, word) in changes {
            let offset = offset & !7;
            if let Some(place) = file.get_mut(offset..offset + 8) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        try_everything(&file);
    }
}
