//! Gorman 2013: page faults per second (`pft`).

use brickyard_pictures::plot::Scale;
use brickyard_results::Better;

use crate::cells::simulated::OTHER_INSTRUCTIONS;
use crate::data::Key;
use crate::document::{Document, Figure, Finding, Mistake, Plot, Table};
use crate::documents::build::{
    PrintedMeans, Row, Today, axis, curve, directions, finding, gmean, mean, printed_speedup,
    summary, times,
};
use crate::documents::magazines;

const EXPERIMENT: &str = "pft";
const I7: &str = "i7-2013";
const METATM: &str = "metatm-2007";
const CONFIGS: [&str; 4] = ["list-2007", "magazine-2013", "vanilla", "brickyard"];
const SIZES_CPUS: [u32; 3] = [2, 4, 8];
/// Pages of a process, and how they are called.
const SIZES: [(u32, &str); 4] = [
    (512, "2 MiB"),
    (2048, "8 MiB"),
    (8192, "32 MiB"),
    (32768, "128 MiB"),
];
/// The sizes over which the published directions are judged: like the 64 MiB of all processes, more
/// than caches hold, as in the document.
const SWEPT: [&str; 2] = ["pages-2048", "pages-8192"];
/// Other assumptions about the machine over which they are judged: on any number of CPUs, and where
/// two threads share a core.
const ASSUMED: [&str; 1] = ["ahead"];
const ASSUMED_OF_THREADS: [&str; 3] = ["cores", "threads-140", "threads-180"];
/// Cores of the document's machine.
const CORES: u32 = 4;
const I7_CPUS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const METATM_CPUS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Threads of this host that are measured.
const HOST_THREADS: u32 = 2;

const TITLE: &str = "pft (faults per second of CPU time, and per second)";
const TITLE_HOST: &str = "pft, beside real threads of this host";

/// What was counted, on how many CPUs, `vanilla`, `magazine`, and the gain in percent.
type Printed = (&'static str, u32, &'static str, &'static str, &'static str);

const LINES: [Printed; 16] = [
    ("cpu", 1, "953441.5530", "954011.8576", "0.06%"),
    ("cpu", 2, "923793.1533", "889436.7293", "-3.72%"),
    ("cpu", 3, "876829.2292", "868230.6471", "-0.98%"),
    ("cpu", 4, "819914.9333", "735264.4793", "-10.32%"),
    ("cpu", 5, "689049.0107", "663481.5446", "-3.71%"),
    ("cpu", 6, "579924.4065", "571889.3687", "-1.39%"),
    ("cpu", 7, "552024.1040", "494345.8698", "-10.45%"),
    ("cpu", 8, "461452.7560", "457877.1810", "-0.77%"),
    ("sec", 1, "938245.7112", "939198.4047", "0.10%"),
    ("sec", 2, "1814498.4087", "1748800.3800", "-3.62%"),
    ("sec", 3, "2544466.6368", "2359068.2163", "-7.29%"),
    ("sec", 4, "3032778.8584", "2831753.6553", "-6.63%"),
    ("sec", 5, "3025180.2736", "2952758.4589", "-2.39%"),
    ("sec", 6, "3131131.0106", "3058954.4941", "-2.31%"),
    ("sec", 7, "3286271.0631", "3183931.7940", "-3.11%"),
    ("sec", 8, "3135331.0027", "3106746.5908", "-0.91%"),
];

const ASKED: &str = "Threads touch new memory, one page after the other, so that each touch is a page fault and allocates a page. Do magazines shared by all CPUs make page faults slower than per-CPU lists do? The document says: by 1 to 10 % from two CPUs on, because the magazines' locks are contended and their lines move between CPUs. Here `list-2007` stands in for its baseline, Linux 3.9: per-CPU lists, and grouping by mobility, as there.";

const CLAIMED: &str = "With magazines there are 1 to 10 % fewer page faults per second than with per-CPU lists, from two CPUs on.";

const DECIDES: &str = "Simulated: how many cache lines move between CPUs, for mappings that no cache holds. The document does not give their size.";

const TABLE: &str = "Simulated: the machine's caches and clock, 1 to 8 CPUs, each of which faults in its part of 64 MiB, with the library's own source as the allocator. The 64 lines of each page are cleared through the caches, and the kernel's record of each frame, 64 bytes in which the lists have their links, is written at each allocation and free. An exit frees its pages in lists of 14, as Linux 3.9 does. \
    The cost of the trap and the page table was fitted to the published figure of one CPU, so the absolute value at one CPU is no check; everything else is. From five CPUs on two of them are threads of one core and share its caches, its fill buffers and its execution units; that an instruction then takes 1.6 times as long is assumed. The kernel's page table locks, LRU lists and counters, and the bandwidth of the memory, are not modelled. \
    What decides the direction on 6 and more CPUs is how soon the zone's lock is busy all the time, for lists take it for every 31 pages and read records of frames under it, each of which comes from memory. The table of other assumptions below shows that; the directions are judged over all of them.";

