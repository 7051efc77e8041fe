//! The eight tables of 2007, cell by cell.

/// A machine's line: its name, its architecture, and the four kernels.
pub(super) type Line = (&'static str, &'static str, [&'static str; 4]);

/// Kernbench Total CPU Time.
pub(super) const CPU_TIME: [Line; 5] = [
    ("bl6-13", "x86_64", ["121.34", "119.00", "119.60", "---"]),
    (
        "elm3b14",
        "x86-numaq",
        ["1527.57", "1530.80", "1529.26", "1530.64"],
    ),
    (
        "elm3b245",
        "x86_64",
        ["346.95", "346.48", "347.18", "346.67"],
    ),
    (
        "gekko-lp1",
        "ppc64",
        ["323.66", "323.80", "323.67", "323.58"],
    ),
    (
        "gekko-lp4",
        "ppc64",
        ["319.61", "320.25", "319.49", "319.58"],
    ),
];

/// Kernbench Total Elapsed Time.
pub(super) const ELAPSED: [Line; 5] = [
    ("bl6-13", "x86_64", ["36.32", "37.78", "35.14", "---"]),
    (
        "elm3b14",
        "x86-numaq",
        ["426.08", "427.34", "426.76", "427.73"],
    ),
    ("elm3b245", "x86_64", ["96.50", "96.03", "96.34", "96.11"]),
    (
        "gekko-lp1",
        "ppc64",
        ["172.17", "171.74", "172.06", "171.73"],
    ),
    (
        "gekko-lp4",
        "ppc64",
        ["325.38", "326.26", "324.90", "324.83"],
    ),
];

/// Percentage of memory allocated as huge pages under load.
pub(super) const UNDER_LOAD: [Line; 5] = [
    ("bl6-13", "x86_64", ["10", "75", "17", "0"]),
    ("elm3b14", "x86-numaq", ["21", "27", "19", "25"]),
    ("elm3b245", "x86_64", ["34", "66", "27", "62"]),
    ("gekko-lp1", "ppc64", ["2", "14", "4", "20"]),
    ("gekko-lp4", "ppc64", ["1", "24", "3", "17"]),
];

/// Percentage of memory allocated as huge pages at rest at end of test.
pub(super) const AT_REST: [Line; 5] = [
    ("bl6-13", "x86_64", ["17", "76", "22", "0"]),
    ("elm3b14", "x86-numaq", ["69", "84", "55", "82"]),
    ("elm3b245", "x86_64", ["41", "82", "44", "82"]),
    ("gekko-lp1", "ppc64", ["3", "61", "9", "69"]),
    ("gekko-lp4", "ppc64", ["1", "32", "4", "51"]),
];

/// Kernbench Total CPU Time, with the reclaim patches.
pub(super) const CPU_TIME_RECLAIM: [Line; 4] = [
    (
        "elm3b14",
        "x86-numaq",
        ["1528.42", "1531.25", "1528.48", "1531.04"],
    ),
    (
        "elm3b245",
        "x86_64",
        ["347.48", "346.09", "346.67", "346.04"],
    ),
    (
        "gekko-lp1",
        "ppc64",
        ["323.74", "323.79", "323.45", "323.77"],
    ),
    (
        "gekko-lp4",
        "ppc64",
        ["319.65", "319.72", "319.74", "319.70"],
    ),
];

/// Kernbench Total Elapsed Time, with the reclaim patches.
pub(super) const ELAPSED_RECLAIM: [Line; 4] = [
    (
        "elm3b14",
        "x86-numaq",
        ["427.00", "427.85", "426.18", "427.42"],
    ),
    ("elm3b245", "x86_64", ["96.72", "96.03", "96.58", "96.27"]),
    (
        "gekko-lp1",
        "ppc64",
        ["172.07", "172.07", "171.96", "172.72"],
    ),
    (
        "gekko-lp4",
        "ppc64",
        ["325.41", "324.97", "325.71", "324.94"],
    ),
];

/// Percentage of memory allocated as huge pages under load, with the reclaim patches.
pub(super) const UNDER_LOAD_RECLAIM: [Line; 4] = [
    ("elm3b14", "x86-numaq", ["24", "29", "23", "26"]),
    ("elm3b245", "x86_64", ["33", "76", "42", "75"]),
    ("gekko-lp1", "ppc64", ["2", "23", "9", "29"]),
    ("gekko-lp4", "ppc64", ["1", "24", "24", "40"]),
];

/// Percentage of memory allocated as huge pages at rest at end of test, with the reclaim patches.
pub(super) const AT_REST_RECLAIM: [Line; 4] = [
    ("elm3b14", "x86-numaq", ["52", "84", "64", "82"]),
    ("elm3b245", "x86_64", ["51", "87", "44", "85"]),
    ("gekko-lp1", "ppc64", ["7", "69", "25", "67"]),
    ("gekko-lp4", "ppc64", ["3", "43", "29", "53"]),
];
