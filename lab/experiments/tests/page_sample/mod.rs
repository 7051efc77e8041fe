//! A small made-up run: one document with every kind of piece, table and plot, and names that would
//! inject markup into the page if they were not escaped.

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::document::{
    Among, Claim, Curve, Document, Figure, Finding, Head, Mistake, Outcome, Piece, Plot, Points,
    ShownIn, Statistic, Table, TableLine, Verdict, Word,
};
use brickyard_experiments::judge::{Judge, Judgement};
use brickyard_experiments::page::{Embedded, Missing, Report, write};
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_experiments::record::Behind;
use brickyard_pictures::pagetypes::{Film, PageKind, Plan, ZoneSpan, html};
use brickyard_pictures::plot::{Axis, Scale};
use brickyard_results::{Better, Host};

pub(crate) const CONFIGS: [&str; 5] = [
    "list-2007",
    "vanilla",
    "magazine-2013",
    "brickyard",
    "</script><img src=x onerror=console.error(1)>",
];
const BATCHES: [u32; 8] = [1, 4, 16, 64, 256, 1024, 4096, 16384];
const MACHINES: [&str; 5] = ["bl6-13", "elm3b14", "elm3b245", "gekko-lp1", "gekko-lp4"];

pub(crate) fn key(machine: &str, workload: &str, config: &str, metric: &str) -> Key {
    Key::new("pagealloc", machine, workload, config, metric)
}

fn batch(batch: u32, config: &str) -> Key {
    key("host", &format!("order-0 batch-{batch}"), config, "total")
}

/// What is assumed otherwise of machines: what the workload of the rows ends with.
const ASSUMED: [&str; 2] = ["sweep-memory-0.75", "sweep-memory-1.5"];

fn huge_pages(machine: &str, config: &str) -> Key {
    key(machine, "plain under load", config, "huge-pages")
}

/// Returns the rows: batches with a spread, huge pages on machines, and a series.
pub(crate) fn data() -> Data {
    let mut cells = Vec::new();
    let cell = |name: &str, kind: Method, rows: Vec<Raw>| CellRows {
        cell: format!("pagealloc.{name}"),
        kind,
        seed: u64::MAX,
        host: Host::unknown(),
        program: String::new(),
        rows,
    };
    for round in 1..=7 {
        let mut rows = Vec::new();
        for (i, config) in CONFIGS.into_iter().enumerate() {
            for (j, batch) in BATCHES.into_iter().enumerate() {
                let wave = 1.0 + f64::from(round * 37 % 11) / 90.0;
                let value = (10.0 + 11.0 * i as f64 + 3.0 * (j as f64 - 3.5).abs()) * wave;
                let of = self::batch(batch, config);
                // In two sittings.
                rows.push(raw(&of, "ns/page", Better::Lower, round + 5, value));
            }
        }
        cells.push(cell(&format!("timed.{round}"), Method::Timed, rows));
    }
    let mut rows = Vec::new();
    for (i, config) in CONFIGS.into_iter().enumerate() {
        for (j, machine) in MACHINES.into_iter().enumerate() {
            let of = key(machine, "plain under load", config, "huge-pages");
            let value = f64::from((i as u32 * 29 + j as u32 * 17) % 80) + 0.123_456_789;
            rows.push(raw(&of, "%", Better::Higher, 1, value));
            // The last machine is not swept, and the first turns round.
            if j + 1 < MACHINES.len() {
                for (k, assumed) in ASSUMED.into_iter().enumerate() {
                    let of = Key {
                        workload: format!("{} {assumed}", of.workload),
                        ..of.clone()
                    };
                    let turned = if j == 0 && k == 1 {
                        80.0 - value
                    } else {
                        value
                    };
                    let value = turned * (1.0 + k as f64 / 8.0);
                    rows.push(raw(&of, "%", Better::Higher, 1, value));
                }
            }
        }
        for second in 0..120 {
            let of = key("elm3b245", "plain", config, "huge-free");
            let at = f64::from(second) * 2.0;
            let value = 60.0 - at / 9.0 + (at / 20.0 + i as f64).sin() * 6.0;
            rows.push(Raw {
                at: Some(at),
                ..raw(&of, "%", Better::Higher, 1, value)
            });
        }
    }
    cells.push(cell("replayed.all", Method::Replayed, rows));
    Data::new(cells).unwrap()
}

