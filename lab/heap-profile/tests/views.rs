//! The views of a profile: sites, tree, folded stacks; an allocator's functions are in none.

use brickyard_heap_profile::{Amount, Named, Order, Profile, Space, Tree, folded, sites};

use crate::program::Program;

/// A profile whose addresses stand for functions: 0xa1 is `0xa0`, and so on.
fn named() -> Named {
    let text = "heap profile: 0: 0 [0: 0] @ heap_v2/1\n\
        1: 10 [2: 20] @ 0xa1 0xb1 0xf1\n\
        2: 60 [2: 60] @ 0xc1 0xb1 0xf1\n\
        1: 5 [1: 5] @ 0xa1 0xb1 0xf1\n\
        1: 1 [1: 1] @ 0xb1 0xb1 0xf1\n\
        0: 0 [9: 9] @ 0xa1 0xf1\n";
    Named::of(&Profile::read(text.as_bytes()).unwrap())
}

#[test]
fn sites_are_ordered_by_their_bytes() {
    let named = named();
    let own = sites(&named, Space::Live, Order::Own);
    let own: Vec<_> = own
        .iter()
        .map(|site| {
            (
                site.function.as_str(),
                site.caller.as_deref().unwrap(),
                site.own.bytes,
            )
        })
        .collect();
    assert_eq!(
        own,
        [
            ("0xc0", "0xb0", 60),
            ("0xa0", "0xb0", 15),
            ("0xb0", "0xb0", 1)
        ]
    );
    let all = sites(&named, Space::All, Order::Own);
    assert_eq!(
        (all[2].caller.as_deref(), all[2].own.bytes),
        (Some("0xf0"), 9)
    );
    let cumulative = sites(&named, Space::Live, Order::Cumulative);
    let cumulative: Vec<_> = cumulative
        .iter()
        .map(|site| {
            (
                site.function.as_str(),
                site.own.bytes,
                site.cumulative.bytes,
            )
        })
        .collect();
    // 0xb0 calls itself once, and counts once.
    let expected = [
        ("0xb0", 1, 76),
        ("0xf0", 0, 76),
        ("0xc0", 60, 60),
        ("0xa0", 15, 15),
    ];
    assert_eq!(cumulative, expected);
}

#[test]
fn the_tree_has_every_stack_once_and_callers_before_what_they_call() {
    let named = named();
    let tree = Tree::of(&named);
    let nodes: Vec<_> = tree
        .nodes
        .iter()
        .map(|node| (node.depth, node.function, node.live.bytes, node.all.bytes))
        .collect();
    let expected = [
        (0, "0xf0", 76, 95),
        (1, "0xa0", 0, 9),
        (1, "0xb0", 76, 86),
        (2, "0xa0", 15, 25),
        (2, "0xb0", 1, 1),
        (2, "0xc0", 60, 60),
    ];
    assert_eq!(nodes, expected);
}

#[test]
fn a_folded_stack_begins_with_the_root() {
    let mut text = Vec::new();
    folded(&named(), Space::Live, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(
        text,
        "0xf0;0xb0;0xa0 15\n0xf0;0xb0;0xb0 1\n0xf0;0xb0;0xc0 60\n"
    );
}

#[test]
fn an_allocators_functions_are_left_out_with_all_that_they_call() {
    let flags = [
        "-g",
        "-O1",
        "-Dgrow_table=brickyard_grow",
        "-Dinsert=brickyard_insert",
    ];
    let Some(program) = Program::built(&flags) else {
        return;
    };
    let named = Named::of(&program.profile());
    let of_serve = sites(&named, Space::Live, Order::Own);
    let functions: Vec<&str> = of_serve.iter().map(|site| site.function.as_str()).collect();
    assert_eq!(functions, ["read_file", "serve"]);
    let flags = ["-g", "-O1", "-Dserve=brickyard_serve"];
    let Some(program) = Program::built(&flags) else {
        return;
    };
    let named = Named::of(&program.profile());
    let of_main = sites(&named, Space::Live, Order::Own);
    let functions: Vec<&str> = of_main.iter().map(|site| site.function.as_str()).collect();
    assert_eq!(functions, ["main"]);
    let total: Amount = of_main.iter().map(|site| site.own).sum();
    assert_eq!(total, named.total(Space::Live));
}
