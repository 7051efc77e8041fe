//! Gorman 2007: pages grouped by mobility, by lists and by a zone.

mod printed;
mod reclaim;
mod words;

use brickyard_pictures::plot::Scale;
use brickyard_results::Better;
use brickyard_workload::antifrag::{MOMENTS, MinFree};

use printed::OF_2007;

use crate::antifrag::variants;
use crate::cells::simulated::OTHER_INSTRUCTIONS;
use crate::data::Key;
use crate::document::{
    Claim, Curve, Document, Figure, Finding, Mistake, Piece, Plot, Points, Statistic, Table,
};
use crate::documents::build::{
    PrintedMeans, Row, Today, axis, columns, curve_over_names, directed, directions, finding,
    gmean, heads, line, mean, names, printed_speedup, summary,
};

const EXPERIMENT: &str = "mobility";
const MACHINES: [&str; 5] = ["bl6-13", "elm3b14", "elm3b245", "gekko-lp1", "gekko-lp4"];
/// The two machines whose memory is recorded over time.
const RECORDED_OVER_TIME: [&str; 2] = ["elm3b245", "gekko-lp4"];
/// The document's four kernels, the baseline first.
const KERNELS: [&str; 4] = ["vanilla", "list-2007", "zone-2007", "combined-2007"];
const ALL: [&str; 7] = [
    "vanilla",
    "list-2007",
    "zone-2007",
    "combined-2007",
    "two-kinds-2005",
    "magazine-2013",
    "brickyard",
];
const TIMED: [&str; 5] = [
    "vanilla",
    "list-2007",
    "zone-2007",
    "combined-2007",
    "brickyard",
];

fn key(machine: &str, workload: &str, config: &str, metric: &str) -> Key {
    Key::new(EXPERIMENT, machine, workload, config, metric)
}

pub(crate) fn document() -> Document {
    Document {
        experiment: EXPERIMENT,
        title: "Pages grouped by mobility",
        source: "Mel Gorman, \"The performance and behaviour of the anti-fragmentation related patches\", 1 March 2007",
        by: "Gorman 2007",
        asked: words::ASKED,
        claimed: words::CLAIMED,
        decides: words::DECIDES,
        findings: findings(),
        mistakes: Mistake::all(include_str!("document/mistakes.txt")),
        tables: tables(),
        today: today(),
        plots: plots(),
    }
}

/// Returns the names of the protocol's assumptions that are varied.
pub(crate) fn assumptions() -> [&'static str; 5] {
    variants::OF_2007.map(|variant| variant.name)
}

/// What one of the eight tables shows.
struct TableOf {
    id: String,
    workload: String,
    metric: &'static str,
    better: Better,
    decimals: usize,
    /// Whether its directions are judged.
    is_judged: bool,
}

impl TableOf {
    fn line(
        &self,
        &[_, machine, architecture, ref texts @ ..]: &printed::PrintedLine,
    ) -> crate::document::TableLine {
        let of = |config: &str| key(machine, &self.workload, config, self.metric);
        let cells = KERNELS.iter().zip(texts).map(|(config, &text)| {
            let figure = Figure::mean(of(config))
                .printed(text)
                .decimals(self.decimals);
            Some(if *config == KERNELS[0] {
                figure
            } else {
                let speedup = printed_speedup(self.better, texts[0], text);
                let figure = figure.against(of(KERNELS[0]));
                match (self.is_judged, self.better) {
                    (false, _) => figure,
                    (true, Better::Higher) => {
                        directed(figure, speedup, Claim::Untested).swept(&assumptions())
                    }
                    (true, _) => {
                        directed(figure, speedup, Claim::Untested).swept_alone(&OTHER_INSTRUCTIONS)
                    }
                }
            })
        });
        line(format!("{machine} ({architecture})"), cells.collect())
    }

    fn table(&self, title: String, about: &str) -> Table {
        let unit = match self.better {
            Better::Lower | Better::Neither => "Seconds",
            Better::Higher => "Percentage",
        };
        let lines = OF_2007.iter().filter(|[table, ..]| *table == self.id);
        Table {
            id: format!("mobility-{}", self.id),
            title,
            about: about.to_owned(),
            head: vec![
                columns(&[
                    "Vanilla Kernel",
                    "List-base Kernel",
                    "Zone-base Kernel",
                    "Combined Kernel",
                ]),
                heads(&[(unit, 1); 4]),
            ],
            lines: lines.map(|of| self.line(of)).collect(),
        }
    }
}

fn tables() -> Vec<Table> {
    let mut tables = tables_of_2007();
    tables.extend(reclaim::tables());
    tables
}