fn raw(key: &Key, unit: &str, better: Better, run: u32, value: f64) -> Raw {
    Raw {
        machine: key.machine.clone(),
        workload: key.workload.clone(),
        config: key.config.clone(),
        metric: key.metric.clone(),
        unit: unit.to_owned(),
        better,
        run,
        at: None,
        value,
    }
}

pub(crate) fn documents() -> Vec<Document> {
    let mut empty = document();
    empty.experiment = "slab";
    empty.title = "What was not measured";
    for table in &mut empty.tables {
        table.id = format!("slab-{}", table.id);
    }
    for key in empty
        .tables
        .iter_mut()
        .flat_map(|table| &mut table.lines)
        .flat_map(|line| line.cells.iter_mut().flatten())
        .flat_map(|figure| figure.of.iter_mut().chain(&mut figure.against))
    {
        key.experiment = "slab".to_owned();
    }
    empty.findings.clear();
    empty.today.clear();
    empty.plots.truncate(1);
    for plot in &mut empty.plots {
        plot.id = "slab-empty".to_owned();
        for curve in &mut plot.curves {
            curve.points = Points::Series(Key::new("slab", "host", "none", "none", "none"));
        }
    }
    vec![document(), empty]
}

const MISTAKES: &str = "\
conclusion The sums of each line are carried over from the line before, so batch 2 holds the pages of batch 1 too.
print One table says cycles, the next nanoseconds; they are the same numbers.
conclusion `batch + 1` pages are freed where `batch` were taken.
";

fn document() -> Document {
    Document {
        experiment: "pagealloc",
        title: "Magazines in front of the buddy lists",
        source: "Mel Gorman, \"A made-up message\", 8 May 2013",
        by: "Gorman 2013",
        asked: "Order-0 pages came from lists that each CPU had for itself, with interrupts masked. Are two magazines that all CPUs share, each behind a spinlock, as fast as lists of each CPU? The document says: nearly, and the interrupts stay on.",
        claimed: "Two magazines that all CPUs share are nearly as fast as lists of each CPU.",
        decides: "Made-up rounds on a made-up host: the interval of `a/b`.",
        findings: findings(),
        mistakes: Mistake::all(MISTAKES),
        tables: vec![
            table("pagealloc-order-0", "Order 0, `ns` a page", Published::Yes),
            assumed(),
        ],
        today: vec![table(
            "pagealloc-today",
            "Today's configurations",
            Published::No,
        )],
        plots: plots(),
    }
}

