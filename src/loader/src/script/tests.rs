use super::*;

fn run(line: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    parse(line).map(|script| (script.interpreter, script.argument))
}

fn script(interpreter: &str, argument: Option<&str>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    Some((
        interpreter.as_bytes().to_vec(),
        argument.map(|text| text.as_bytes().to_vec()),
    ))
}

#[test]
fn takes_the_interpreter_and_one_argument() {
    assert_eq!(run(b"#!/bin/sh\nexit"), script("/bin/sh", None));
    assert_eq!(run(b"#!/bin/sh -e\n"), script("/bin/sh", Some("-e")));
    assert_eq!(
        run(b"#! \t/usr/bin/env\t python3 -u \t\n"),
        script("/usr/bin/env", Some("python3 -u"))
    );
}

#[test]
fn refuses_what_names_no_interpreter() {
    assert_eq!(run(b""), None);
    assert_eq!(run(b"#"), None);
    assert_eq!(run(b"# !/bin/sh\n"), None);
    assert_eq!(run(b"#!\n"), None);
    assert_eq!(run(b"#! \t \n/bin/sh\n"), None);
    assert_eq!(run(b"#!"), None);
    assert_eq!(run(b"#!\0\n"), None);
    assert_eq!(run(&[b"#!".as_slice(), &[b' '; 300]].concat()), None);
}

#[test]
fn a_short_file_needs_no_newline() {
    assert_eq!(run(b"#!/bin/sh"), script("/bin/sh", None));
    assert_eq!(run(b"#!/bin/sh -x"), script("/bin/sh", Some("-x")));
    // Linux passes an empty argument here: the blank separates, and the NULs after it are text.
    assert_eq!(run(b"#!/bin/sh "), script("/bin/sh", Some("")));
}

#[test]
fn a_nul_ends_the_line() {
    assert_eq!(run(b"#!/bin/sh\0 -x\n"), script("/bin/sh", None));
    assert_eq!(run(b"#!/bin/sh -x\0y\n"), script("/bin/sh", Some("-x")));
}

#[test]
fn a_name_that_may_be_cut_is_refused_and_an_argument_is_cut() {
    let long_name = [b"#!/".as_slice(), &[b'a'; 300], b"\n"].concat();
    assert_eq!(run(&long_name), None);

    let fits = [b"#!/".as_slice(), &[b'a'; 252], b"\n"].concat();
    assert_eq!(run(&fits).map(|(name, _)| name.len()), Some(253));

    let long_argument = [b"#!/bin/sh ".as_slice(), &[b'a'; 300], b"\n"].concat();
    let (name, argument) = run(&long_argument).unwrap();
    assert_eq!(name, b"/bin/sh");
    assert_eq!(argument.map(|text| text.len()), Some(LINE_MAX - 1 - 10));
}
