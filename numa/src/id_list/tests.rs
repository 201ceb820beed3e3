use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Vec<u32> {
    text.parse::<IdList>().unwrap().iter().collect()
}

#[test]
fn reads_what_the_kernel_writes() {
    assert_eq!(parse("0\n"), [0]);
    assert_eq!(parse("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
    assert_eq!(parse("\n"), Vec::<u32>::new());
    assert_eq!(parse(""), Vec::<u32>::new());
}

#[test]
fn names_the_element_that_is_wrong() {
    let error = |text: &str| text.parse::<IdList>().unwrap_err().to_string();
    assert_eq!(error("0-3,x"), "\"x\" is not a number");
    assert_eq!(error("1,"), "\"\" is not a number");
    assert_eq!(error("3-1"), "the range 3-1 is backwards");
    assert_eq!(
        error("0-4294967295"),
        "4294967295 is above 65535, the highest number a machine can have"
    );
    assert_eq!(error("0-99999999999"), "\"0-99999999999\" is not a number");
    assert_eq!(error("-1"), "\"-1\" is not a number");
}

proptest! {
    #[test]
    fn writes_what_it_reads(ids in prop::collection::btree_set(0..2000_u32, 0..200)) {
        let list: IdList = ids.iter().copied().collect();
        prop_assert_eq!(list.to_string().parse::<IdList>().unwrap(), list);
    }

    #[test]
    fn reads_anything_without_panic(text in "[0-9,\\- \n]{0,40}") {
        let _ = text.parse::<IdList>();
    }
}
