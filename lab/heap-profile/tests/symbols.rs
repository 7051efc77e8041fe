//! Names of addresses: from debug information, from the symbol table, and without either.

use brickyard_heap_profile::{Named, Order, Site, Space, sites};

use crate::program::Program;

fn live_sites(named: &Named) -> Vec<Site> {
    sites(named, Space::Live, Order::Own)
}

#[test]
fn debug_information_gives_lines_and_functions_that_were_inlined() {
    let Some(program) = Program::built(&["-g", "-O1"]) else {
        return;
    };
    let named = Named::of(&program.profile());
    assert_eq!(named.notes, [""; 0]);
    let sites = live_sites(&named);
    let names = |site: &Site| (site.function.clone(), site.caller.clone().unwrap());
    let names: Vec<_> = sites.iter().map(names).collect();
    let expected = [("read_file", "serve"), ("insert", "grow_table")];
    let expected = expected.map(|(function, caller)| (function.to_owned(), caller.to_owned()));
    assert_eq!(names, expected);
    let (file, line) = sites[1].place.as_ref().unwrap();
    assert!(file.ends_with("tests/program.c"), "{file}");
    let source = include_str!("program.c").lines();
    let marked = source
        .clone()
        .position(|line| line.contains("/* line 20 */"));
    assert_eq!(*line as usize, marked.unwrap() + 1);
    // One sample of 400 bytes in 524,288; two of 1 MiB.
    assert_eq!((sites[1].own.objects, sites[1].own.bytes), (1311, 524_488));
    assert_eq!((sites[0].own.objects, sites[0].own.bytes), (2, 2_425_393));
}

#[test]
fn the_symbol_table_gives_functions_and_nothing_gives_places() {
    let Some(program) = Program::built(&["-O1"]) else {
        return;
    };
    let named = Named::of(&program.profile());
    let sites = live_sites(&named);
    assert_eq!(sites[1].function, "grow_table");
    assert_eq!(
        (sites[1].place.as_ref(), sites[1].caller.as_deref()),
        (None, Some("serve"))
    );
    let Some(program) = Program::built(&["-O1", "-s"]) else {
        return;
    };
    let sites = live_sites(&Named::of(&program.profile()));
    assert!(sites[1].function.starts_with("program+0x"), "{sites:?}");
}

#[test]
fn a_file_that_is_gone_or_is_no_program_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    let profile = format!(
        "heap profile: 2: 20 [2: 20] @ heap_v2/1\n\
         1: 10 [1: 10] @ 0x1001 0x1011\n\
         1: 10 [1: 10] @ 0x2001 0x3001\n\
         MAPPED_LIBRARIES:\n\
         1000-2000 r-xp 00005000 08:01 1 /nonexistent/libgone.so (deleted)\n\
         2000-3000 r-xp 00000000 08:01 1 {}\n\
         3000-4000 r-xp 00000000 00:00 0 [vdso]\n",
        text.display()
    );
    let profile = brickyard_heap_profile::Profile::read(profile.as_bytes()).unwrap();
    let named = Named::of(&profile);
    assert_eq!(named.notes.len(), 2, "{:?}", named.notes);
    assert!(named.notes[0].starts_with("no names of /nonexistent/libgone.so (deleted): "));
    assert!(named.notes[1].starts_with(&format!("no names of {}: ", text.display())));
    let sites = live_sites(&named);
    let names = |site: &Site| (site.function.clone(), site.caller.clone().unwrap());
    let names: Vec<_> = sites.iter().map(names).collect();
    let expected = [
        ("libgone.so+0x5000", "libgone.so+0x5010"),
        ("text+0x0", "[vdso]+0x0"),
    ];
    let expected = expected.map(|(function, caller)| (function.to_owned(), caller.to_owned()));
    assert_eq!(names, expected);
}

#[inline(never)]
fn marked(number: u64) -> u64 {
    core::hint::black_box(number).rotate_left(7) ^ 0x6272_6963_6b79_6172
}

#[test]
fn names_of_rust_are_those_of_the_source() {
    // A call that returns behind the first byte of the function.
    let address = (marked as fn(u64) -> u64 as *const ()).addr() + 1;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let profile = format!(
        "heap profile: 1: {0} [0: 0] @ heap_v2/1\n1: {0} [0: 0] @ {address:#x}\nMAPPED_LIBRARIES:\n{maps}",
        marked(1) & 0xffff
    );
    let profile = brickyard_heap_profile::Profile::read(profile.as_bytes()).unwrap();
    let named = Named::of(&profile);
    assert_eq!(live_sites(&named)[0].function, "tests::symbols::marked");
}
