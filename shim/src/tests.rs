use super::*;

#[test]
fn both_entries_exit_and_return_through_rcx() {
    for (exit, code) in [
        (ExitInstruction::Breakpoint, &[0xcc, 0xff, 0xe1][..]),
        (ExitInstruction::Out, &[0xe6, 0x20, 0xff, 0xe1][..]),
    ] {
        let text = text(exit);
        let second = (ENTRY_LSTAR - SHIM_BASE) as usize;
        assert!(text.starts_with(code), "{exit:?}");
        assert!(text[second..].starts_with(code), "{exit:?}");
        assert_eq!(exit_length(exit) as usize + 2, code.len());
    }
}

#[test]
fn the_rest_of_the_text_traps() {
    let text = text(ExitInstruction::Breakpoint);
    assert!(text[3..64].iter().all(|&byte| byte == 0xcc));
}