const TABLE_HOST: &str = "The same published lines beside real threads of this host, which allocate real pages and clear them; no trap, no page table, no record of the frame. A mask of interrupts costs what it costs a kernel, but for `cli`. The host has another number and kind of CPUs, so only gains can be compared. The patches hand out a refilled magazine downwards, from the frame taken last, and lists upwards. These lines cannot tell that from contention, and one thread, which contends with nobody, shows how much is not contention; the document's machine had no such loss on one thread. So they are shown, and the published directions are judged once, in the table above.";

const SIZES_ABOUT: &str = "The document does not give the size of the mapping. Its benchmark is known to map a fifth of the memory, here 3.2 GiB, so the last lines are nearest to it. What a small process frees is still in a cache when it is allocated again, and magazines, which keep 1,024 pages for all CPUs and hand out what was freed last, give it back sooner than lists. Pages of a large process come from memory in any case, and what is left are the lines of locks, links and records that move between CPUs. Simulated. The published directions are judged over 8 and 32 MiB a process besides the 64 MiB of all together; 2 MiB each fit into caches on two and on four CPUs, as the document's mapping did not.";

const ASSUMED_ABOUT: &str = "What decides between the designs on 6 to 8 CPUs. With `cores` each CPU is a core of its own, so all of them allocate at full speed; with `threads-140` and `threads-180` two threads of a core slow each other down less or more than in the first table, where it is 160 %; with `ahead` half of a fetch from memory is hidden, as where the processor fetches the next records of frames ahead (the clearing of a page takes as long as before). Once the zone's lock is busy all the time, lists handle no more faults with more CPUs, and magazines win. That is the sooner, the faster the CPUs are, and the longer the lock is held, which is as long as records take to come from memory. Simulated.";

const UNMASKED: &str = "The same, where masking interrupts costs nothing, as it does in a process. The difference to the table above is what the masks cost: lists mask at each allocation and each free, magazines only where they take the zone lock.";

const TODAY_I7: &str = "The same machine, and the gain over `list-2007` (positive is better). `Lines/fault` are cache lines that a CPU took from other CPUs' caches: moved to it, or written while others had copies, whether it had one itself or not. Simulated.";
const TODAY_METATM: &str = "A machine of 2007 with up to 32 CPUs, where moving a cache line between CPUs costs 200 cycles, and each has a cache of 4 MiB. All processes together touch four times what these caches hold, and at least 64 MiB, so pages come from memory. Simulated. No document has figures for it.";
const TODAY_HOST: &str = "Real threads of this host allocate real pages and clear them. Faults per second of wall-clock time, and of CPU time. A mask of interrupts saves and restores the processor's flags, as in a kernel.";

fn key(machine: &str, workload: &str, config: &str, metric: &str) -> Key {
    Key::new(EXPERIMENT, machine, workload, config, metric)
}

fn on(machine: &str, cpus: u32, config: &str, metric: &str) -> Key {
    key(machine, &format!("cpus-{cpus}"), config, metric)
}

/// Returns the key of faults per second on the largest number of CPUs.
pub(crate) fn on_32_cpus(config: &str) -> Vec<Key> {
    vec![on(METATM, 32, config, "faults/sec")]
}

pub(crate) fn document() -> Document {
    let tables = vec![
        table(
            "pft-2013",
            TITLE,
            TABLE,
            |_| true,
            |cpus| (I7, format!("cpus-{cpus}")),
        ),
        table(
            "pft-2013-host",
            TITLE_HOST,
            TABLE_HOST,
            |cpus| cpus <= HOST_THREADS,
            |cpus| ("host", format!("threads-{cpus}")),
        ),
    ];
    Document {
        experiment: EXPERIMENT,
        title: "Magazines or per-CPU lists: page faults",
        source: magazines::SOURCE,
        by: "Gorman 2013",
        asked: ASKED,
        claimed: CLAIMED,
        decides: DECIDES,
        findings: findings(&tables),
        mistakes: Mistake::all(include_str!("document/mistakes.txt")),
        tables,
        today: today(),
        plots: plots(),
    }
}

