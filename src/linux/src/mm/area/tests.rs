use proptest::prelude::*;

use super::*;

const P: u64 = PAGE_SIZE;

fn anonymous(end: u64) -> Area {
    Area::anonymous(end, Protection::READ_WRITE, false, "")
}

#[test]
fn neighbours_of_one_kind_become_one_area() {
    let mut areas = Areas::default();
    areas.insert(P, anonymous(2 * P));
    areas.insert(3 * P, anonymous(4 * P));
    areas.insert(2 * P, anonymous(3 * P));
    assert_eq!(areas.count(), 1);
    areas.insert(4 * P, Area::anonymous(5 * P, Protection::READ, false, ""));
    assert_eq!(areas.count(), 2);
}

#[test]
fn removing_the_middle_leaves_both_ends() {
    let mut areas = Areas::default();
    areas.insert(P, anonymous(10 * P));
    let removed = areas.remove(3 * P..5 * P);
    assert_eq!(removed.len(), 1);
    assert_eq!((removed[0].0, removed[0].1.end), (3 * P, 5 * P));
    assert!(areas.covers(P..3 * P) && areas.covers(5 * P..10 * P));
    assert!(areas.is_free(3 * P..5 * P) && !areas.is_free(2 * P..4 * P));
    assert!(!areas.covers(2 * P..6 * P));
}

#[test]
fn gaps_are_found_from_both_sides() {
    let mut areas = Areas::default();
    areas.insert(4 * P, anonymous(6 * P));
    areas.insert(8 * P, anonymous(9 * P));
    assert_eq!(areas.highest_gap(P..12 * P, 3 * P), Some(9 * P));
    assert_eq!(areas.highest_gap(P..11 * P, 3 * P), Some(P));
    assert_eq!(areas.highest_gap(P..11 * P, 2 * P), Some(9 * P));
    assert_eq!(areas.highest_gap(P..9 * P, 4 * P), None);
    assert_eq!(areas.lowest_gap(5 * P..12 * P, 2 * P), Some(6 * P));
    assert_eq!(areas.lowest_gap(5 * P..12 * P, 3 * P), Some(9 * P));
    assert_eq!(areas.lowest_gap(5 * P..11 * P, 3 * P), None);
}

proptest! {
    /// Areas against a set of pages.
    #[test]
    fn areas_agree_with_a_set_of_pages(
        steps in prop::collection::vec((any::<bool>(), 1u64..40, 1u64..8, any::<bool>()), 1..60)
    ) {
        let mut areas = Areas::default();
        let mut pages = std::collections::BTreeSet::new();
        for (add, start, length, writable) in steps {
            let range = start * P..(start + length) * P;
            areas.remove(range.clone());
            pages.retain(|page| !range.contains(page));
            if add {
                let protection =
                    if writable { Protection::READ_WRITE } else { Protection::READ };
                areas.insert(range.start, Area::anonymous(range.end, protection, false, ""));
                pages.extend(range.step_by(P as usize));
            }
            let size = pages.len() as u64 * P;
            prop_assert_eq!(areas.size(), size);
            for page in (0..50).map(|page| page * P) {
                prop_assert_eq!(areas.find(page).is_some(), pages.contains(&page));
                prop_assert_eq!(areas.is_free(page..page + P), !pages.contains(&page));
            }
            if let Some(gap) = areas.highest_gap(P..50 * P, 3 * P) {
                prop_assert!(areas.is_free(gap..gap + 3 * P));
                let higher = (gap / P + 1..48).any(|page| areas.is_free(page * P..(page + 3) * P));
                prop_assert!(!higher);
            }
        }
    }
}
