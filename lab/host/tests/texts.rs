//! The parsers on files recorded on real hosts and on texts of other forms: their results, and that
//! no text makes them panic.

use std::path::PathBuf;

use brickyard::Order;
use brickyard_host::pagetypeinfo::Counted;
use brickyard_host::zoneinfo::{PageSet, counter};
use brickyard_host::{Host, HostError, buddyinfo, counters, iomem, pagetypeinfo, zoneinfo};
use proptest::prelude::*;

fn recorded(name: &str) -> Host {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    Host::at(&root.join("tests/recorded").join(name))
}

#[test]
fn zones_of_a_recorded_host() {
    let zones = recorded("linux-6.18").zones().unwrap();
    let names: Vec<_> = zones.iter().map(|zone| zone.name.as_str()).collect();
    assert_eq!(
        names,
        ["DMA", "DMA32", "Normal"],
        "those without memory are left out"
    );
    let dma32 = &zones[1];
    assert_eq!((dma32.start_pfn, dma32.spanned), (4096, 1_044_480));
    assert_eq!(dma32.end_pfn(), 1 << 20);
    assert_eq!((dma32.present, dma32.managed), (782_336, 772_919));
    assert_eq!((dma32.min, dma32.low, dma32.high), (4818, 6022, 7226));
    assert_eq!(dma32.protection, [0, 0, 7552, 7552, 7552]);
    let cpus: Vec<_> = dma32
        .pagesets
        .iter()
        .map(|set| (set.cpu, set.batch))
        .collect();
    assert_eq!(cpus, [(0, 63), (1, 63)]);
    assert_eq!(zones[2].start_pfn, dma32.end_pfn());
    assert!(counter(&zones, "nr_slab_reclaimable").unwrap() > 0);
    assert_eq!(counter(&zones, "nr_nonesuch"), None);
}

/// Returns the indices of a zone, in thousandths. The kernel prints `%d.%03d` of the quotient and
/// the remainder by 1000: in C both have the sign, as in `0.-62`.
fn indices(text: &str, zone: &str) -> Vec<i32> {
    let line = text.lines().find_map(|line| line.split_once(zone));
    let words = line.unwrap().1.split_whitespace();
    let index = |word: &str| {
        let (whole, part) = word.split_once('.').unwrap();
        whole.parse::<i32>().unwrap() * 1000 + part.parse::<i32>().unwrap()
    };
    words.map(index).collect()
}

#[test]
fn buddyinfo_agrees_with_the_kernels_own_indices() {
    let host = recorded("linux-6.18");
    let zones = host.buddyinfo().unwrap();
    // The three files were read one after another: in the zones that did not change meanwhile they
    // must agree.
    let quiet = zones.iter().filter(|zone| zone.zone != "Normal");
    let [unusable, extfrag] = [
        include_str!("recorded/linux-6.18/sys/kernel/debug/extfrag/unusable_index"),
        include_str!("recorded/linux-6.18/sys/kernel/debug/extfrag/extfrag_index"),
    ];
    let mut compared = 0;
    for zone in quiet {
        let unusable = indices(unusable, &zone.zone);
        let extfrag = indices(extfrag, &zone.zone);
        for order in Order::ZERO.up_to(zone.max_order()) {
            let counts = zone.counts();
            assert_eq!(counts.unusable_index(order) as i32, unusable[order.index()]);
            assert_eq!(counts.fragmentation_index(order), extfrag[order.index()]);
            compared += 1;
        }
    }
    assert_eq!(compared, 22);
}

#[test]
fn page_types_of_a_recorded_host() {
    let types = recorded("linux-6.18").page_types().unwrap();
    assert_eq!(types.page_block_order, 9);
    assert_eq!(types.free.len(), 15);
    let blocks = &types.blocks[1];
    assert_eq!((blocks.zone.as_str(), blocks.blocks.len()), ("DMA32", 5));
    assert_eq!(blocks.blocks[1], ("Movable".into(), 1528));
}