/// The eight tables, as they are printed.
fn tables_of_2007() -> Vec<Table> {
    let mut tables = Vec::new();
    for (reclaim, id, with, builds, huge_pages) in [
        ("plain", "", "", words::KERNBENCH, words::HUGE_PAGES),
        (
            "lumpy",
            "-reclaim",
            ", with the reclaim patches",
            words::KERNBENCH_RECLAIM,
            words::HUGE_PAGES_RECLAIM,
        ),
    ] {
        for (metric, time) in [("cpu-time", "CPU"), ("elapsed", "Elapsed")] {
            let of = TableOf {
                id: format!("{metric}{id}"),
                workload: "kernbench".to_owned(),
                metric,
                better: Better::Lower,
                decimals: 2,
                // With the patches they would be compared with the measurement that they are
                // compared with without, and all are below 1 %.
                is_judged: reclaim == "plain",
            };
            tables.push(of.table(format!("Kernbench Total {time} Time{with}"), builds));
        }
        for (moment, end) in [("under load", ""), ("at rest", " at end of test")] {
            let of = TableOf {
                id: format!("{}{id}", moment.replace(' ', "-")),
                workload: format!("{reclaim} {moment}"),
                metric: "huge-pages",
                better: Better::Higher,
                decimals: 1,
                is_judged: true,
            };
            let title = format!("Percentage of memory allocated as huge pages {moment}{end}{with}");
            tables.push(of.table(title, huge_pages));
        }
    }
    tables
}

fn today() -> Vec<Table> {
    let huge = Today {
        experiment: EXPERIMENT,
        configs: &ALL,
        beside: Statistic::Difference,
    };
    let timed = Today::gains(EXPERIMENT, &TIMED);
    let by_reclaim = [
        ("plain", "the oldest pages first"),
        ("lumpy", "with the reclaim patches of 2007"),
        ("compaction", "with compaction, as since 2010"),
    ];
    let mut tables: Vec<Table> = by_reclaim
        .map(|(reclaim, words)| {
            let mut rows = Vec::new();
            for machine in MACHINES {
                let of = |moment: &str| format!("{reclaim} {moment}");
                let row = |head: &str, moment, metric| {
                    Row::new(format!("{machine}: {head}"), machine, of(moment), metric)
                };
                rows.push(row("under load", "under load", "huge-pages"));
                rows.push(row("at rest", "at rest", "huge-pages"));
                rows.push(row("possible at rest", "at rest", "possible"));
            }
            huge.table(
                &format!("mobility-today-{reclaim}"),
                &format!("Percent of memory as huge pages, {words}"),
                words::TODAY_HUGE,
                rows,
            )
        })
        .into();
    let builds = MACHINES.into_iter().flat_map(|machine| {
        [("CPU time, s", "cpu-time"), ("elapsed, s", "elapsed")].map(|(head, metric)| {
            Row::new(format!("{machine}: {head}"), machine, "kernbench", metric).decimals(3)
        })
    });
    tables.push(timed.table(
        "mobility-today-kernbench",
        "A build on each machine (simulated)",
        words::TODAY_KERNBENCH,
        builds.collect(),
    ));
    tables.push(min_free());
    tables
}

/// The claim about `min_free_kbytes`: a line for each moment, a column for each setting.
fn min_free() -> Table {
    let settings = MinFree::ALL.map(MinFree::name);
    let lines = MOMENTS.map(|moment| {
        let cells = settings.map(|setting| Some(Figure::mean(free(setting, moment)).decimals(0)));
        line(moment, cells.into())
    });
    Table {
        id: "mobility-min-free".to_owned(),
        title: "Free huge pages of gekko-lp4 by min_free_kbytes, vanilla".to_owned(),
        about: words::MIN_FREE.to_owned(),
        head: vec![columns(&settings)],
        lines: lines.into(),
    }
}

/// Returns the key of the free huge pages with this setting at this moment.
fn free(setting: &str, moment: &str) -> Key {
    let workload = format!("{setting}: {moment}");
    key("gekko-lp4-min-free", &workload, "vanilla", "huge-pages")
}

fn by_machine(moment: &str) -> Plot {
    let workload = format!("plain {moment}");
    let curves = ALL.map(|config| {
        let of = |machine| key(machine, &workload, config, "huge-pages");
        curve_over_names(config, MACHINES.map(of))
    });
    Plot {
        id: format!("mobility-machines-{}", moment.replace(' ', "-")),
        title: format!("Huge pages {moment}, by machine (replayed)"),
        about: words::PLOT_MACHINES.to_owned(),
        x: names("machine", &MACHINES),
        y: axis("% of memory", Scale::Linear),
        curves: curves.into(),
    }
}

fn over_time(machine: &str, id: &str, metric: &str, title: &str, label: &str) -> Plot {
    let curves = ALL.map(|config| Curve {
        name: config.to_owned(),
        points: Points::Series(key(machine, "plain", config, metric)),
        scale: 1.0,
    });
    Plot {
        id: format!("mobility-{id}-{machine}"),
        title: format!("{title}, {machine} (replayed)"),
        about: words::PLOT_TIME.to_owned(),
        x: axis("seconds of the machine", Scale::Linear),
        y: axis(label, Scale::Linear),
        curves: curves.into(),
    }
}

