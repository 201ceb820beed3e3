use super::*;

#[test]
fn allocation_is_contiguous_until_used_pages_are_in_the_way() {
    let mut pages = PageAllocator::new(200);
    let first = pages.allocate(70).unwrap();
    assert_eq!(
        first,
        PhysicalRun {
            start: 0,
            pages: 70
        }
    );
    let second = pages.allocate(100).unwrap();
    assert_eq!(
        second,
        PhysicalRun {
            start: 70 * PAGE_SIZE,
            pages: 100
        }
    );
    pages.release(first);
    assert_eq!(
        pages.allocate(100).unwrap(),
        PhysicalRun {
            start: 0,
            pages: 70
        }
    );
    assert_eq!(pages.allocate(100).unwrap().pages, 30);
    assert_eq!(pages.allocate(1), None);
    assert_eq!(pages.used, 200);
}

#[test]
fn released_pages_are_found_again_wherever_they_are() {
    let mut pages = PageAllocator::new(130);
    let all = pages.allocate(130).unwrap();
    assert_eq!(all.pages, 130);
    pages.release(PhysicalRun {
        start: 129 * PAGE_SIZE,
        pages: 1,
    });
    assert_eq!(
        pages.allocate(5).unwrap(),
        PhysicalRun {
            start: 129 * PAGE_SIZE,
            pages: 1
        }
    );
    pages.release(PhysicalRun {
        start: 64 * PAGE_SIZE,
        pages: 2,
    });
    assert_eq!(
        pages.allocate(5).unwrap(),
        PhysicalRun {
            start: 64 * PAGE_SIZE,
            pages: 2
        }
    );
}