#[test]
fn counters_of_a_recorded_host() {
    let host = recorded("linux-6.18");
    assert_eq!(host.meminfo().unwrap().get("Hugepagesize"), Some(2048));
    assert!(host.vmstat().unwrap().get("nr_free_pages").unwrap() > 0);
    assert_eq!(host.huge_order(), Some(9));
    let texts = host.texts();
    assert!(texts.zoneinfo.starts_with("Node 0, zone"));
    assert!(texts.pagetypeinfo.starts_with("Page block order: 9"));
    assert!(!texts.vmstat.is_empty() && !texts.buddyinfo.is_empty());
}

#[test]
fn two_nodes_with_cma_and_counts_that_stop() {
    let host = recorded("two-nodes");
    let zones = host.zones().unwrap();
    let names: Vec<_> = zones
        .iter()
        .map(|zone| (zone.node, zone.name.as_str()))
        .collect();
    let expected = [
        (0, "DMA"),
        (0, "DMA32"),
        (0, "Normal"),
        (1, "Normal"),
        (1, "Movable"),
    ];
    assert_eq!(names, expected);
    assert_eq!(zones[1].cma, 32_768);
    assert_eq!(zones[3].idle_in_pagesets(), 102);
    assert_eq!(
        counter(&zones, "nr_slab_unreclaimable"),
        Some(52_000),
        "of both nodes"
    );

    let types = host.page_types().unwrap();
    assert_eq!(types.free.len(), 12);
    let movable = types
        .free
        .iter()
        .find(|row| row.node == 1 && row.kind == "Movable")
        .unwrap();
    assert_eq!(movable.free[0], Counted::MoreThan(100_000));
    assert_eq!(movable.free[2], Counted::Exactly(99_120));
    assert_eq!(movable.free[0].at_least(), 100_000);
    let cma = |row: &pagetypeinfo::BlocksOfZone| row.blocks[4].clone();
    assert_eq!(cma(&types.blocks[1]), ("CMA".into(), 64));
    assert_eq!(types.blocks.len(), 5);
}

#[test]
fn an_old_kernel_without_node_counters() {
    let zones = recorded("old-2.6").zones().unwrap();
    assert_eq!(zones.len(), 2);
    let normal = &zones[1];
    assert_eq!(
        (normal.managed, normal.start_pfn),
        (223_520, 4096),
        "all present is managed"
    );
    let set = PageSet {
        cpu: 0,
        count: 22,
        high: 62,
        batch: 15,
    };
    assert_eq!(normal.pagesets, [set], "hot and cold list together");
    assert_eq!(counter(&zones, "nr_slab_reclaimable"), Some(9013));
    assert!(normal.node_stats.is_empty());
}

#[test]
fn more_orders_than_usual() {
    let host = recorded("large-blocks");
    let zone = &host.buddyinfo().unwrap()[0];
    assert_eq!(zone.max_order(), Order::new(12));
    assert_eq!(zone.counts().suitable(Order::new(11)), 4 + 2 * 19);
    assert_eq!(host.page_types().unwrap().page_block_order, 11);
}

#[test]
fn errors_for_absent_files_say_what_to_do() {
    let host = recorded("old-2.6");
    let none = host.page_states(|| 0, |_, _| {}).unwrap_err();
    assert!(matches!(none, HostError::Absent { .. }));
    assert!(
        none.to_string().contains("CONFIG_PROC_PAGE_MONITOR"),
        "{none}"
    );
    let texts = host.texts();
    assert_eq!(texts.vmstat, "", "what is not there is empty");
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    let error = buddyinfo::parse("Node 0, zone DMA 1 2\nNode 0, zone Normal 1 x 3\n").unwrap_err();
    assert_eq!(error.to_string(), "buddyinfo, line 2: `x` is not a number");
    let orders = "1 ".repeat(20);
    let error = buddyinfo::parse(&format!("Node 0, zone DMA {orders}")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "buddyinfo, line 1: 20 orders, expected 1 to 19"
    );
    let error = zoneinfo::parse("  pages free 7\n").unwrap_err();
    assert_eq!(error.line, 1);
    let error = zoneinfo::parse("Node 0, zone DMA\n  pages free lots\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "zoneinfo, line 2: `lots` is not a number"
    );
    let error = pagetypeinfo::parse("Page block order: 77\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "pagetypeinfo, line 1: an order is at most 18"
    );
    let rows = "Number of blocks type A B\nNode 0, zone DMA 1\n";
    let error = pagetypeinfo::parse(rows).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pagetypeinfo, line 2: 1 counts for 2 types"
    );
    let error = counters::parse_vmstat("nr_free_pages\n").unwrap_err();
    assert_eq!(error.line, 1);
}