/// Returns the published lines of those numbers of CPUs that are `shown`, beside the machine and
/// workload that `beside` gives.
fn table(
    id: &str,
    title: &str,
    about: &str,
    shown: fn(u32) -> bool,
    beside: fn(u32) -> (&'static str, String),
) -> Table {
    let lines = LINES.iter().filter(|&&(_, cpus, ..)| shown(cpus));
    let lines = lines.map(|&(what, cpus, vanilla, magazine, gain)| {
        let metric = format!("faults/{what}");
        let (machine, workload) = beside(cpus);
        let keys =
            ["list-2007", "magazine-2013"].map(|config| key(machine, &workload, config, &metric));
        // A published direction is judged once, on the document's machine.
        let speedup = match machine {
            I7 => printed_speedup(Better::Higher, vanilla, magazine),
            _ => None,
        };
        let head = format!("Faults/{what} {cpus}");
        let mut line = magazines::line(head, keys, [vanilla, magazine, gain], speedup, 0);
        if machine == I7 && cpus > 1 {
            let gain = line.cells.pop().flatten();
            let of_threads = if cpus > CORES {
                &ASSUMED_OF_THREADS[..]
            } else {
                &[]
            };
            let swept = |gain: Figure| {
                let machine = gain.swept(&SWEPT).swept(&ASSUMED).swept(of_threads);
                machine.swept_alone(&OTHER_INSTRUCTIONS)
            };
            line.cells.push(gain.map(swept));
        }
        line
    });
    Table {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        head: magazines::head(),
        lines: lines.collect(),
    }
}

/// Returns the lines of a sweep over the sizes of a process.
fn size_rows() -> Vec<Row> {
    let of = |cpus: u32| {
        SIZES.map(|(pages, size)| {
            let workload = format!("cpus-{cpus} pages-{pages}");
            let head = format!("{cpus} CPUs, {size} each: faults/s");
            Row::new(head, I7, workload, "faults/sec").decimals(0)
        })
    };
    SIZES_CPUS.into_iter().flat_map(of).collect()
}

/// Returns the lines of the other assumptions about the machine.
fn assumed_rows() -> Vec<Row> {
    let of = |assumption: &&str| {
        let row = |cpus: u32| {
            let workload = format!("cpus-{cpus} {assumption}");
            let head = format!("{assumption}, {cpus} CPUs: faults/s");
            Row::new(head, I7, workload, "faults/sec").decimals(0)
        };
        (CORES + 1..=8).map(row).collect::<Vec<_>>()
    };
    let all = ASSUMED_OF_THREADS.iter().chain(&ASSUMED);
    all.flat_map(of).collect()
}

/// Returns the lines of moved cache lines.
fn line_rows(machine: &'static str, counts: &'static [u32]) -> impl Iterator<Item = Row> {
    counts.iter().map(move |cpus| {
        let head = format!("Lines/fault {cpus}");
        Row::new(head, machine, format!("cpus-{cpus}"), "lines/fault").decimals(2)
    })
}

/// Returns the lines of faults by the number of threads where masks cost nothing.
fn unmasked_rows() -> Vec<Row> {
    let unmasked = |row: Row| Row {
        workload: format!("{} unmasked", row.workload),
        ..row
    };
    let counts: Vec<u32> = (1..=HOST_THREADS).collect();
    rows("host", "threads", &counts)
        .into_iter()
        .map(unmasked)
        .collect()
}

fn rows(machine: &str, word: &str, counts: &[u32]) -> Vec<Row> {
    let metrics = [("Faults/cpu", "faults/cpu"), ("Faults/sec", "faults/sec")];
    let of = |(head, metric): (&str, &'static str)| {
        let each = counts.iter().map(move |count| {
            Row::new(
                format!("{head} {count}"),
                machine,
                format!("{word}-{count}"),
                metric,
            )
            .decimals(0)
        });
        each.collect::<Vec<_>>()
    };
    metrics.into_iter().flat_map(of).collect()
}

fn today() -> Vec<Table> {
    let today = Today::gains(EXPERIMENT, &CONFIGS);
    let of_document = Today::gains(EXPERIMENT, &CONFIGS[..2]);
    let with_lines = |machine, counts: &'static [u32]| {
        let mut all = rows(machine, "cpus", counts);
        all.extend(line_rows(machine, counts).skip(1));
        all
    };
    vec![
        today.table(
            "pft-today-i7",
            "pft on the document's machine (simulated)",
            TODAY_I7,
            with_lines(I7, &I7_CPUS),
        ),
        of_document.table(
            "pft-sizes",
            "pft by the size of a process (simulated)",
            SIZES_ABOUT,
            size_rows(),
        ),
        of_document.table(
            "pft-assumed",
            "pft under other assumptions about the machine (simulated)",
            ASSUMED_ABOUT,
            assumed_rows(),
        ),
        today.table(
            "pft-today-metatm",
            "pft on up to 32 CPUs (simulated)",
            TODAY_METATM,
            with_lines(METATM, &METATM_CPUS),
        ),
        today.table(
            "pft-today-host",
            "pft with real threads",
            TODAY_HOST,
            rows("host", "threads", &[1, 2]),
        ),
        of_document.table(
            "pft-today-unmasked",
            "pft with real threads, masks that cost nothing",
            UNMASKED,
            unmasked_rows(),
        ),
    ]
}

