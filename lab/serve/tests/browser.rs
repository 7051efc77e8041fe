//! The page in a real browser, where one is installed: driven as by a user, against a running
//! service, and against answers that no host of a test gives.

mod driver;
mod stub;

use crate::synthetic::Block;
use brickyard_serve::history::Store;
use serde_json::json;

use self::driver::{Page, browser};
use crate::hosts::{self, folder};
use crate::service;

const MIXED: [u8; 3] = [0xc1, 0x12, 0x1f];
const MIXED_IN_DARK: [u8; 3] = [0xcf, 0x20, 0x2f];
const ANONYMOUS: [u8; 3] = [0x45, 0xb9, 0x7c];

/// A host of 64 page blocks, some of each kind.
fn some_of_each() -> Vec<Block> {
    let mut blocks = hosts::blocks(3);
    blocks[10] = Block::Slab;
    blocks[11] = Block::Cached;
    blocks[12..20].fill(Block::Single);
    blocks[20] = Block::Untold;
    blocks
}

#[test]
fn memory_is_shown_from_the_whole_to_a_page() {
    let Some(browser) = browser() else { return };
    let running = service::start("browser-zoom", some_of_each(), false);
    let mut page = Page::start(&browser, "zoom", "1280,1000");
    page.open(&format!("http://{}/", running.address()));
    let headline = page.wait("headline", "huge pages of 2 MiB can be had now");
    assert!(headline.contains("3 page blocks are mixed"), "{headline}");
    // 32768 pages are drawn one by one; the page at the point is told.
    page.wait("level", "128 MiB; a cell is a page of 4 KiB");
    page.wait("legend", "anonymous");
    let (x, y) = page.middle("map");
    // In the middle are borders of pages.
    let (x, y) = (x + 7.0, y + 7.0);
    page.mouse("mouseMoved", (x, y), json!({}));
    let readout = page.wait("readout", "Its page block is free: 512 free.");
    assert!(
        readout.starts_with("frame 0x") && readout.contains(", zone Normal, node 0: free."),
        "{readout}"
    );
    page.paints("map", ANONYMOUS, 100);
    page.picture("zoom-whole");
    // The wheel enlarges around the point, until a page is large: it stays the same.
    for _ in 0..20 {
        page.mouse("mouseWheel", (x, y), json!({ "deltaX": 0, "deltaY": -100 }));
    }
    page.until("document.getElementById('in').disabled");
    assert_eq!(page.text("readout"), readout);
    page.until("/across=1\\d$/.test(location.hash)");
    page.picture("zoom-page");
    // Out again, as far as it goes.
    for _ in 0..20 {
        page.mouse("mouseWheel", (x, y), json!({ "deltaX": 0, "deltaY": 100 }));
    }
    page.wait("level", "128 MiB; ");
    // By keys: to the first page, to the last, to mixed blocks.
    page.focus("map");
    page.key("Home");
    for _ in 0..5 {
        page.key("+");
    }
    let readout = page.wait("readout", "frame 0x0, address 0x0");
    assert!(
        readout.contains(": anonymous (memory of processes). Its page block is mixed: "),
        "{readout}"
    );
    page.key("ArrowRight");
    page.wait("readout", "frame 0x1, address 0x1000, ");
    page.key("End");
    page.wait("readout", "frame 0x7fff, address 0x7fff000, ");
    page.key("p");
    page.wait("readout", "frame 0x0, ");
    page.click("whole");
    page.wait("level", "128 MiB; ");
    // A kind alone, by its name in the legend.
    page.value("document.querySelector('#legend button[data-name=slab]').click()");
    page.until("document.querySelector('#legend button[aria-pressed=true]') !== null");
    assert_eq!(page.pixels("map", ANONYMOUS), 0);
    page.value("document.querySelector('#legend button[data-name=slab]').click()");
    // In dark the colours are others.
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    page.call("Emulation.setEmulatedMedia", dark);
    page.paints("map", MIXED_IN_DARK, 100);
    page.picture("zoom-dark");
    // A link leads to the same view, and what is not a view is ignored.
    let address = running.address();
    page.open(&format!("http://{address}/#frame=5120&across=32"));
    page.wait("level", " of 128 MiB; a cell is a page");
    page.until("location.hash === '#frame=5120&across=32'");
    page.open(&format!("http://{address}/#frame=-1&across=x&time=9e99"));
    page.wait("level", "128 MiB; ");
    page.until("location.hash === ''");
    for url in page.asked("/api/frames") {
        let count = url.rsplit_once("count=").unwrap().1;
        assert!(count.parse::<u64>().unwrap() <= 1 << 16, "{url}");
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
    // When the service is gone, the page says how old it is.
    drop(running);
    page.wait("trouble", "The service does not answer. What is shown is ");
    page.picture("zoom-gone");
}

/// Waits until the line of this name in the plot of time has this figure.
fn figure(page: &mut Page, line: &str, figure: &str) {
    page.until(&format!(
        "document.querySelector('[data-line=\"{line}\"]')?.textContent === {figure:?}"
    ));
}

#[test]
fn time_goes_back() {
    let Some(browser) = browser() else { return };
    // What an earlier run of the service kept: fewer and fewer mixed blocks, up to now.
    let history = folder("service/browser-time");
    let mut store = Store::open(&history, "made", 1 << 30).unwrap();
    for minute in 0..30 {
        let mixed = 30 - minute as usize;
        let sample = hosts::sample("made", "browser-time-before", mixed, minute * 60);
        store.add(&sample, |_, _| {}).unwrap();
    }
    store.flush().unwrap();
    let running = service::start_in("browser-time", hosts::blocks(2), Some(history), 1800);
    let mut page = Page::start(&browser, "time", "1280,1000");
    page.open(&format!("http://{}/", running.address()));
    page.wait("headline", "2 page blocks are mixed");
    figure(&mut page, "mixed", "2");
    // From map to map.
    page.focus("time");
    page.key("ArrowLeft");
    figure(&mut page, "mixed", "1");
    page.key("ArrowLeft");
    figure(&mut page, "mixed", "2");
    page.key("Home");
    figure(&mut page, "mixed", "30");
    page.wait("when", "history: ");
    let headline = page.wait("headline", "30 page blocks were mixed");
    assert!(headline.starts_with("At "), "{headline}");
    let time = format!("time={}000", hosts::BEGIN);
    page.until(&format!("location.hash === '#{time}'"));
    page.wait("legend", "mixed 30");
    page.paints("map", MIXED, 1000);
    // The map is of then: a block is mixed which is free now, and its pages are not known.
    page.focus("map");
    page.key("Home");
    for _ in 0..2 {
        page.key("ArrowRight");
        page.key("ArrowDown");
    }
    let readout = page.wait("readout", "page block 0x");
    assert!(
        readout.ends_with(": mixed, movable pages beside pages that cannot move."),
        "{readout}"
    );
    for _ in 0..9 {
        page.key("+");
    }
    assert!(page.text("when").ends_with(", page blocks only"));
    page.wait("level", "a cell is a page block");
    page.picture("time-back");
    // A link to that time shows it again.
    page.until(&format!(
        "location.hash.startsWith('#frame=') && location.hash.endsWith('&{time}')"
    ));
    let hash = page.value("location.hash");
    page.open("about:blank");
    page.open(&format!(
        "http://{}/{}",
        running.address(),
        hash.as_str().unwrap()
    ));
    page.wait("headline", "30 page blocks were mixed");
    page.click("live");
    page.wait("when", "live, state of ");
    page.wait("level", "a cell is a page");
    page.wait("headline", "2 page blocks are mixed");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_read_is_told() {
    let Some(browser) = browser() else { return };
    let hostile = "<img src=x onerror=alert(1)>";
    let root = folder("hosts/browser-withheld");
    let host = crate::synthetic::SyntheticHost::new(hostile, hosts::blocks(2))
        .write(&root)
        .unwrap();
    for file in ["kpageflags", "pagetypeinfo", "vmstat"] {
        std::fs::remove_file(root.join("proc").join(file)).unwrap();
    }
    let running = service::start_host(host);
    let mut page = Page::start(&browser, "withheld", "360,740");
    page.open(&format!("http://{}/", running.address()));
    page.wait("headline", "can be had now");
    assert_eq!(page.text("host"), hostile);
    let withheld = page.wait("withheld", "kpageflags: ");
    assert!(
        withheld.contains("pagetypeinfo: ") && withheld.contains("vmstat: "),
        "{withheld}"
    );
    page.wait("nothing", "is known to root only");
    for hidden in ["map", "past", "tools"] {
        page.until(&format!(
            "getComputedStyle(document.getElementById({hidden:?})).display === 'none'"
        ));
    }
    assert_fits(&mut page);
    page.picture("withheld");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Nothing is wider than the window.
fn assert_fits(page: &mut Page) {
    assert_eq!(
        page.value("document.documentElement.scrollWidth <= innerWidth"),
        true
    );
}

#[test]
fn texts_of_the_host_are_only_text() {
    let Some(browser) = browser() else { return };
    let hostile = "</td><img src=http://127.0.0.2/x onerror=console.error(1)><script>console.error(2)</script>";
    let address = stub::start(&stub::host(64, hostile), &stub::map(64));
    let mut page = Page::start(&browser, "hostile", "360,740");
    page.open(&format!("http://{address}/"));
    page.wait("headline", "1 huge page of 2 MiB can be had now");
    for id in [
        "host",
        "about",
        "fallbacks",
        "forecasts",
        "uses",
        "zones",
        "withheld",
    ] {
        page.wait(id, hostile);
    }
    page.focus("map");
    page.key("Home");
    page.wait("readout", hostile);
    assert_eq!(
        page.value("document.querySelectorAll('main img, header img, body script').length"),
        0
    );
    assert_fits(&mut page);
    page.picture("hostile");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn a_tebibyte_is_drawn_at_once() {
    let Some(browser) = browser() else { return };
    const BLOCKS: u64 = 1 << 19;
    let address = stub::start(&stub::host(BLOCKS, "large"), &stub::map(BLOCKS));
    let mut page = Page::start(&browser, "tebibyte", "1280,1000");
    page.open(&format!("http://{address}/"));
    page.wait("level", "1 TiB; ");
    page.paints("map", MIXED, 10_000);
    page.picture("tebibyte");
    // From runs to pixels, the best of five: others may have the processor.
    let all = page.value(
        "Math.min(...[1, 2, 3, 4, 5].map(() => { const begin = performance.now(); setMap(picture.map); drawMap(); canvasOf('map').context.getImageData(0, 0, 1, 1); return performance.now() - begin; }))",
    );
    // Moving what is drawn.
    let moving = page.value(
        "(zoomBy(8), Math.min(...[1, 2, 3, 4, 5].map(() => { const begin = performance.now(); moveBy(50, 50); drawMap(); canvasOf('map').context.getImageData(0, 0, 1, 1); return performance.now() - begin; })))",
    );
    println!("a tebibyte: all in {all} ms, moved in {moving} ms");
    assert!(all.as_f64().unwrap() < 1000.0, "{all} ms");
    assert!(moving.as_f64().unwrap() < 100.0, "{moving} ms");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Zones of three nodes, of which one lies within another; blocks that two zones share; holes, one
/// of which is left out; and memory in no zone. Says what is wrong with where its pages are.
const LAYOUT: &str = r#"(() => {
  const wrong = [];
  for (const order of [0, 9, 10, 13]) {
    const size = 2 ** order;
    const zone = (node, name, first, blocks, shift) => ({ node, name, start_frame: first * size + shift, frames: blocks * size - shift });
    const zones = [zone(0, "DMA", 0, 3, size > 1 ? 1 : 0), zone(0, "Normal", 3, 5000, 0), zone(1, "Normal", 40, 100, 0), zone(2, "Normal", 5002, 998, size > 1 ? 1 : 0)];
    const runs = [[0, 2, 1], [2, 500, 2], [502, 3000, 0], [3502, 10, 1], [3520, 1490, 2], [5500, 1, 1], [9000, 7, 2]];
    const layout = new Layout({ runs, kinds: ["absent", "free", "movable"], block_order: order }, zones, 16);
    const places = new Set();
    for (const [first, blocks, kind] of runs) {
      if (kind === 0) continue;
      for (let block = first; block < first + blocks; block += 1) {
        for (const frame of [block * size, block * size + size - 1]) {
          const place = layout.placeOf(frame);
          places.add(`${place.x},${place.y}`);
          if (layout.frameAt(place.x + 0.5, place.y + 0.5) !== frame) wrong.push([order, frame, place]);
          if (place.x >= layout.width || place.y >= layout.height) wrong.push([order, frame, "outside"]);
        }
      }
    }
    const pages = runs.filter((run) => run[2] !== 0).reduce((sum, run) => sum + run[1], 0) * (size > 1 ? 2 : 1);
    if (places.size !== pages) wrong.push([order, places.size, pages]);
    // The hole of 3000 blocks is left out, and those of some rows are not.
    if (layout.blocks > 2 + 500 + 8 + 1508 + 600 + 7) wrong.push([order, "blocks", layout.blocks]);
    const names = layout.strips.flatMap((strip) => strip.names).join();
    if (names !== "DMA 0,Normal 0,Normal 1,Normal 2,no zone") wrong.push([order, names]);
    if (layout.frameAt(-1, 0) !== null || layout.frameAt(0, layout.height) !== null || layout.frameAt(layout.width, 0) !== null) wrong.push([order, "beyond"]);
  }
  return wrong.slice(0, 5);
})()"#;

/// Every two kinds that are nearer than 20 in the CIELAB space, where 2.3 is just noticeable, as
/// people with full and with three kinds of reduced colour vision see them (Machado, Oliveira,
/// Fernandes 2009, severity 1.0, on linear RGB). As for the colours of
/// `brickyard_pictures::pagetypes`.
const COLOURS: &str = r#"(() => {
  const visions = [
    [1, 0, 0, 0, 1, 0, 0, 0, 1],
    [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
    [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
  ];
  const lab = (colour, m) => {
    const linear = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    const [r, g, b] = [0, 3, 6].map((row) => Math.max(0, Math.min(1, m[row] * linear[0] + m[row + 1] * linear[1] + m[row + 2] * linear[2])));
    const root = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
    const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089].map(root);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const near = [];
  for (const entries of [KINDS, USES]) {
    const shown = Object.keys(entries).filter((name) => name !== "absent" && name !== "hole");
    for (const scheme of [3, 4]) {
      visions.forEach((vision, number) => shown.forEach((a, at) => shown.slice(at + 1).forEach((b) => {
        const [from, to] = [a, b].map((name) => lab(entries[name][scheme], vision));
        const distance = Math.hypot(...from.map((part, axis) => part - to[axis]));
        if (!(distance > 20)) near.push([a, b, scheme, number, distance]);
      })));
    }
  }
  return near;
})()"#;

#[test]
fn every_page_has_a_place_and_every_kind_a_colour_of_its_own() {
    let Some(browser) = browser() else { return };
    let address = stub::start(&stub::host(64, "layout"), &stub::map(64));
    let mut page = Page::start(&browser, "layout", "1280,1000");
    page.open(&format!("http://{address}/"));
    page.wait("level", "128 MiB; ");
    assert_eq!(page.value(LAYOUT), json!([]));
    assert_eq!(page.value(COLOURS), json!([]));
}
