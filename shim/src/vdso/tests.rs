mod native;
mod object;

use agentrt_shim_abi::PAGE_SIZE;
use object::{Object, STB_GLOBAL, STB_WEAK};

const FUNCTIONS: [&str; 5] = [
    "clock_gettime",
    "gettimeofday",
    "time",
    "clock_getres",
    "getcpu",
];

#[test]
fn each_function_is_found_under_both_names_and_its_version() {
    let object = Object::parse(super::image());
    for function in FUNCTIONS {
        let private = object
            .find(&format!("__vdso_{function}"), "LINUX_2.6")
            .unwrap();
        let public = object.find(function, "LINUX_2.6").unwrap();
        assert_eq!((private.binding, public.binding), (STB_GLOBAL, STB_WEAK));
        assert_eq!((private.value, private.size), (public.value, public.size));
        assert!(
            private.size > 0 && private.value + private.size < PAGE_SIZE,
            "{private:?}"
        );
        assert!(object.find(function, "LINUX_2.5").is_none());
    }
    assert!(object.find("clock_settime", "LINUX_2.6").is_none());
    assert_eq!(object.soname(), "linux-vdso.so.1");
}

#[test]
fn the_image_is_one_page_that_can_stand_anywhere() {
    let object = Object::parse(super::image());
    assert_eq!(super::image().len() as u64, PAGE_SIZE);
    assert_eq!(object.load, (0, PAGE_SIZE, 5));
    // DT_REL, DT_RELA, DT_TEXTREL and DT_NEEDED: nothing is to be done before use.
    assert!(
        [17, 7, 22, 1]
            .iter()
            .all(|tag| object.dynamic(*tag).is_none())
    );
}

#[test]
fn what_is_not_code_traps() {
    assert_eq!(super::image().last(), Some(&0xcc));
}
