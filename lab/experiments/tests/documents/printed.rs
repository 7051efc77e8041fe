//! The printed figures are consistent: each text is a number, and each gain and speedup follows
//! from the two means beside it, within rounding.

use brickyard_experiments::document::{Judged, Statistic, Table, number};
use brickyard_experiments::documents;
use brickyard_results::Better;

use super::{Rounded, document, table, text};

/// The printed texts that are not numbers.
const WORDS: [&str; 5] = [
    "no significant harm",
    "same",
    "really really bad",
    "(no difference)",
    "---",
];

#[test]
fn every_text_is_a_number() {
    let mut texts = 0;
    for document in documents::all() {
        for figure in document.figures() {
            let Some(published) = figure.published else {
                continue;
            };
            // Worked out from other tables, and checked below.
            if published.text.contains(" to ") || figure.least().is_some() {
                continue;
            }
            texts += 1;
            let known = WORDS.contains(&published.text);
            assert_eq!(published.number().is_none(), known, "{}", published.text);
        }
    }
    // A missing text would change the count.
    assert_eq!(texts, TEXTS);
}

/// All printed texts, by experiment. Those of page faults on one and two CPUs are there twice:
/// beside the simulated machine and beside real threads.
const TEXTS: usize = 278 + 135 + (48 + 12) + 60 + 144 + 242 + 144;

/// Returns the columns of a table of locks that have a speedup.
fn speedups(table: &Table) -> Vec<usize> {
    let last = table.lines.len() - 1;
    let columns = 0..table.lines[last].cells.len();
    columns
        .filter(|&column| !text(table, last, column).is_empty())
        .collect()
}

const OF_LOCKS: [&str; 5] = [
    "locks-simulated-8",
    "locks-simulated-16",
    "locks-simulated-32",
    "locks-real",
    "locks-ticket",
];

/// Each speedup is the mean of the column before divided by that of its own. So is that of hdparm,
/// though its means are MB per second: see `mistakes`.
#[test]
fn speedups_of_locks_follow_from_their_means() {
    let mut checked = 0;
    for id in OF_LOCKS {
        let table = table(id);
        for column in speedups(&table) {
            let before = Rounded::of(text(&table, 0, column - 1)).unwrap();
            let now = Rounded::of(text(&table, 0, column)).unwrap();
            let printed = Rounded::of(text(&table, 3, column)).unwrap();
            let ratio = before.with(now, |before, now| before / now);
            assert!(ratio.meets(printed), "{id} {column}: {ratio:?} {printed:?}");
            checked += 1;
        }
    }
    assert_eq!(checked, 4 + 5 + 5 + 6 + 21);
}

/// So a speedup without an asterisk may be called noise even where there were too few runs to earn
/// one.
#[test]
fn intervals_of_speedups_without_an_asterisk_overlap() {
    let mut apart = Vec::new();
    for id in OF_LOCKS {
        let table = table(id);
        for column in speedups(&table) {
            let reach = |line, column| Rounded::of(text(&table, line, column)).unwrap();
            let [before, now] = [column - 1, column].map(|column| {
                let (mean, half) = (reach(0, column), reach(2, column));
                Rounded {
                    low: mean.low - half.high,
                    high: mean.high + half.high,
                }
            });
            if !text(&table, 3, column).ends_with('*') && !before.meets(now) {
                apart.push((id, column));
            }
        }
    }
    assert_eq!(apart, []);
}

/// The number of samples of a column.
fn samples(id: &str, column: usize) -> f64 {
    match id {
        "locks-real" => 15.0,
        // The two compiles of January.
        "locks-ticket" if (12..20).contains(&column) => 5.0,
        "locks-ticket" => 15.0,
        _ => 4.0,
    }
}

/// Intervals that do not follow from the deviation above them; these are mistakes of the document.
const WRONG_INTERVALS: [(&str, usize); 4] = [
    ("locks-simulated-8", 10),
    ("locks-simulated-8", 11),
    ("locks-real", 4),
    ("locks-ticket", 15),
];

