//! Each mistake that the report lists and that shows in the printed figures is indeed there.

use brickyard_experiments::document::{Weight, number};

use super::{document, table, text};

fn value(id: &str, line: usize, column: usize) -> f64 {
    number(text(&table(id), line, column)).unwrap()
}

#[test]
fn fourteen_of_27_tests_have_an_asterisk() {
    let mut asterisks = 0;
    let mut tests = 0;
    for id in ["locks-real", "locks-ticket"] {
        let table = table(id);
        for column in 0..table.lines[3].cells.len() {
            let text = text(&table, 3, column);
            tests += usize::from(!text.is_empty());
            asterisks += usize::from(text.ends_with('*'));
        }
    }
    assert_eq!((asterisks, tests), (14, 27));
}

#[test]
fn a_significant_speedup_is_negative() {
    let table = table("locks-real");
    assert_eq!(table.head[0][3].text, "Kernel compile");
    assert_eq!(text(&table, 3, 7), "0.992*");
}

#[test]
fn hdparm_is_divided_like_seconds() {
    // MB per second: more is better, and it became less.
    assert!(value("locks-real", 0, 11) < value("locks-real", 0, 10));
    assert!(value("locks-real", 3, 11) > 1.0);
}

#[test]
fn a_deviation_of_whole_numbers_is_too_small() {
    let least = |mean: f64| (mean * (1.0 - mean)).sqrt();
    let mut impossible = Vec::new();
    for line in [1, 3] {
        for column in [0, 2, 4, 6] {
            // The most that rounding can hide.
            let mean = value("locks-bulks", line, column);
            let deviation = value("locks-bulks", line, column + 1) + 0.005;
            let low = least((mean - 0.005).max(0.0));
            if mean < 1.0 && deviation < low {
                impossible.push((line, column));
            }
        }
    }
    assert_eq!(impossible, [(3, 4)]);
    let shown = (least(0.13) * 100.0).floor() / 100.0;
    assert_eq!(shown, 0.33);
}

#[test]
fn only_pmake_rises_with_cpus() {
    let of = |column: usize| {
        let ids = [
            "locks-simulated-8",
            "locks-simulated-16",
            "locks-simulated-32",
        ];
        let printed = ids.map(|id| number(text(&table(id), 3, column)));
        let printed: Vec<f64> = printed.into_iter().flatten().collect();
        printed.len() > 1 && printed.windows(2).all(|two| two[0] < two[1])
    };
    let rising: Vec<_> = (0..6).map(|workload| of(2 * workload + 1)).collect();
    assert_eq!(rising, [false, true, false, false, false, false]);
}

#[test]
fn eleven_of_30_totals_are_more_than_their_parts() {
    let mut more = Vec::new();
    for batch in 0..15 {
        for column in [0, 1] {
            let of = |part: usize| value("pagealloc-2013", 15 * part + batch, column);
            let beyond = of(2) - of(0) - of(1);
            assert!(beyond > -0.015);
            if beyond > 0.015 {
                more.push(beyond);
            }
        }
    }
    assert_eq!(more.len(), 11);
    let most = more.into_iter().fold(0.0, f64::max);
    assert!((most - 10.89).abs() < 0.005);
}

/// The benchmark took batch + 1 pages and divided by the batch.
#[test]
fn small_batches_are_not_more_expensive() {
    for line in [0, 1, 2, 4, 5, 6, 7] {
        let batch = f64::from(1_u32 << line);
        let cycles = value("pagealloc-2013", line, 0) * batch / (batch + 1.0);
        assert!((320.0..350.0).contains(&cycles), "{batch}: {cycles}");
    }
}

#[test]
fn user_time_fell_by_more_than_all_system_time() {
    let saved = value("kernbench-2013", 1, 0) - value("kernbench-2013", 1, 1);
    assert!((saved - 150.0).abs() < 0.1);
    assert!(saved > 2.0 * value("kernbench-2013", 6, 0));
}

