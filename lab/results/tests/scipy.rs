//! Every test and interval of the crate against SciPy 1.17.1, on fixed data.
//!
//! The expected figures are the output of `scipy.py` in this folder; it documents how to run it.

use brickyard_results::{
    Distribution, EXACT_SMALLER_MAX, Interval, IntervalMethod, RankSum, Runs, SignedRank, Student,
    Summary, bootstrap_paired_ratio, bootstrap_ratio, difference95, holm, ratio_interval,
};

/// The tolerance of deterministic figures, relative to the figure.
const TOLERANCE: f64 = 1e-8;

/// The tolerance of the median of [`SEEDS`] ends of a bootstrap interval, in widths of the
/// interval. A single end from 9,999 resamples scatters by 0.7 to 1.7 % of the width (one
/// deviation), SciPy's from 200,000 by up to 0.4 %.
const OF_WIDTH: f64 = 0.02;

/// The number of seeds. (Their median is compared and not their mean: with few samples an end jumps
/// between the few possible means.)
const SEEDS: u64 = 25;

/// Two sides, and SciPy's results for them.
struct Case {
    name: &'static str,
    a: Vec<f64>,
    b: Vec<f64>,
    /// t, degrees of freedom, p.
    welch: [f64; 3],
    /// The ends of the interval of the difference of the means.
    welch_interval: [f64; 2],
    /// U, p.
    rank_sum: [f64; 2],
    /// The ends of Student's interval of the mean of `a`.
    student: [f64; 2],
    /// The smaller sum of ranks, and p, of the pairs (the longer side is cut).
    signed_rank: [f64; 2],
    /// t, degrees of freedom and p of the same pairs.
    paired_t: [f64; 3],
    /// The ends of the t interval of the ratio: by the logarithms of these pairs' ratios,
    log_ratios: [f64; 2],
    /// and by the mean logarithms of both sides.
    log_means: [f64; 2],
    /// The ends of the BCa interval: of the ratio of `a` to `b`,
    ratio: [f64; 2],
    /// and of that in pairs.
    paired: [f64; 2],
}

/// As in `scipy.py`: n samples start + (i * step mod modulus) * width.
fn samples(n: u32, step: u32, modulus: u32, start: f64, width: f64) -> Vec<f64> {
    let sample = |i: u32| start + width * f64::from(i * step % modulus);
    (0..n).map(sample).collect()
}

fn cubes(samples: Vec<f64>) -> Vec<f64> {
    samples.iter().map(|sample| sample.powi(3)).collect()
}