#[test]
fn intervals_follow_from_deviations() {
    let mut wrong = Vec::new();
    for id in OF_LOCKS {
        let table = table(id);
        for column in 0..table.lines[1].cells.len() {
            let Some(deviation) = Rounded::of(text(&table, 1, column)) else {
                continue;
            };
            let printed = Rounded::of(text(&table, 2, column)).unwrap();
            let factor = 1.96 / samples(id, column).sqrt();
            let computed = deviation.with(deviation, |low, _| factor * low);
            if !computed.meets(printed) {
                wrong.push((id, column));
            }
        }
    }
    assert_eq!(wrong, WRONG_INTERVALS);
}

#[test]
fn gains_of_2013_follow_from_their_values() {
    for (id, better) in [
        ("pagealloc-2013", Better::Lower),
        ("pft-2013", Better::Higher),
        ("pft-2013-host", Better::Higher),
        ("kernbench-2013", Better::Lower),
    ] {
        let table = table(id);
        for (line, of) in table.lines.iter().enumerate() {
            let [vanilla, magazine, gain] =
                [0, 1, 2].map(|column| Rounded::of(text(&table, line, column)).unwrap());
            let sign = if better == Better::Lower { -1.0 } else { 1.0 };
            let computed = vanilla.with(magazine, |before, now| {
                sign * (100.0 * now / before - 100.0)
            });
            assert!(
                computed.meets(gain),
                "{id} {}: {computed:?} {gain:?}",
                of.head
            );
        }
    }
}

#[test]
fn ranges_of_kernbench_are_max_minus_min() {
    let table = table("kernbench-2013");
    for first in (0..20).step_by(5) {
        for column in [0, 1] {
            let [min, max, range] =
                [0, 3, 4].map(|line| number(text(&table, first + line, column)).unwrap());
            assert!((max - min - range).abs() < 0.005, "{first} {column}");
        }
    }
}

/// The last two columns of these tables are a difference and the same in percent.
#[test]
fn differences_of_2005_follow_from_their_values() {
    for id in ["two-kinds-summary", "two-kinds-aim9-difference"] {
        let table = table(id);
        for (line, of) in table.lines.iter().enumerate() {
            let [clean, kinds] =
                [0, 1].map(|column| Rounded::of(text(&table, line, column)).unwrap());
            let (difference, percent) = (text(&table, line, 2), text(&table, line, 3));
            if percent == "(no difference)" {
                assert_eq!(text(&table, line, 0), text(&table, line, 1));
                continue;
            }
            let computed = clean.with(kinds, |clean, kinds| kinds - clean);
            assert!(
                computed.meets(Rounded::of(difference).unwrap()),
                "{}",
                of.head
            );
            let computed = clean.with(kinds, |clean, kinds| 100.0 * (kinds / clean - 1.0));
            assert!(computed.meets(Rounded::of(percent).unwrap()), "{}", of.head);
        }
    }
}

#[test]
fn high_order_allocations_of_2005_add_up() {
    let table = table("two-kinds-high-order");
    for column in [0, 1] {
        let [tries, success, failed, dma, normal, high, percent] =
            [0, 1, 2, 3, 4, 5, 6].map(|line| number(text(&table, line, column)).unwrap());
        assert_eq!(success + failed, tries);
        assert_eq!(dma + normal + high, success);
        // Truncated, not rounded.
        assert_eq!((100.0 * success / tries).floor(), percent);
        assert_ne!((100.0 * success / tries).round(), percent);
    }
}

#[test]
fn the_profile_of_2008_adds_up() {
    let symbols = table("slab-symbols");
    let total = 136_537.0 / 0.108_300;
    let mut sum = 0.0;
    for line in 0..symbols.lines.len() {
        let [samples, so_far, percent] =
            [0, 1, 2].map(|column| number(text(&symbols, line, column)).unwrap());
        sum += samples;
        assert_eq!(sum, so_far);
        assert!((100.0 * samples / total - percent).abs() < 1e-4);
    }
    assert_eq!(symbols.lines.len(), 34);

    let instructions = table("slab-instructions");
    let parts = table("slab-parts");
    let mut sums = [0.0; 3];
    for (line, of) in instructions.lines.iter().enumerate() {
        let part = match of.head.rsplit_once(": ") {
            Some((_, "zeroing")) => 0,
            Some((_, "masking")) => 1,
            _ => 2,
        };
        sums[part] += number(text(&instructions, line, 0)).unwrap();
    }
    let all: f64 = sums.iter().sum();
    assert_eq!(all, 140_659.0);
    for (line, sum) in sums.into_iter().enumerate() {
        assert_eq!(number(text(&parts, line, 0)), Some(sum));
        assert_eq!(text(&parts, line, 1), format!("{:.1}", 100.0 * sum / all));
    }
}