#[test]
fn faults_a_second_and_of_cpu_time_disagree() {
    let gains = [2, 10, 6, 14].map(|line| value("pft-2013", line, 2));
    assert_eq!(gains, [-0.98, -7.29, -10.45, -3.11]);
}

#[test]
fn the_rendering_waited_in_one_kernel() {
    let waited = [0, 1].map(|line| {
        let of = |column| value("two-kinds-cache", line, column);
        of(0) - of(1) - of(2)
    });
    assert!((waited[0] - 0.092).abs() < 1e-6 && (waited[1] - 0.402).abs() < 1e-6);
}

#[test]
fn eight_tasks_take_30_percent_longer_each() {
    let longer = value("slab-time", 1, 0) / value("slab-time", 0, 0);
    let cpu = value("slab-time", 1, 3) / value("slab-time", 0, 3);
    assert_eq!(((longer - 1.0) * 100.0).round(), 30.0);
    assert_eq!(((cpu - 1.0) * 100.0).round(), 30.0);
    // 100,000 cycles per sample at 3 GHz.
    let seconds: f64 = 136_537.0 / 0.108_3 * 100_000.0 / 3.0e9;
    assert_eq!(seconds.round(), 42.0);
    // The two listings.
    assert_eq!(text(&table("slab-symbols"), 0, 0), "136537");
}

#[test]
fn reclaim_patches_leave_figures_below_forty() {
    let below = |id: &str| {
        let mut below = 0;
        for line in 0..4 {
            for column in 1..4 {
                below += usize::from(value(id, line, column) < 40.0);
            }
        }
        below
    };
    assert_eq!(below("mobility-under-load-reclaim"), 8);
    assert_eq!(below("mobility-at-rest-reclaim"), 2);
    assert_eq!(value("mobility-at-rest", 1, 0), 69.0);
    assert_eq!(value("mobility-at-rest-reclaim", 0, 0), 52.0);
}

#[test]
fn the_reliable_machine_was_slower() {
    let slower = value("mobility-elapsed", 0, 1) / value("mobility-elapsed", 0, 0);
    assert_eq!(((slower - 1.0) * 100.0).round(), 4.0);
    assert!(value("mobility-cpu-time", 0, 1) < value("mobility-cpu-time", 0, 0));
}

#[test]
fn the_report_lists_these_mistakes() {
    let lists = |experiment: &str, word: &str| {
        let mistakes = document(experiment).mistakes;
        assert!(
            mistakes.iter().any(|one| one.text.contains(word)),
            "{experiment}: {word}"
        );
    };
    lists("locks", "never released");
    lists("locks", "all_unreclaimable");
    lists("locks", "hdparm");
    lists("locks", "14 of 27");
    lists("pagealloc", "batch + 1");
    lists("pagealloc", "sums");
    lists("two-kinds", "160");
    lists("mobility", "missing value");
}

/// A figure that is printed twice in two ways, a rounding or a misplaced line is a slip; what the
/// document concludes from its figures is not.
#[test]
fn slips_of_print_are_no_errors() {
    let weight = |experiment: &str, word: &str| {
        let mistakes = document(experiment).mistakes;
        let mut found = mistakes.iter().filter(|one| one.text.contains(word));
        let weight = found.next().unwrap().weight;
        assert!(
            found.next().is_none(),
            "{experiment}: {word} is there twice"
        );
        weight
    };
    for (experiment, word) in [
        ("two-kinds", "160 attempts"),
        ("two-kinds", "truncated, not rounded"),
        ("locks", "is that of the column before"),
        ("pagealloc", "11 of the 30 totals"),
        ("slab", "two listings"),
        ("mobility", "missing value"),
    ] {
        assert_eq!(weight(experiment, word), Weight::Print, "{word}");
    }
    for (experiment, word) in [
        ("locks", "0.992*"),
        ("pagealloc", "batch + 1"),
        ("kernbench", "User time fell"),
        ("mobility", "less than 40 %"),
        ("slab", "30 % longer"),
    ] {
        assert_eq!(weight(experiment, word), Weight::Conclusion, "{word}");
    }
}