fn tiny(samples: Vec<f64>) -> Vec<f64> {
    samples.iter().map(|sample| sample * 1e-12).collect()
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "few",
            a: samples(4, 7, 11, 100.0, 1.0),
            b: samples(5, 5, 13, 103.5, 1.0),
            welch: [-1.168675607508466, 6.201173906430691, 0.2854903505472263],
            welch_interval: [-10.155395178075198, 3.5553951780752033],
            rank_sum: [5.0, 0.2857142857142857],
            student: [98.00344167829158, 111.99655832170842],
            signed_rank: [3.0, 0.625],
            paired_t: [-0.8892972917998876, 3.0, 0.43935365555641837],
            log_ratios: [0.8894662923250571, 1.0675006415990242],
            log_means: [0.9085493153431592, 1.034346533893609],
            ratio: [0.9258416742493175, 1.013770180436847],
            paired: [0.9265033407572383, 1.0238095238095237],
        },
        Case {
            name: "six",
            a: samples(6, 3, 17, 50.0, 0.5),
            b: samples(6, 5, 19, 54.25, 0.75),
            welch: [-2.474193093504943, 8.690362148940311, 0.036212698231209116],
            welch_interval: [-9.8363662835762, -0.4136337164238002],
            rank_sum: [5.0, 0.04112554112554113],
            student: [50.805028539529516, 56.694971460470484],
            signed_rank: [1.0, 0.0625],
            paired_t: [-2.7679965539205345, 5.0, 0.03945885983682742],
            log_ratios: [0.8424794415617051, 0.9912510513419147],
            log_means: [0.8426216759153179, 0.9910837283824123],
            ratio: [0.8525252525252526, 0.9707865168539326],
            paired: [0.8633663366336634, 0.9698275862068966],
        },
        Case {
            name: "apart",
            a: samples(8, 5, 13, 10.0, 1.0),
            b: samples(8, 7, 23, 1000.25, 1.0),
            welch: [
                -325.10795416534364,
                10.78429755126619,
                7.141422993783068e-23,
            ],
            welch_interval: [-1000.997548123912, -987.502451876088],
            rank_sum: [0.0, 0.0001554001554001554],
            student: [12.67980831107152, 19.570191688928478],
            signed_rank: [0.0, 0.0078125],
            paired_t: [-326.907386256703, 7.0, 6.617798965609553e-16],
            log_ratios: [0.012366606451338384, 0.019378480720645103],
            log_means: [0.012364182276464604, 0.019382280149107513],
            ratio: [0.01328766012307955, 0.018564356435643563],
            paired: [0.013280377311654462, 0.018573551263001486],
        },
        Case {
            name: "tied",
            a: samples(9, 3, 5, 20.0, 1.0),
            b: samples(12, 5, 7, 21.0, 1.0),
            welch: [-2.413198999619531, 18.97844058626681, 0.02609106499733879],
            welch_interval: [-3.7347802592148858, -0.26521974078511423],
            rank_sum: [26.0, 0.04834624933736688],
            student: [20.784629106497995, 23.215370893502005],
            signed_rank: [2.5, 0.0625],
            paired_t: [-2.3922316520829923, 8.0, 0.043703355830994106],
            log_ratios: [0.8532782930820207, 0.9973634203312305],
            log_means: [0.8515564148114634, 0.989971760177907],
            ratio: [0.8580858085808583, 0.9799764428739695],
            paired: [0.8672566371681416, 0.980952380952381],
        },
        Case {
            name: "unequal",
            a: samples(15, 37, 101, 500.0, 1.0),
            b: samples(40, 53, 211, 480.5, 1.0),
            welch: [-1.6901985161068438, 47.541066007049544, 0.09753779240597843],
            welch_interval: [-45.91451991581984, 3.981186582486444],
            rank_sum: [239.0, 0.2528964030606379],
            student: [526.423792344574, 560.6428743220926],
            signed_rank: [48.0, 0.52447509765625],
            paired_t: [-0.660528727010741, 14.0, 0.5196358500154412],
            log_ratios: [0.9115464827684095, 1.0560348562220034],
            log_means: [0.9241582030359892, 1.011372961533704],
            ratio: [0.9228152655540385, 1.0054542851687729],
            paired: [0.9138887332623677, 1.041089015745562],
        },
        Case {
            name: "skewed",
            a: cubes(samples(25, 7, 29, 1.0, 1.0)),
            b: cubes(samples(25, 11, 31, 2.5, 1.0)),
            welch: [-0.7147954080947881, 45.24117898572969, 0.47840789893206453],
            welch_interval: [-6841.1519783166505, 3256.88197831665],
            rank_sum: [288.0, 0.6414528745894932],
            student: [3713.7599994845937, 10064.240000515407],
            signed_rank: [144.0, 0.6338268518447876],
            paired_t: [-0.7137825384284615, 24.0, 0.48224603630936824],
            log_ratios: [0.2405425388206203, 2.074105472195448],
            log_means: [0.18838867701402073, 2.6483045795077373],
            ratio: [0.4116648558603359, 1.49301757785702],
            paired: [0.40729868028245503, 1.4724985976284346],
        },
        Case {
            name: "many",
            a: samples(200, 37, 211, 1000.0, 1.0),
            b: samples(300, 53, 307, 990.0, 1.0),
            welch: [-5.556080514666517, 497.4219640436485, 4.502287872050402e-08],
            welch_interval: [-50.43139162052848, -24.08194171280484],
            rank_sum: [22734.0, 4.421027572307669e-06],
            student: [1096.5183349902961, 1113.5816650097038],
            signed_rank: [8531.0, 0.0637629328117117],
            paired_t: [-4.689395169483343, 199.0, 5.081782031872543e-06],
            log_ratios: [0.9568174601943359, 0.9829432221761795],
            log_means: [0.9575277367796278, 0.9802652738363548],
            ratio: [0.9562152676601199, 0.9787375339891994],
            paired: [0.9549270303000916, 0.9808410720596836],
        },
        Case {
            name: "tiny",
            a: tiny(samples(7, 3, 17, 1.0, 1.0)),
            b: tiny(samples(9, 5, 19, 2.5, 1.0)),
            welch: [-0.7732526774562893, 13.335695134489237, 0.4528619620452411],
            welch_interval: [-8.565243382557847e-12, 4.041433858748329e-12],
            rank_sum: [23.0, 0.4078671328671329],
            student: [2.316406989997779e-12, 1.2826450152859367e-11],
            signed_rank: [10.0, 0.578125],
            paired_t: [-0.6121276335929899, 6.0, 0.5629160702281133],
            log_ratios: [0.2586989433475939, 1.8133670230902728],
            log_means: [0.239937015416851, 1.8161287037145297],
            ratio: [0.3673469387755102, 1.4390563564875494],
            paired: [0.4260355029585799, 1.619047619047619],
        },
    ]
}

/// Some p, and the same corrected by Holm.
const FAMILIES: [(&[f64], &[f64]); 3] = [
    (&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]),
    (&[0.5, 0.9, 0.7], &[1.0, 1.0, 1.0]),
    (
        &[0.001, 0.2, 0.0004, 0.06, 0.013, 0.0004, 1.0, 0.049],
        &[0.006, 0.4, 0.0032, 0.196, 0.065, 0.0032, 1.0, 0.196],
    ),
];

