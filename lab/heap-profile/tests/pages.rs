//! The page of a flame graph: nothing in it is of another origin, and no name can be a script.

use brickyard_heap_profile::{Named, Profile, Space, flame};

fn page(named: &Named, title: &str) -> String {
    let mut page = Vec::new();
    flame(named, Space::Live, title, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn names_are_escaped_and_nothing_is_fetched() {
    let hostile = "</script><script>alert(1)</script>{{script}}";
    let text = format!(
        "heap profile: 1: 5 [1: 5] @ heap_v2/1\n1: 5 [1: 5] @ 0x1001\nMAPPED_LIBRARIES:\n\
         1000-2000 r-xp 00000000 08:01 1 /nonexistent/{hostile}\n"
    );
    let named = Named::of(&Profile::read(text.as_bytes()).unwrap());
    let page = page(&named, hostile);
    assert!(!page.contains("<script>alert"), "the names are escaped");
    assert!(
        page.contains("\\u003e{{script}}+0x0\""),
        "the name is there as it is"
    );
    assert_eq!(page.matches("<script").count(), 2);
    for address in ["src=", "href=", "url(", "@import"] {
        assert!(!page.contains(address), "{address}");
    }
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
}