fn plots() -> Vec<Plot> {
    let over_cpus = |id: &str, title: &str, machine: &str, counts: &[u32], scale: Scale| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        about: "A straight rising line means that CPUs do not wait for each other.".to_owned(),
        x: axis("CPUs", scale.clone()),
        y: axis("faults per second", scale),
        curves: CONFIGS
            .map(|config| {
                let at = |&cpus: &u32| (f64::from(cpus), on(machine, cpus, config, "faults/sec"));
                curve(config, counts.iter().map(at).collect())
            })
            .into(),
    };
    vec![
        over_cpus(
            "pft-metatm",
            "Page faults per second over CPUs, machine of 2007 (simulated)",
            METATM,
            &METATM_CPUS,
            Scale::Log,
        ),
        over_cpus(
            "pft-i7",
            "Page faults per second over CPUs, machine of 2013 (simulated)",
            I7,
            &I7_CPUS,
            Scale::Linear,
        ),
    ]
}

fn findings(tables: &[Table]) -> Vec<Finding> {
    // One CPU has no contention.
    let several = |machine, counts: &[u32], config| -> Vec<Key> {
        let each = counts.iter().filter(|&&cpus| cpus > 1);
        each.map(|&cpus| on(machine, cpus, config, "faults/sec"))
            .collect()
    };
    let printed = PrintedMeans::of(tables, &several(I7, &I7_CPUS, "magazine-2013"));
    let [i7_mean, i7_printed] = printed.means(3);
    let metatm = |config| several(METATM, &METATM_CPUS, config);
    let words = [
        "more faults per second with magazines than with lists",
        "fewer faults per second with magazines than with lists",
        "as many faults per second with magazines as with lists",
    ];
    let lines = |config: &str| mean(on(I7, 4, config, "lines/fault"), 1);
    let sized = |pages: u32, config: &str| -> Vec<Key> {
        let each = SIZES_CPUS.iter();
        each.map(|cpus| {
            key(
                I7,
                &format!("cpus-{cpus} pages-{pages}"),
                config,
                "faults/sec",
            )
        })
        .collect()
    };
    let of_size = |pages| gmean(sized(pages, "magazine-2013"), sized(pages, "list-2007"), 3);
    vec![
        summary(
            "On 2 to 8 CPUs the document's machine handles {}, {} times (published: {}; geometric means); that of 2007, where moving a cache line costs more, {} times, on 2 to 32 CPUs (simulated).",
            [
                printed.word(words),
                i7_mean,
                i7_printed,
                gmean(metatm("magazine-2013"), metatm("list-2007"), 3),
            ],
        ),
        finding(
            "The mail's reason is lines that move between CPUs: on four CPUs a fault moves {} cache lines between CPUs with lists and {} with magazines; with `brickyard` it moves {} (simulated).",
            [
                lines("list-2007"),
                lines("magazine-2013"),
                lines("brickyard"),
            ],
        ),
        finding(
            "It depends on the size of the process, which the mail does not give: with 2 MiB each, which caches hold on two and four CPUs, magazines handle {} times the faults of lists, with 8 MiB {} times, with 32 MiB {} times (2, 4 and 8 CPUs, simulated).",
            SIZES[..3].iter().map(|&(pages, _)| of_size(pages)),
        ),
        finding(
            "On 32 CPUs of the machine of 2007 `brickyard` handles {} times the faults of per-CPU lists, and {} times as many as it does on one CPU (simulated).",
            [
                times(
                    on(METATM, 32, "brickyard", "faults/sec"),
                    on(METATM, 32, "list-2007", "faults/sec"),
                    2,
                ),
                times(
                    on(METATM, 32, "brickyard", "faults/sec"),
                    on(METATM, 1, "brickyard", "faults/sec"),
                    1,
                ),
            ],
        ),
        finding(
            "Two real threads of this host handle {} times as many faults with `brickyard` as with per-CPU lists.",
            [times(
                key("host", "threads-2", "brickyard", "faults/sec"),
                key("host", "threads-2", "list-2007", "faults/sec"),
                2,
            )],
        ),
        directions(),
    ]
}