fn close(case: &str, what: &str, got: f64, expected: f64) {
    assert!(
        (got - expected).abs() <= TOLERANCE * expected.abs(),
        "{case}: {what} {got} is not {expected}"
    );
}

/// Cuts the longer side, so that both form pairs.
fn pairs(case: &Case) -> (&[f64], &[f64]) {
    let n = case.a.len().min(case.b.len());
    (&case.a[..n], &case.b[..n])
}

#[test]
fn welch_is_that_of_scipy() {
    for case in cases() {
        let test = Student::of_sides(&case.a, &case.b).unwrap();
        close(case.name, "t", test.t, case.welch[0]);
        close(case.name, "df", test.df, case.welch[1]);
        close(case.name, "p", test.p, case.welch[2]);
        let interval = difference95(&case.a, &case.b).unwrap();
        close(case.name, "low", interval.low, case.welch_interval[0]);
        close(case.name, "high", interval.high, case.welch_interval[1]);
    }
}

#[test]
fn rank_sum_is_that_of_scipy() {
    let mut exact = 0;
    for case in cases() {
        let test = RankSum::of(&case.a, &case.b).unwrap();
        close(case.name, "u", test.u, case.rank_sum[0]);
        close(case.name, "p", test.p, case.rank_sum[1]);
        if test.distribution == Distribution::Exact {
            assert!(case.a.len().min(case.b.len()) <= EXACT_SMALLER_MAX);
            exact += 1;
        }
    }
    // Both distributions occur.
    assert_eq!(exact, 4);
}

#[test]
fn students_interval_is_that_of_scipy() {
    for case in cases() {
        let summary = Summary::of(&case.a).unwrap();
        let (mean, reach) = (summary.mean().unwrap(), summary.ci95().unwrap());
        close(case.name, "low", mean - reach, case.student[0]);
        close(case.name, "high", mean + reach, case.student[1]);
    }
}

#[test]
fn signed_rank_is_that_of_scipy() {
    for case in cases() {
        let (a, b) = pairs(&case);
        let test = SignedRank::of(a, b).unwrap();
        let smaller = test.grown.min(test.fallen);
        close(case.name, "smaller sum", smaller, case.signed_rank[0]);
        close(case.name, "p", test.p, case.signed_rank[1]);
    }
}

#[test]
fn paired_t_is_that_of_scipy() {
    for case in cases() {
        let (a, b) = pairs(&case);
        let test = Student::of_pairs(a, b).unwrap();
        close(case.name, "t", test.t, case.paired_t[0]);
        close(case.name, "df", test.df, case.paired_t[1]);
        close(case.name, "p", test.p, case.paired_t[2]);
    }
}

#[test]
fn the_ratio_of_a_few_has_the_t_interval_of_scipy() {
    let mut few = 0;
    for case in cases() {
        let (a, b) = pairs(&case);
        let found = [
            ratio_interval(a, b, Runs::Paired).unwrap(),
            ratio_interval(&case.a, &case.b, Runs::Independent).unwrap(),
        ];
        for (found, expected) in found.into_iter().zip([case.log_ratios, case.log_means]) {
            if found.method == IntervalMethod::LogRatios {
                close(case.name, "low", found.ends.low, expected[0]);
                close(case.name, "high", found.ends.high, expected[1]);
                few += 1;
            }
        }
    }
    assert_eq!(few, 10);
}

#[test]
fn holm_is_that_of_its_definition() {
    for (p, expected) in FAMILIES {
        for (got, expected) in holm(p).into_iter().zip(expected) {
            close("holm", "p", got, *expected);
        }
    }
}

/// Returns the medians of an interval's ends over the seeds.
fn middle(intervals: &[Interval]) -> [f64; 2] {
    let of = |end: fn(&Interval) -> f64| {
        let ends: Vec<f64> = intervals.iter().map(end).collect();
        Summary::of(&ends).unwrap().median().unwrap()
    };
    [of(|interval| interval.low), of(|interval| interval.high)]
}

/// Checks that the interval of `bootstrap` is the expected one.
fn near(case: &Case, what: &str, expected: [f64; 2], bootstrap: impl Fn(u64) -> Option<Interval>) {
    let all: Vec<Interval> = (1..=SEEDS).filter_map(bootstrap).collect();
    assert_eq!(all.len() as u64, SEEDS);
    let (got, width) = (middle(&all), expected[1] - expected[0]);
    let off = [0, 1].map(|end| (got[end] - expected[end]).abs() / width);
    assert!(
        off.iter().all(|off| *off <= OF_WIDTH),
        "{}: {what} {got:?} is not {expected:?}",
        case.name
    );
}

#[test]
fn bootstrap_intervals_are_those_of_scipy() {
    for case in &cases() {
        let (a, b) = pairs(case);
        near(case, "ratio", case.ratio, |seed| {
            bootstrap_ratio(&case.a, &case.b, seed)
        });
        near(case, "paired", case.paired, |seed| {
            bootstrap_paired_ratio(a, b, seed)
        });
    }
}
