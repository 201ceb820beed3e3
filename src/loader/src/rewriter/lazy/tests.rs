use super::*;

const WRITE: u32 = 1;
const MOV_WRITE: [u8; 5] = [0xb8, 1, 0, 0, 0];

fn after(before: &[u8]) -> Option<usize> {
    displaced_length(&[before, &MOV_WRITE].concat(), WRITE)
}

#[test]
fn accepts_the_load_of_the_number_just_used() {
    assert_eq!(after(&[0x90; 27]), Some(JUMP_SIZE));
    // mov rsi, r12; mov edx, ebx; mov rdi, rbp
    let arguments = [0x4c, 0x89, 0xe6, 0x89, 0xda, 0x48, 0x89, 0xef];
    assert_eq!(after(&[[0x90; 4].as_slice(), &arguments].concat()), Some(5));
}

#[test]
fn refuses_another_number_or_instruction() {
    let code = [[0x90; 15].as_slice(), &MOV_WRITE].concat();
    assert_eq!(displaced_length(&code, 2), None);
    assert_eq!(displaced_length(&[0x90; 32], WRITE), None);
}

#[test]
fn refuses_what_it_cannot_see_enough_of() {
    assert_eq!(after(&[0x90; 9]), None);
    assert_eq!(after(&[0x90; 10]), Some(JUMP_SIZE));
    assert_eq!(displaced_length(&[], WRITE), None);
}

#[test]
fn refuses_the_tail_of_a_longer_instruction() {
    // idiv dword ptr [rax + 1]
    assert_eq!(after(&[[0x90; 14].as_slice(), &[0xf7]].concat()), None);
    // mov dword ptr [rax - 0x48], 1
    assert_eq!(
        after(&[[0x90; 13].as_slice(), &[0xc7, 0x40]].concat()),
        None
    );
    // mov edx, ebx: its last byte would start fidivr dword ptr [rax + 1].
    assert_eq!(
        after(&[[0x90; 13].as_slice(), &[0x89, 0xda]].concat()),
        None
    );
}
