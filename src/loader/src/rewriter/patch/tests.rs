use iced_x86::{Code, Decoder, DecoderOptions, Register};

use super::*;

const MOV_EAX: [u8; 5] = [0xb8, 39, 0, 0, 0];
const SHIM: u64 = 0x7000_0000_1234;

fn site(file_offset: u64, displaced: &[u8]) -> Site {
    Site {
        file_offset,
        kind: SiteKind::Patch {
            start_file_offset: file_offset - displaced.len() as u64,
            displaced: displaced.to_vec(),
        },
    }
}

fn mapping() -> Mapping {
    Mapping {
        file_range: 0x1000..0x3000,
        address: 0x5555_0000_0000,
    }
}

#[test]
fn jumps_lead_to_trampolines_and_trampolines_to_the_shim() {
    // mov rbp, rsp; mov ebx, eax; mov eax, edx
    let several = [0x48, 0x89, 0xe5, 0x89, 0xc3, 0x89, 0xd0];
    let trap = Site {
        file_offset: 0x1500,
        kind: SiteKind::Trap,
    };
    let sites = [site(0x1105, &MOV_EAX), trap, site(0x2007, &several)];
    for area in [0x5555_1000_0000, 0x5554_f000_0000] {
        let layout = Trampolines::layout(&sites, &mapping(), area, SHIM).unwrap();
        assert_eq!(layout.area.len(), Trampolines::area_size(&sites));
        assert_eq!(layout.area[..8], SHIM.to_le_bytes());
        let [first, second] = layout.patches.as_slice() else {
            panic!("{} patches", layout.patches.len());
        };
        check(&layout, area, first, 0x5555_0000_0105, &MOV_EAX);
        check(&layout, area, second, 0x5555_0000_1007, &several);
    }
}

/// Decodes what a patch and its trampoline do.
fn check(layout: &Trampolines, area: u64, patch: &TextPatch, syscall: u64, displaced: &[u8]) {
    assert_eq!(patch.address + displaced.len() as u64, syscall);
    assert_eq!(patch.original, displaced);
    assert_eq!(patch.replacement.len(), displaced.len());
    let jump =
        Decoder::with_ip(64, &patch.replacement, patch.address, DecoderOptions::NONE).decode();
    assert_eq!(jump.code(), Code::Jmp_rel32_64);
    assert!(patch.replacement[5..].iter().all(|&byte| byte == 0xcc));

    let trampoline = jump.near_branch_target();
    let code = &layout.area[(trampoline - area) as usize..];
    assert!(code.starts_with(displaced));
    let ip = trampoline + displaced.len() as u64;
    let mut decoder = Decoder::with_ip(64, &code[displaced.len()..], ip, DecoderOptions::NONE);
    let lea = decoder.decode();
    assert_eq!(lea.code(), Code::Lea_r64_m);
    assert_eq!(lea.op0_register(), Register::RCX);
    assert_eq!(lea.ip_rel_memory_address(), syscall + 2);
    let jump = decoder.decode();
    assert_eq!(jump.code(), Code::Jmp_rm64);
    assert_eq!(jump.ip_rel_memory_address(), area);
}

#[test]
fn sites_outside_the_mapping_are_skipped() {
    let sites = [site(0x1002, &MOV_EAX), site(0x2fff, &MOV_EAX)];
    let layout = Trampolines::layout(&sites, &mapping(), 0x5555_1000_0000, SHIM).unwrap();
    assert!(layout.patches.is_empty());
}

#[test]
fn nothing_to_patch_needs_no_area() {
    assert_eq!(Trampolines::area_size(&[]), 0);
    let layout = Trampolines::layout(&[], &mapping(), 0, SHIM).unwrap();
    assert!(layout.area.is_empty() && layout.patches.is_empty());
}

#[test]
fn an_area_out_of_reach_is_refused() {
    let sites = [site(0x1105, &MOV_EAX)];
    let base = mapping().address;
    let layout = |area| Trampolines::layout(&sites, &mapping(), area, SHIM);
    assert!(layout(base + 0x7fff_0000).is_ok());
    assert!(matches!(
        layout(base + 0x8000_1000),
        Err(LayoutError::OutOfReach { .. })
    ));
    assert!(layout(base - 0x7fff_0000).is_ok());
    assert!(matches!(
        layout(base - 0x8000_1000),
        Err(LayoutError::OutOfReach { .. })
    ));
    assert_eq!(layout(u64::MAX), Err(LayoutError::AddressOverflow));
}

#[test]
fn runs_of_impossible_size_are_refused() {
    for size in [0, 4, RUN_MAX + 1] {
        let displaced = vec![0x90; size];
        assert_eq!(
            encode(&displaced, 0x10_0000, 0x20_0000, 0x20_0000),
            Err(LayoutError::DisplacedSize(size))
        );
    }
}