fn plots() -> Vec<Plot> {
    let mut plots = vec![by_machine("under load"), by_machine("at rest")];
    for machine in RECORDED_OVER_TIME {
        plots.push(over_time(
            machine,
            "free",
            "huge-free",
            "Free huge pages over time",
            "% of memory",
        ));
        plots.push(over_time(
            machine,
            "mixed",
            "mixed",
            "Page blocks that hold more than one kind",
            "page blocks",
        ));
    }
    plots
}

/// Returns the keys of huge pages at rest, without the reclaim patches, on all machines.
pub(crate) fn at_rest(config: &str) -> Vec<Key> {
    on_all("plain at rest", config)
}

/// Returns the same under load.
pub(crate) fn under_load(config: &str) -> Vec<Key> {
    on_all("plain under load", config)
}

fn on_all(workload: &str, config: &str) -> Vec<Key> {
    MACHINES
        .map(|machine| key(machine, workload, config, "huge-pages"))
        .into()
}

fn findings() -> Vec<Finding> {
    let tables = tables();
    let build: Vec<Key> = MACHINES
        .map(|machine| key(machine, "kernbench", "combined-2007", "cpu-time"))
        .into();
    let build = PrintedMeans::of(&tables, &build);
    let [build_mean, build_printed] = build.means(3);
    let lists_at_rest = PrintedMeans::of(&tables, &at_rest("list-2007"));
    let [rest_lists, rest_lists_printed] = lists_at_rest.means(1);
    let [rest_zone, rest_zone_printed] = PrintedMeans::of(&tables, &at_rest("zone-2007")).means(1);
    let [rest_both, rest_both_printed] =
        PrintedMeans::of(&tables, &at_rest("combined-2007")).means(1);
    let [load_lists, load_lists_printed] =
        PrintedMeans::of(&tables, &under_load("list-2007")).means(1);
    let [load_both, load_both_printed] =
        PrintedMeans::of(&tables, &under_load("combined-2007")).means(1);
    let more = [
        "more huge pages with grouping by lists than without",
        "fewer huge pages with grouping by lists than without",
        "as many huge pages with grouping by lists as without",
    ];
    let faster = [
        "faster with both than without",
        "slower with both than without",
        "as fast with both as without",
    ];
    let count = |setting: MinFree, moment: usize| mean(free(setting.name(), MOMENTS[moment]), 0);
    let of_one = |config: &str| mean(key("gekko-lp4", "plain at rest", config, "huge-pages"), 0);
    let possible = Piece::Figure(
        Figure::compared(
            Statistic::Share,
            key("gekko-lp4", "plain at rest", "brickyard", "huge-pages"),
            key("gekko-lp4", "plain at rest", "brickyard", "possible"),
        )
        .decimals(0),
    );
    vec![
        summary(
            "At rest the machines have {}: {} times as many with lists (published: {}), {} times with a zone (published: {}), {} times with both (published: {}), {} times with `brickyard` (replayed; geometric means over the machines that have a published figure).",
            [
                lists_at_rest.word(more),
                rest_lists,
                rest_lists_printed,
                rest_zone,
                rest_zone_printed,
                rest_both,
                rest_both_printed,
                gmean(at_rest("brickyard"), at_rest("vanilla"), 1),
            ],
        ),
        finding(
            "Under load there are {} times as many with lists (published: {}), {} times with both (published: {}) and {} times with `brickyard`. A simulated build is {}, {} times the speed (published: {}).",
            [
                load_lists,
                load_lists_printed,
                load_both,
                load_both_printed,
                gmean(under_load("brickyard"), under_load("vanilla"), 1),
                build.word(faster),
                build_mean,
                build_printed,
            ],
        ),
        finding(
            "On gekko-lp4 at rest, the machine the document bases its argument on (published: 1, 32, 4 and 51 % of memory): {} % without grouping, {} % with lists, {} % with a zone, {} % with both; {} % with `brickyard`, which is {} % of what the pages that cannot be moved leave possible.",
            [
                of_one("vanilla"),
                of_one("list-2007"),
                of_one("zone-2007"),
                of_one("combined-2007"),
                of_one("brickyard"),
                possible,
            ],
        ),
        finding(
            "With a high min_free_kbytes from boot {} of gekko-lp4's huge pages are free after a minute under load, and {} after memory pressure (by default {} and {}). Raised after that minute, {} are free a minute later, where {} are with it from boot (replayed).",
            [
                count(MinFree::HighFromBoot, 2),
                count(MinFree::HighFromBoot, 4),
                count(MinFree::Low, 2),
                count(MinFree::Low, 4),
                count(MinFree::RaisedLater, 3),
                count(MinFree::HighFromBoot, 3),
            ],
        ),
        directions(),
    ]
}
