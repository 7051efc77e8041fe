//! Any bytes as a heap profile: either they are refused, or every view of it has all of it.

#![no_main]

use brickyard_heap_profile::{Amount, Mapping, Named, Order, Profile, Space, Tree};
use brickyard_heap_profile::{flame, folded, pprof, sites};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut profile) = Profile::read(bytes) else {
        return;
    };
    let is_apart = |pair: &[Mapping]| pair[0].end <= pair[1].start;
    assert!(profile.mappings.windows(2).all(is_apart));
    // No file of this machine is opened.
    for mapping in &mut profile.mappings {
        mapping.path.insert(0, '?');
    }
    let named = Named::of(&profile);
    for space in [Space::Live, Space::All] {
        let own = sites(&named, space, Order::Own);
        let own: Amount = own.iter().map(|site| site.own).sum();
        assert_eq!(own, named.total(space));
        folded(&named, space, &mut Vec::new()).unwrap();
    }
    assert!(
        Tree::of(&named)
            .nodes
            .iter()
            .all(|node| !node.function.is_empty())
    );
    flame(&named, Space::Live, "fuzz", &mut Vec::new()).unwrap();
    pprof(&named, &mut Vec::new()).unwrap();
});