fn findings() -> Vec<Finding> {
    let speed = || {
        let of = |config| BATCHES.map(|size| batch(size, config)).to_vec();
        Figure::gmean(of("magazine-2013"), of("list-2007"))
    };
    let text = |text: &str| Piece::Text(text.to_owned());
    vec![
        Finding {
            pieces: vec![
                text("With magazines a page is "),
                Piece::Word(Word {
                    swept: Vec::new(),
                    figure: speed(),
                    margin: 0.01,
                    above: "cheaper",
                    below: "more expensive",
                    between: "as cheap",
                }),
                text(": "),
                Piece::Figure(speed()),
                text(" times the speed of `list-2007` on this host. Of "),
                Piece::Directions(Outcome::Any, Among::All),
                text(" published directions "),
                Piece::Directions(Outcome::Is(Verdict::Same), Among::All),
                text(" come out."),
            ],
            shown: ShownIn::SummaryToo,
        },
        Finding {
            pieces: vec![
                text("The default takes "),
                Piece::Figure(Figure::new(Statistic::Median, batch(1, "brickyard")).decimals(1)),
                text(" ns for a page and its way back."),
            ],
            shown: ShownIn::Document,
        },
        Finding {
            pieces: vec![
                text("This sentence is left out: "),
                Piece::Figure(Figure::new(
                    Statistic::Mean,
                    key("host", "never", "run", "x"),
                )),
            ],
            shown: ShownIn::SummaryToo,
        },
    ]
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Published {
    Yes,
    No,
}

/// Returns a table with every statistic that a line can have, for each batch.
fn table(id: &str, title: &str, published: Published) -> Table {
    use Statistic::{
        Difference, DifferencePercent, Gain, Interval95, Max, Mean, Median, Min, Range, Share,
        Speedup, StdDev,
    };
    let statistics = [
        Mean,
        Median,
        Min,
        Max,
        Range,
        StdDev,
        Interval95,
        Speedup,
        Gain,
        Difference,
        DifferencePercent,
        Share,
    ];
    let head = |text: &str, span| Head {
        text: text.to_owned(),
        span,
    };
    let mut columns = Vec::new();
    let mut lines: Vec<TableLine> = BATCHES
        .into_iter()
        .map(|size| TableLine {
            head: format!("order-0 total-{size}"),
            cells: Vec::new(),
        })
        .collect();
    for (i, statistic) in statistics.into_iter().enumerate() {
        columns.push(head(&format!("{statistic:?}"), 1));
        for (line, size) in lines.iter_mut().zip(BATCHES) {
            let config = CONFIGS[1 + i % 4];
            let mut figure =
                Figure::new(statistic, batch(size, config)).against(batch(size, "list-2007"));
            if published == Published::Yes {
                // As in the documents: another unit, and an inverted sign.
                figure = figure.printed("671.00*").scaled(match statistic {
                    Mean => 1000.0,
                    Gain => -1.0,
                    _ => 1.0,
                });
                if statistic == Speedup || statistic == Gain {
                    figure = figure.judged(if i % 2 == 0 { 1.2 } else { 0.8 }, Claim::Significant);
                }
            }
            line.cells.push(Some(figure));
        }
    }
    lines.push(TableLine {
        head: "hdparm, a line of the document with a long name that is not modelled".to_owned(),
        cells: (0..statistics.len())
            .map(|i| (i % 3 > 0).then(|| Figure::not_modelled("12.3 <b>")))
            .collect(),
    });
    Table {
        id: id.to_owned(),
        title: title.to_owned(),
        about: "Measured on this host's clock, each configuration in turn; the document measured in cycles, of which these nanoseconds are a multiple. Only ratios can be compared.".to_owned(),
        head: vec![
            vec![head("samples", 7), head("against list-2007", 5)],
            columns,
        ],
        lines,
    }
}

/// Returns a table of assumed machines: a direction and a claim about a value for each, swept.
fn assumed() -> Table {
    let lines = MACHINES.map(|machine| {
        let of = Figure::mean(huge_pages(machine, "vanilla"));
        let against = huge_pages(machine, "list-2007");
        let direction = of.clone().against(against).printed("34");
        let direction = direction.judged(1.5, Claim::Untested).swept(&ASSUMED);
        let claim = of.at_least(40, 40.0, "at least 40").swept(&ASSUMED);
        TableLine {
            head: machine.to_owned(),
            cells: vec![Some(direction), Some(claim)],
        }
    });
    let head = ["vanilla", "claim"].map(|text| Head {
        text: text.to_owned(),
        span: 1,
    });
    Table {
        id: "pagealloc-assumed".to_owned(),
        title: "Huge pages of assumed machines".to_owned(),
        about: "Replayed, with other memory too.".to_owned(),
        head: vec![head.to_vec()],
        lines: lines.to_vec(),
    }
}

fn plots() -> Vec<Plot> {
    let axis = |label: &str, scale| Axis {
        label: label.to_owned(),
        scale,
    };
    let curves = |points: &dyn Fn(&str) -> Points, scale: f64| {
        let curve = |config: &str| Curve {
            name: config.to_owned(),
            points: points(config),
            scale,
        };
        CONFIGS.map(curve).to_vec()
    };
    let plot = |id: &str, title: &str, x, y, curves| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        about: "Lower is better; the band is from the least to the most of all rounds.".to_owned(),
        x,
        y,
        curves,
    };
    let batches = |config: &str| {
        Points::Samples(
            BATCHES
                .map(|size| (f64::from(size), batch(size, config)))
                .to_vec(),
        )
    };
    let machines = |config: &str| {
        let places = MACHINES.iter().enumerate();
        let places = places.map(|(i, machine)| {
            (
                i as f64,
                key(machine, "plain under load", config, "huge-pages"),
            )
        });
        Points::Samples(places.collect())
    };
    let series = |config: &str| Points::Series(key("elm3b245", "plain", config, "huge-free"));
    let machine_names = Scale::Names(MACHINES.map(str::to_owned).to_vec());
    vec![
        plot(
            "pagealloc-batches",
            "What a page costs, by batch",
            axis("pages in a batch", Scale::Log),
            axis("ns a page, allocated and freed", Scale::Log),
            curves(&batches, 1.0),
        ),
        plot(
            "pagealloc-machines",
            "Huge pages under load",
            axis("machine", machine_names),
            axis("huge pages, % of memory", Scale::Linear),
            curves(&machines, 1.0),
        ),
        plot(
            "pagealloc-series",
            "Huge pages over time",
            axis("seconds of the machine", Scale::Linear),
            axis("free huge pages, of memory", Scale::Linear),
            curves(&series, 0.01),
        ),
    ]
}