/// The only column that is computed from others, not printed.
#[test]
fn cpu_time_of_a_task_is_user_and_sys_over_the_tasks() {
    let table = table("slab-time");
    for (line, tasks) in [(0, 1.0), (1, 8.0)] {
        let [user, sys] = [1, 2].map(|column| number(text(&table, line, column)).unwrap());
        let each = format!("{:.3}", (user + sys) / tasks);
        assert_eq!(text(&table, line, 3), each);
    }
}

/// If a value is compared with another one and both are printed, the published direction is that of
/// the two.
#[test]
fn directions_follow_from_what_is_printed() {
    let mut checked = 0;
    for id in [
        "mobility-cpu-time",
        "mobility-elapsed",
        "mobility-under-load",
        "mobility-at-rest",
        "mobility-under-load-reclaim",
        "mobility-at-rest-reclaim",
    ] {
        let table = table(id);
        let lower = id.contains("time") || id.contains("elapsed");
        for (line, of) in table.lines.iter().enumerate() {
            let before = number(text(&table, line, 0)).unwrap();
            for (column, cell) in of.cells.iter().enumerate().skip(1) {
                let figure = cell.as_ref().unwrap();
                if figure.judged == Judged::No {
                    // The machine that was deleted.
                    assert_eq!((of.head.as_str(), column), ("bl6-13 (x86_64)", 3));
                    continue;
                }
                let now = number(text(&table, line, column)).unwrap();
                let speedup = if lower { before / now } else { now / before };
                assert_eq!(figure.published.unwrap().speedup, Some(speedup));
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 4 * 14 + 2 * 12);
}

/// Builds with the reclaim patches are not measured separately.
#[test]
fn directions_measured_once_are_judged_once() {
    for id in ["mobility-cpu-time-reclaim", "mobility-elapsed-reclaim"] {
        let lines = table(id).lines;
        let mut cells = lines.iter().flat_map(|line| line.cells.iter().flatten());
        assert!(cells.all(|figure| figure.judged == Judged::No), "{id}");
    }
}

/// A line that is marked as not modelled has no measured figure.
#[test]
fn nothing_is_measured_for_what_is_not_modelled() {
    for document in documents::all() {
        for table in &document.tables {
            for line in &table.lines {
                let measured = line
                    .cells
                    .iter()
                    .flatten()
                    .any(|figure| !figure.of.is_empty());
                assert!(
                    !measured || !line.head.contains("not modelled"),
                    "{}",
                    line.head
                );
            }
        }
    }
}

#[test]
fn statistics_of_locks_are_those_of_2007() {
    for table in document("locks").tables {
        if ["locks-bulks", "locks-worst"].contains(&table.id.as_str()) {
            continue;
        }
        let of = |line: usize| {
            table.lines[line]
                .cells
                .iter()
                .flatten()
                .find(|one| !one.of.is_empty())
        };
        let found = [0, 1, 2, 3].map(|line| of(line).unwrap().statistic);
        assert_eq!(
            found,
            [
                Statistic::Mean,
                Statistic::StdDev,
                Statistic::Interval95,
                Statistic::Speedup
            ]
        );
    }
}

/// What follows from two tables has both of their figures, and their ratio.
#[test]
fn the_effect_of_the_reclaim_patches_follows_from_both_tables() {
    let effect = table("mobility-reclaim-effect");
    let forty = table("mobility-forty");
    let tables = [
        (
            "mobility-under-load",
            "mobility-under-load-reclaim",
            "under load",
        ),
        ("mobility-at-rest", "mobility-at-rest-reclaim", "at rest"),
    ];
    let mut checked = 0;
    for (without, with, moment) in tables.map(|(a, b, moment)| (table(a), table(b), moment)) {
        for (line, of) in with.lines.iter().enumerate() {
            let head = format!("{}, {moment}", of.head);
            let before = without.lines.iter().position(|other| other.head == of.head);
            let place = effect.lines.iter().position(|other| other.head == head);
            let (before, place) = (before.unwrap(), place.unwrap());
            for column in 0..4 {
                let [before, now] = [(&without, before), (&with, line)]
                    .map(|(table, line)| text(table, line, column));
                let shown = text(&effect, place, column);
                assert!(
                    shown.ends_with(&format!("({before} to {now} %)")),
                    "{shown}"
                );
                let figure = effect.lines[place].cells[column].as_ref().unwrap();
                let speedup = figure.published.unwrap().speedup.unwrap();
                let ratio = number(now).unwrap() / number(before).unwrap();
                assert_eq!(speedup, ratio);
                assert!(shown.starts_with(&format!("{ratio:.2} ")), "{shown}");
                checked += 1;
            }
            let claim = forty.lines[place].cells[0].as_ref().unwrap();
            assert_eq!(
                (forty.lines[place].head.as_str(), claim.least()),
                (head.as_str(), Some(40))
            );
            let own = text(&with, line, 2);
            assert!(text(&forty, place, 0).contains(own));
            // Where its own figure does not reach it, the mail contradicts itself.
            let expected = match number(own).unwrap() >= 40.0 {
                true => Judged::Yes,
                false => Judged::Contradicted,
            };
            assert_eq!(claim.judged, expected, "{head}");
        }
    }
    assert_eq!(checked, 32);
    // Three of the eight printed figures reach it.
    let reach = |line: usize| {
        let text = text(&forty, line, 0);
        let (_, printed) = text.split_once("printed: ").unwrap();
        number(printed).unwrap() >= 40.0
    };
    assert_eq!((0..8).filter(|&line| reach(line)).count(), 3);
}

/// What the table of bulks counts for `rmqueue_bulk()`: a refill of seven pages, or one block of a
/// higher order by its pages. With these shares of orders all four printed figures of a workload
/// come out, up to their rounding and 3 %. (`dpunish` has no possible deviation of the order.) With
/// one for each block of higher order no mean above seven can.
#[test]
fn counts_of_allocations_are_in_pages() {
    let table = table("locks-bulks");
    let mixes: [&[(i32, f64)]; 4] = [
        &[(0, 0.9075), (2, 0.0875), (5, 0.0042), (6, 0.0008)],
        &[(0, 0.8833), (2, 0.0731), (3, 0.0317), (5, 0.0119)],
        &[(0, 0.9565), (2, 0.0109), (3, 0.0299), (5, 0.0027)],
        &[(0, 0.6923), (1, 0.1682), (3, 0.1395)],
    ];
    let printed = |line, column| number(text(&table, line, column)).unwrap();
    for (column, (name, mix)) in ["config", "mab", "dpunish", "pmake"]
        .iter()
        .zip(mixes)
        .enumerate()
    {
        let count = |order: i32| if order == 0 { 7.0 } else { 2_f64.powi(order) };
        let moments = |of: &dyn Fn(i32) -> f64| {
            let mean: f64 = mix.iter().map(|&(order, share)| share * of(order)).sum();
            let square: f64 = mix
                .iter()
                .map(|&(order, share)| share * of(order).powi(2))
                .sum();
            [mean, square]
        };
        for (line, of) in [(2, &count as &dyn Fn(i32) -> f64), (3, &f64::from)] {
            let (mean, deviation) = (printed(line, 2 * column), printed(line, 2 * column + 1));
            let [got_mean, got_square] = moments(of);
            assert!(
                (got_mean - mean).abs() <= 0.005 + 0.03 * mean,
                "{name} {line}: {got_mean}"
            );
            if (*name, line) != ("dpunish", 3) {
                let square = deviation.powi(2) + mean.powi(2);
                let rounding = 0.01 * (deviation + mean);
                assert!(
                    (got_square - square).abs() <= rounding + 0.03 * square,
                    "{name} {line}: {got_square} {square}"
                );
            }
        }
    }
    // In 3 % of the frees one block of order 1, counted as one: the figures of MAB.
    let share: f64 = 0.03;
    let deviation = (share * (1.0 - share)).sqrt();
    assert!((7.0 - 6.0 * share - printed(0, 2)).abs() < 0.005);
    assert!((6.0 * deviation - printed(0, 3)).abs() < 0.02);
    assert!((deviation - printed(1, 3)).abs() < 0.005);
}
