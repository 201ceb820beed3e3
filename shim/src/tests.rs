use super::*;

#[test]
fn both_entries_exit_and_return_through_rcx() {
    let code = [0xe6, 0x20, 0xff, 0xe1];
    let second = (ENTRY_LSTAR - SHIM_BASE) as usize;
    assert!(text().starts_with(&code));
    assert!(text()[second..].starts_with(&code));
    assert_eq!(EXIT_LENGTH as usize + 2, code.len());
}

#[test]
fn the_rest_of_the_text_traps() {
    assert!(text()[4..64].iter().all(|&byte| byte == 0xcc));
}
