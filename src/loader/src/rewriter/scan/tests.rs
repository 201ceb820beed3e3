use super::*;
use crate::sample::{Elf, TEXT, load, program};

const MOV_GETPID: [u8; 5] = [0xb8, 39, 0, 0, 0];
const RET: u8 = 0xc3;
const NOP: u8 = 0x90;

/// Analyses a text that is one function.
fn one_function(text: &[u8]) -> Analysis {
    analyse(&program(text, &[(0, text.len() as u64)], &[])).unwrap()
}

fn patch(start: u64, displaced: &[u8]) -> Site {
    Site {
        file_offset: TEXT + start + displaced.len() as u64,
        kind: SiteKind::Patch {
            start_file_offset: TEXT + start,
            displaced: displaced.to_vec(),
        },
    }
}

fn trap(offset: u64) -> Site {
    Site {
        file_offset: TEXT + offset,
        kind: SiteKind::Trap,
    }
}

#[test]
fn a_number_load_before_the_syscall_is_displaced() {
    let text = [MOV_GETPID.as_slice(), &SYSCALL, &[RET]].concat();
    let analysis = one_function(&text);
    assert_eq!(analysis.sites, [patch(0, &MOV_GETPID)]);
    assert!(analysis.rejected.is_empty() && analysis.unknown.is_empty());
}

#[test]
fn a_constant_is_rejected() {
    // mov rax, imm64
    let text = [0x48, 0xb8, 0x0f, 0x05, 0x0f, 0x05, 0, 0, 0, 0, RET];
    let analysis = one_function(&text);
    assert!(analysis.sites.is_empty());
    assert_eq!(analysis.rejected, [TEXT + 2, TEXT + 4]);
}

#[test]
fn data_that_is_jumped_over_is_left_alone() {
    // jmp +7; mov eax, 39; syscall; ret
    let data = [MOV_GETPID.as_slice(), &SYSCALL].concat();
    let text = [&[0xeb, 7], data.as_slice(), &[RET]].concat();
    let analysis = one_function(&text);
    assert!(analysis.sites.is_empty());
    assert_eq!(analysis.unknown, [TEXT + 7]);
}

#[test]
fn data_symbols_are_rejected() {
    let text = [MOV_GETPID.as_slice(), &SYSCALL, &[RET]].concat();
    let analysis = analyse(&program(&text, &[(0, 8)], &[(5, 2)])).unwrap();
    assert!(analysis.sites.is_empty());
    assert_eq!(analysis.rejected, [TEXT + 5]);
}

#[test]
fn code_behind_an_indirect_jump_is_found_by_decoding_on() {
    // jmp rax; mov eax, 39; syscall; ret
    let text = [&[0xff, 0xe0], MOV_GETPID.as_slice(), &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [patch(2, &MOV_GETPID)]);

    // jmp rax; then an offset as a table might have it.
    let text = [&[0xff, 0xe0, 0, 0, 0, 0], SYSCALL.as_slice(), &[0, 0, RET]].concat();
    assert_eq!(one_function(&text).unknown, [TEXT + 6]);

    // The first with an invalid opcode (06) at the end: not all of it is code.
    let text = [&[0xff, 0xe0], MOV_GETPID.as_slice(), &SYSCALL, &[0x06]].concat();
    let analysis = one_function(&text);
    assert!(analysis.sites.is_empty());
    assert_eq!(analysis.unknown, [TEXT + 7]);
}

#[test]
fn a_short_load_alone_traps() {
    // xor eax, eax; syscall: the start of a function comes too soon.
    let text = [[0x31, 0xc0].as_slice(), &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [trap(2)]);
}

/// mov ebx, edi; xor edi, edi; mov eax, edx
const SEVERAL: [u8; 6] = [0x89, 0xfb, 0x31, 0xff, 0x89, 0xd0];

#[test]
fn several_instructions_are_displaced_together() {
    let text = [&[NOP], SEVERAL.as_slice(), &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [patch(1, &SEVERAL)]);
}

#[test]
fn a_branch_between_several_instructions_refuses_them() {
    // test eax, eax; je to the second of them
    let text = [&[0x85, 0xc0, 0x74, 2], SEVERAL.as_slice(), &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [trap(10)]);
    // The same to the first of them, and to the syscall, is no hazard.
    for distance in [0, 6] {
        let text = [
            &[0x85, 0xc0, 0x74, distance],
            SEVERAL.as_slice(),
            &SYSCALL,
            &[RET],
        ];
        assert_eq!(one_function(&text.concat()).sites, [patch(4, &SEVERAL)]);
    }
}

#[test]
fn an_address_taken_between_several_instructions_refuses_them() {
    // lea rcx, [rip + 2]
    let lea = [0x48, 0x8d, 0x0d, 2, 0, 0, 0];
    let text = [lea.as_slice(), &SEVERAL, &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [trap(13)]);
}

#[test]
fn an_indirect_jump_refuses_several_instructions_but_not_one() {
    let jump = [0xff, 0xe0];
    let text = [SEVERAL.as_slice(), &SYSCALL, &jump].concat();
    assert_eq!(one_function(&text).sites, [trap(6)]);
    let text = [MOV_GETPID.as_slice(), &SYSCALL, &jump].concat();
    assert_eq!(one_function(&text).sites, [patch(0, &MOV_GETPID)]);
}