#[test]
fn memory_is_where_iomem_says() {
    let text = "00000000-00000fff : Reserved\n00001000-0009fbff : System RAM\n00100000-bfffffff : System RAM\n  01000000-02208d87 : Kernel code\n100000000-13fffffff : System RAM\n4000000000-7fffffffff : device\n  4000000000-40ffffffff : System RAM (virtio_mem)\n";
    let ranges = iomem::parse(text).unwrap();
    let expected = [
        0x1000..0x9_fc00,
        0x10_0000..0xc000_0000,
        0x1_0000_0000..0x1_4000_0000,
        0x40_0000_0000..0x41_0000_0000,
    ];
    assert_eq!(ranges, expected);
    let hidden = "00000000-00000000 : System RAM\n00000000-00000000 : System RAM\n";
    assert_eq!(iomem::parse(hidden).unwrap(), []);
    assert!(iomem::parse("12-zz : System RAM\n").is_err());
    assert!(iomem::parse("0-ffffffffffffffff : System RAM\n").is_err());
}

/// Runs all parsers on one text; errors are fine.
fn parse_all(text: &str) {
    let _ = zoneinfo::parse(text).map(|zones| {
        let _ = counter(&zones, "nr_free_pages");
        zones
            .iter()
            .map(|zone| zone.end_pfn() ^ zone.idle_in_pagesets())
            .max()
    });
    let _ = buddyinfo::parse(text).map(|zones| {
        for zone in &zones {
            let _ = (zone.max_order(), zone.counts().unusable_index(Order::HUGE));
        }
    });
    let _ = pagetypeinfo::parse(text);
    let _ = counters::parse_vmstat(text);
    let _ = counters::parse_meminfo(text);
    let _ = iomem::parse(text);
}

const TEXTS: [&str; 9] = [
    include_str!("recorded/linux-6.18/proc/zoneinfo"),
    include_str!("recorded/linux-6.18/proc/buddyinfo"),
    include_str!("recorded/linux-6.18/proc/pagetypeinfo"),
    include_str!("recorded/linux-6.18/proc/vmstat"),
    include_str!("recorded/linux-6.18/sys/kernel/debug/extfrag/extfrag_index"),
    include_str!("recorded/two-nodes/proc/zoneinfo"),
    include_str!("recorded/two-nodes/proc/pagetypeinfo"),
    include_str!("recorded/old-2.6/proc/zoneinfo"),
    "00001000-0009fbff : System RAM\n00100000-bfffffff : System RAM\n",
];

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in any::<String>()) {
        parse_all(&text);
    }

    /// Real texts with some characters replaced, a piece removed, and the end cut off.
    #[test]
    fn no_mutated_text_makes_a_parser_panic(
        which in 0..TEXTS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..8),
        cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        end in any::<prop::sample::Index>(),
    ) {
        let mut text: Vec<char> = TEXTS[which].chars().collect();
        for (at, with) in changes {
            let at = at.index(text.len());
            text[at] = with;
        }
        let (a, b) = (cut.0.index(text.len()), cut.1.index(text.len()));
        // Small pieces, so that most of the text stays.
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 20));
        text.drain(from..to);
        let end = end.index(text.len() * 2).min(text.len());
        text.truncate(end);
        parse_all(&text.into_iter().collect::<String>());
    }
}
