//! The page of a flame graph: nothing in it is of another origin, and no name can be a script.

use std::fs;
use std::process::{Command, Stdio};

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

/// Stacks of functions that are in no file: 0x10 calls 0x20 and 0x30, which calls 0x40.
const TEXT: &str = "heap profile: 0: 0 [0: 0] @ heap_v2/1\n\
    1: 600 [2: 700] @ 0x21 0x11\n\
    1: 300 [9: 900] @ 0x41 0x31 0x11\n\
    1: 100 [1: 100] @ 0x31 0x11\n";

/// Returns the page's elements after its script has run, at this place of the page, and what was on
/// the console; `None`, with the reason printed, if there is no browser.
fn drawn(place: &str) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let named = Named::of(&Profile::read(TEXT.as_bytes()).unwrap());
    let file = folder.path().join("page.html");
    fs::write(&file, page(&named, "a test")).unwrap();
    let ran = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--window-size=1000,600",
        ])
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}#{place}", file.display()))
        .stdin(Stdio::null())
        .output();
    let Ok(ran) = ran else {
        println!("skipped: there is no chromium");
        return None;
    };
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let told = String::from_utf8_lossy(&ran.stderr);
    let console = told.lines().filter(|line| line.contains("CONSOLE"));
    let console = console.collect::<Vec<_>>().join("\n");
    Some((String::from_utf8(ran.stdout).unwrap(), console))
}

/// Returns the widths of the blocks, by what they are described as.
fn blocks(page: &str) -> Vec<(String, f64)> {
    let blocks = page
        .split("aria-label=\"")
        .skip(1)
        .filter(|part| part.contains("<rect"));
    let blocks = blocks.map(|part| {
        let between = |before: &str| {
            part.split(before)
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
        };
        let name = part.split(':').next().unwrap().to_owned();
        (name, between("width=\"").parse().unwrap())
    });
    let mut blocks: Vec<(String, f64)> = blocks.collect();
    blocks.sort_by(|a, b| a.0.cmp(&b.0));
    blocks
}

#[test]
fn blocks_are_as_wide_as_what_they_allocated() {
    let Some((whole, console)) = drawn("") else {
        return;
    };
    assert_eq!(console, "");
    let blocks_of_whole = blocks(&whole);
    let names: Vec<&str> = blocks_of_whole
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["0x10", "0x20", "0x30", "0x40", "all"]);
    let all = blocks_of_whole[4].1;
    let shares = blocks_of_whole
        .iter()
        .map(|(_, width)| (100.0 * width / all).round());
    assert_eq!(shares.collect::<Vec<_>>(), [100.0, 60.0, 40.0, 30.0, 100.0]);
    assert!(whole.contains("Live: 1000 bytes in 3 objects"));
    // A block that is widened has all the width, and those beside it none.
    let (zoomed, _) = drawn("zoom=0x30&search=0x4").unwrap();
    let blocks = blocks(&zoomed);
    let names: Vec<&str> = blocks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["0x10", "0x30", "0x40", "all"]);
    assert_eq!(
        (blocks[1].1, (100.0 * blocks[2].1 / all).round()),
        (all, 75.0)
    );
    assert!(zoomed.contains("found: 30.0 % in 1 place"));
}