#[test]
fn a_branch_from_another_function_refuses_several_instructions() {
    let first = [&[NOP], SEVERAL.as_slice(), &SYSCALL, &[RET]].concat();
    let size = first.len() as u64;
    let analyse_with = |second: &[u8]| {
        let text = [first.as_slice(), second].concat();
        analyse(&program(
            &text,
            &[(0, size), (size, second.len() as u64)],
            &[],
        ))
        .unwrap()
        .sites
    };
    // jmp to offset 3, near and short; then the same to offset 1.
    assert_eq!(analyse_with(&[0xe9, 0xf4, 0xff, 0xff, 0xff]), [trap(7)]);
    assert_eq!(analyse_with(&[0xeb, 0xf7, NOP, NOP, NOP]), [trap(7)]);
    assert_eq!(
        analyse_with(&[0xe9, 0xf2, 0xff, 0xff, 0xff]),
        [patch(1, &SEVERAL)]
    );
}

#[test]
fn what_depends_on_its_address_is_not_displaced() {
    let refused: [&[u8]; 4] = [
        // mov eax, [rip + 0]
        &[0x8b, 0x05, 0, 0, 0, 0],
        // call rel32 to the next instruction
        &[0xe8, 0, 0, 0, 0],
        // endbr64; xor eax, eax
        &[0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0],
        // syscall; nop; xor eax, eax
        &[0x0f, 0x05, NOP, 0x31, 0xc0],
    ];
    for before in refused {
        let text = [before, &SYSCALL, &[RET]].concat();
        let sites = one_function(&text).sites;
        let last = sites.last().unwrap();
        assert_eq!(*last, trap(before.len() as u64), "{before:02x?}");
    }
    // mov eax, [rsp + 8], padded by a prefix
    let stack = [0x3e, 0x8b, 0x44, 0x24, 0x08];
    let text = [stack.as_slice(), &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [patch(0, &stack)]);
}

#[test]
fn a_jump_over_a_prefix_refuses_the_instruction() {
    // je +1; lock add [rdi], eax; with a nop prefix to make five bytes
    let add = [0xf0, 0x83, 0x47, 0x08, 0x01];
    let text = [[0x74, 1].as_slice(), &add, &SYSCALL, &[RET]].concat();
    assert_eq!(one_function(&text).sites, [trap(7)]);
}

#[test]
fn the_sigreturn_trampoline_stays_readable() {
    let text = [MOV_RT_SIGRETURN.as_slice(), &SYSCALL].concat();
    assert_eq!(one_function(&text).sites, [trap(7)]);
}

#[test]
fn control_flow_goes_on_behind_the_end_of_a_function() {
    // As in libc's clone3: the function's size does not cover its syscall.
    let text = [MOV_GETPID.as_slice(), &SYSCALL, &[RET]].concat();
    let analysis = analyse(&program(&text, &[(0, 5)], &[])).unwrap();
    assert_eq!(analysis.sites, [patch(0, &MOV_GETPID)]);
}

#[test]
fn data_behind_a_call_that_may_not_return_is_left_alone() {
    // A call to elsewhere, the end of the function, and what may be a table.
    let text = [[0xe8, 0, 0, 1, 0].as_slice(), &[0; 8], &SYSCALL, &[RET]].concat();
    let analysis = analyse(&program(&text, &[(0, 5)], &[])).unwrap();
    assert!(analysis.sites.is_empty());
    assert_eq!(analysis.unknown, [TEXT + 13]);
}

#[test]
fn outside_functions_only_a_plausible_number_makes_a_site() {
    let nops = [NOP; 15];
    let analysis = |mov: &[u8]| {
        let text = [nops.as_slice(), mov, &SYSCALL, &[RET]].concat();
        analyse(&program(&text, &[], &[])).unwrap()
    };
    assert_eq!(analysis(&MOV_GETPID).sites, [patch(15, &MOV_GETPID)]);
    let mov_rax = [0x48, 0xc7, 0xc0, 39, 0, 0, 0];
    assert_eq!(analysis(&mov_rax).sites, [patch(15, &mov_rax)]);
    assert_eq!(analysis(&[0xb8, 0, 4, 0, 0]).unknown, [TEXT + 20]);
    assert_eq!(analysis(&[0x31, 0xc0]).unknown, [TEXT + 17]);
    // idiv dword ptr [rax + 39] ends where the syscall starts, too.
    assert_eq!(analysis(&[0xf7, 0xb8, 39, 0, 0, 0]).unknown, [TEXT + 21]);
}

#[test]
fn too_many_candidates_are_refused() {
    let text = SYSCALL.repeat(CANDIDATES_MAX + 1);
    assert!(matches!(
        analyse(&program(&text, &[], &[])),
        Err(AnalysisError::TooManyCandidates)
    ));
}

#[test]
fn executable_segments_that_share_the_file_are_refused() {
    let text = [MOV_GETPID.as_slice(), &SYSCALL, &[RET]].concat();
    let size = text.len() as u64;
    let mut elf = Elf::new(
        vec![load(0x1000, 0x1000, size), load(0x2000, 0x2000, size)],
        0x2008,
    );
    elf.contents = vec![(0x1000, text.clone()), (0x2000, text)];
    assert!(analyse(&elf.bytes()).is_ok());
    elf.headers[1].offset = 0x1000;
    assert!(matches!(
        analyse(&elf.bytes()),
        Err(AnalysisError::SegmentsShareFile)
    ));
}