/// Returns a small player page.
#[allow(dead_code, reason = "one of the two tests has a player")]
pub(crate) fn player() -> Embedded {
    let films: Vec<Film> = ["vanilla", "combined-2007"]
        .map(|name| {
            let zones = vec![ZoneSpan {
                name: "Normal".to_owned(),
                start: 0,
                frames: 32_768,
            }];
            let plan = Plan {
                zones,
                box_order: 10,
                huge_order: 9,
                frame_bytes: 4096,
            };
            let mut film = Film::new(name.to_owned(), plan).unwrap();
            for shot in 0..12_u64 {
                let kind = |frame: u64| PageKind::ALL[((frame / 700 * (shot + 1)) % 5) as usize];
                let kinds: Vec<PageKind> = (0..32_768).map(kind).collect();
                film.push(shot * 1_000_000_000, &kinds, &[]).unwrap();
            }
            film
        })
        .into();
    let mut page = Vec::new();
    html::write(&films.iter().collect::<Vec<_>>(), "elm3b245", &mut page).unwrap();
    Embedded {
        experiment: "pagealloc".to_owned(),
        title: "The pages of elm3b245 under load".to_owned(),
        file: "pages/elm3b245.html".to_owned(),
        html: String::from_utf8(page).unwrap(),
    }
}

/// Returns missing cells: one with a reason of its own, and many for one reason.
fn missing() -> Vec<Missing> {
    let missing = |cell: String, why: &str| Missing {
        cell,
        why: why.to_owned(),
    };
    let mut all = vec![missing("slab.host.timed.1".to_owned(), "no trace <of it>")];
    all.extend((1..=9).map(|run| missing(format!("slab.host.left.{run}"), "interrupted")));
    all
}

/// Returns a sentence with a figure, and a count of directions.
fn winner() -> Finding {
    let times = Figure::new(Statistic::Speedup, batch(64, "brickyard"));
    Finding {
        pieces: vec![
            Piece::Text("Here `brickyard` is ".to_owned()),
            Piece::Figure(times.against(batch(64, "list-2007"))),
            Piece::Text(" times as fast, of ".to_owned()),
            Piece::Directions(Outcome::Any, Among::All),
            Piece::Text(" differences.".to_owned()),
        ],
        shown: ShownIn::SummaryToo,
    }
}

/// Returns the page of these documents and rows.
pub(crate) fn page(documents: &[Document], data: &Data, pages: Vec<Embedded>) -> String {
    let judge = Judge::new(documents, data);
    page_judged(documents, data, pages, &|figure| judge.judge(figure))
}

/// Returns the same with the given judgements.
pub(crate) fn page_judged(
    documents: &[Document],
    data: &Data,
    pages: Vec<Embedded>,
    judged: &dyn Fn(&Figure) -> Option<Judgement>,
) -> String {
    let report = Report {
        documents,
        data,
        behind: &Behind::default(),
        judged,
        command: "brickyard reproduce --quick -o report".to_owned(),
        cell_command: &|cell| format!("brickyard reproduce --cell '{cell}' -o report"),
        warnings: vec!["An atomic addition took between 4 and 31 ns on this host: of timed figures only large differences say something.".to_owned()],
        pages,
        date: "2026-01-02 03:04 UTC".to_owned(),
        version: "0.1.0".to_owned(),
        missing: missing(),
        winner: Some(winner()),
    };
    let mut out = Vec::new();
    write(&report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
