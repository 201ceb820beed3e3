use super::*;

fn trap(file_offset: u64) -> Site {
    Site {
        file_offset,
        kind: SiteKind::Trap,
    }
}

fn patch(file_offset: u64) -> Site {
    Site {
        file_offset,
        kind: SiteKind::Patch {
            start_file_offset: file_offset - 5,
            displaced: vec![0xb8, 0, 0, 0, 0],
        },
    }
}

#[test]
fn sites_of_a_mapping_lie_wholly_in_it() {
    let analysis = Analysis {
        sites: vec![patch(15), trap(30), patch(47)],
        ..Analysis::default()
    };
    assert_eq!(analysis.sites_in(0..100).len(), 3);
    assert_eq!(analysis.sites_in(10..49), analysis.sites);
    assert_eq!(analysis.sites_in(11..48), [trap(30)]);
    assert_eq!(analysis.sites_in(33..40), []);
}

#[test]
fn lists_out_of_order_are_noticed() {
    let of = |sites| Analysis {
        sites,
        ..Analysis::default()
    };
    assert!(of(vec![trap(10), patch(17)]).is_well_formed());
    assert!(!of(vec![trap(11), patch(17)]).is_well_formed());
    let mut site = patch(17);
    site.file_offset = 18;
    assert!(!of(vec![site]).is_well_formed());
}
