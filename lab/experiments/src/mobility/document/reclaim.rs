//! What the reclaim patches do, as the tables without and with them say, and the success that the
//! mail's note 8 expects: no tables of the mail, but claims that follow from its tables.

use std::sync::LazyLock;

use super::printed::OF_2007;
use brickyard_results::Better;

use super::{KERNELS, assumptions, key, words};
use crate::document::{Claim, Figure, Statistic, Table, TableLine, number};
use crate::documents::build::{columns, directed, line, printed_speedup};

/// The tables without the reclaim patches and with them, and when huge pages were requested.
const MOMENTS: [(&str, &str, &str); 2] = [
    ("under-load", "under-load-reclaim", "under load"),
    ("at-rest", "at-rest-reclaim", "at rest"),
];

/// The success that note 8 expects at least, in percent of memory.
const EXPECTED: u32 = 40;

/// The place of the zone-based kernel among [`KERNELS`].
const ZONE: usize = 2;

/// A machine at one of the two moments.
struct Change {
    machine: &'static str,
    architecture: &'static str,
    moment: &'static str,
    /// What is printed for each kernel, without the patches and with them.
    printed: [[&'static str; 2]; 4],
    /// Both, and their ratio, as a text.
    texts: [String; 4],
    /// What is printed for the zone-based kernel with the patches, and what is expected.
    claim: String,
}

/// The machines that have figures with the patches, at both moments.
static CHANGES: LazyLock<Vec<Change>> = LazyLock::new(|| {
    let of_moment = |(plain, lumpy, moment)| {
        let with = OF_2007.iter().filter(move |[table, ..]| *table == lumpy);
        with.filter_map(move |&[_, machine, architecture, ref with @ ..]| {
            let without = OF_2007.iter().find(|line| line[..2] == [plain, machine])?;
            let printed = core::array::from_fn(|kernel| [without[3 + kernel], with[kernel]]);
            Some(Change {
                machine,
                architecture,
                moment,
                printed,
                texts: printed.map(|[before, now]| {
                    let ratio = printed_speedup(Better::Higher, before, now);
                    let ratio = ratio
                        .map(|ratio| format!("{:.2} ", ratio.value))
                        .unwrap_or_default();
                    format!("{ratio}({before} to {now} %)")
                }),
                claim: format!("at least {EXPECTED} (printed: {})", printed[ZONE][1]),
            })
        })
    };
    MOMENTS.into_iter().flat_map(of_moment).collect()
});

pub(super) fn tables() -> Vec<Table> {
    let lines = CHANGES.iter().map(effect);
    let claims = CHANGES.iter().map(claim);
    vec![
        Table {
            id: "mobility-reclaim-effect".to_owned(),
            title: "Huge pages with the reclaim patches, over those without (worked out from the tables)"
                .to_owned(),
            about: words::RECLAIM_EFFECT.to_owned(),
            head: vec![columns(&[
                "Vanilla Kernel",
                "List-base Kernel",
                "Zone-base Kernel",
                "Combined Kernel",
            ])],
            lines: lines.collect(),
        },
        Table {
            id: "mobility-forty".to_owned(),
            title: "Note 8: success of at least 40 % of memory, zone-based kernel with the reclaim patches"
                .to_owned(),
            about: words::FORTY.to_owned(),
            head: vec![columns(&["% of memory"])],
            lines: claims.collect(),
        },
    ]
}

/// Returns how many times as many huge pages each kernel has with the patches.
fn effect(change: &'static Change) -> TableLine {
    let of = |config: &str, way| {
        let workload = format!("{way} {}", change.moment);
        key(change.machine, &workload, config, "huge-pages")
    };
    let cells = KERNELS.iter().enumerate().map(|(place, config)| {
        let [before, now] = change.printed[place];
        let (lumpy, plain) = (of(config, "lumpy"), of(config, "plain"));
        let figure = Figure::compared(Statistic::Speedup, lumpy, plain);
        let figure = figure.printed(&change.texts[place]);
        let speedup = printed_speedup(Better::Higher, before, now);
        let figure = directed(figure, speedup, Claim::Untested);
        Some(figure.swept(&assumptions()))
    });
    line(head(change), cells.collect())
}

fn claim(change: &'static Change) -> TableLine {
    let workload = format!("lumpy {}", change.moment);
    let key = key(change.machine, &workload, KERNELS[ZONE], "huge-pages");
    let own = number(change.printed[ZONE][1]).unwrap_or_default();
    let figure = Figure::mean(key)
        .decimals(1)
        .at_least(EXPECTED, own, &change.claim)
        .swept(&assumptions());
    line(head(change), vec![Some(figure)])
}

fn head(change: &Change) -> String {
    let Change {
        machine,
        architecture,
        moment,
        ..
    } = change;
    format!("{machine} ({architecture}), {moment}")
}
