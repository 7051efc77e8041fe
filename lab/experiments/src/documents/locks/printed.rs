//! The tables of 2007 and 2008, cell by cell.
//!
//! The page as it is kept has lost the columns: means stand as `3.2913.351`, and fewer groups of figures than workloads. Where a figure belongs follows from three things that
//! agree. (1) The author marks with `*` in a table's head the workloads that were too noisy to print; leaving these out, there are exactly as many groups as workloads. (2) The printed speedup is the ratio of
//! the two means next to each other. (3) The same workload has like times on 8, 16 and 32 CPUs.

/// The two sides of one workload: mean, deviation and interval of each, and the speedup.
pub(super) struct Two {
    /// Means, `unmod` and `opt`.
    pub(super) mean: [&'static str; 2],
    /// Standard deviations.
    pub(super) deviation: [&'static str; 2],
    /// 95 % intervals.
    pub(super) interval: [&'static str; 2],
    /// Speedup.
    pub(super) speedup: &'static str,
}

const fn two(
    mean: [&'static str; 2],
    deviation: [&'static str; 2],
    interval: [&'static str; 2],
    speedup: &'static str,
) -> Two {
    Two {
        mean,
        deviation,
        interval,
        speedup,
    }
}

/// A workload: his name, ours where it is modelled, and what he printed of it if it was not too noisy.
pub(super) type Of<T> = (&'static str, Option<&'static str>, Option<T>);

/// Simulated, by number of CPUs.
pub(super) const SIMULATED: [(u32, [Of<Two>; 6]); 3] = [
    (
        8,
        [
            ("find*", Some("find"), None),
            (
                "pmake",
                Some("pmake"),
                Some(two(
                    ["3.291", "3.351"],
                    [".05", ".096"],
                    [".049", ".094"],
                    ".982",
                )),
            ),
            (
                "dpunish",
                Some("dpunish"),
                Some(two(
                    ["5.773", "5.793"],
                    [".044", ".082"],
                    [".044", ".080"],
                    ".997",
                )),
            ),
            ("bonnie++*", Some("bonnie"), None),
            (
                "MAB",
                Some("mab"),
                Some(two(
                    ["5.934", "5.916"],
                    [".009", ".014"],
                    [".009", ".013"],
                    "1.003",
                )),
            ),
            (
                "config",
                Some("config"),
                Some(two(
                    ["12.898", "12.833"],
                    [".096", ".466"],
                    [".096", ".466"],
                    "1.005",
                )),
            ),
        ],
    ),
    (
        16,
        [
            (
                "find",
                Some("find"),
                Some(two(
                    ["1.647", "1.704"],
                    [".213", ".310"],
                    [".209", ".304"],
                    ".967",
                )),
            ),
            (
                "pmake",
                Some("pmake"),
                Some(two(
                    ["2.606", "2.518"],
                    [".110", ".058"],
                    [".108", ".057"],
                    "1.035",
                )),
            ),
            (
                "dpunish",
                Some("dpunish"),
                Some(two(
                    ["4.436", "4.450"],
                    [".031", ".017"],
                    [".030", ".017"],
                    ".997",
                )),
            ),
            ("bonnie++*", Some("bonnie"), None),
            (
                "MAB",
                Some("mab"),
                Some(two(
                    ["3.499", "3.546"],
                    [".044", ".130"],
                    [".043", ".127"],
                    ".987",
                )),
            ),
            (
                "config",
                Some("config"),
                Some(two(
                    ["9.526", "9.361"],
                    [".339", ".154"],
                    [".332", ".151"],
                    "1.018",
                )),
            ),
        ],
    ),
    (
        32,
        [
            (
                "find",
                Some("find"),
                Some(two(
                    ["1.059", "1.108"],
                    [".086", ".102"],
                    [".085", ".100"],
                    ".956",
                )),
            ),
            (
                "pmake",
                Some("pmake"),
                Some(two(
                    ["2.640", "2.524"],
                    [".174", ".077"],
                    [".171", ".075"],
                    "1.046",
                )),
            ),
            (
                "dpunish",
                Some("dpunish"),
                Some(two(
                    ["3.630", "3.609"],
                    [".046", ".017"],
                    [".045", ".017"],
                    "1.006",
                )),
            ),
            ("bonnie++*", Some("bonnie"), None),
            (
                "MAB",
                Some("mab"),
                Some(two(
                    ["3.400", "3.379"],
                    [".047", ".020"],
                    [".046", ".020"],
                    "1.006",
                )),
            ),
            (
                "config",
                Some("config"),
                Some(two(
                    ["8.985", "8.937"],
                    [".043", ".089"],
                    [".042", ".088"],
                    "1.005",
                )),
            ),
        ],
    ),
];

/// The real machine, October 2007, 15 samples.
pub(super) const REAL: [Of<Two>; 7] = [
    (
        "MAB",
        Some("mab"),
        Some(two(
            ["2.916", "2.872"],
            [".103", ".090"],
            [".052", ".046"],
            "1.015*",
        )),
    ),
    (
        "config",
        Some("config"),
        Some(two(
            ["2.350", "2.337"],
            [".159", ".178"],
            [".080", ".090"],
            "1.006",
        )),
    ),
    (
        "objdump",
        Some("objdump"),
        Some(two(
            ["23.234", "23.057"],
            [".255", ".393"],
            [".180", ".199"],
            "1.008*",
        )),
    ),
    (
        "Kernel compile",
        Some("kernel"),
        Some(two(
            ["255.870", "258.027"],
            ["5.861", "4.903"],
            ["2.966", "2.481"],
            "0.992*",
        )),
    ),
    (
        "Kernel compile fast",
        Some("kernel"),
        Some(two(
            ["37.764", "36.030"],
            ["3.397", "2.985"],
            ["1.719", "1.511"],
            "1.048*",
        )),
    ),
    (
        "hdparm (not modelled)",
        None,
        Some(two(
            ["87.543", "87.377"],
            [".307", "1.066"],
            [".155", ".539"],
            "1.002",
        )),
    ),
    ("lmbench (not modelled)", None, None),
];

/// The four columns of one workload of January 2008. Each speedup is over the column before.
pub(super) struct Four {
    /// Means: `unmod`, `ts`, `ts+opt`, `ts+opt+cl`.
    pub(super) mean: [&'static str; 4],
    /// Standard deviations.
    pub(super) deviation: [&'static str; 4],
    /// 95 % intervals.
    pub(super) interval: [&'static str; 4],
    /// Speedups of the second, third and fourth.
    pub(super) speedup: [&'static str; 3],
}

const fn four(
    mean: [&'static str; 4],
    deviation: [&'static str; 4],
    interval: [&'static str; 4],
    speedup: [&'static str; 3],
) -> Option<Four> {
    Some(Four {
        mean,
        deviation,
        interval,
        speedup,
    })
}

/// Ticket spinlocks, January 2008: 15 samples, 5 of the compiles.
pub(super) const TICKET: [Of<Four>; 7] = [
    (
        "MAB",
        Some("mab"),
        four(
            ["3.139", "3.239", "3.190", "3.291"],
            [".174", ".175", ".188", ".261"],
            [".088", ".088", ".095", ".132"],
            ["0.969*", "1.015*", "0.969*"],
        ),
    ),
    (
        "config",
        Some("config"),
        four(
            ["2.520", "2.562", "2.498", "2.528"],
            [".202", ".256", ".205", ".230"],
            [".102", ".130", ".104", ".116"],
            ["0.983*", "1.026*", "0.988"],
        ),
    ),
    (
        "objdump",
        Some("objdump"),
        four(
            ["22.744", "22.921", "22.476", "23.363"],
            [".447", ".583", ".500", ".512"],
            [".226", ".295", ".253", ".259"],
            ["0.992*", "1.020*", "0.962*"],
        ),
    ),
    (
        "Kernel compile",
        Some("kernel"),
        four(
            ["239.501", "239.754", "241.821", "240.022"],
            ["6.180", "2.459", "4.489", "4.489"],
            ["5.417", "2.155", "3.934", "3.963"],
            ["0.999", "0.991", "1.007"],
        ),
    ),
    (
        "Kernel compile fast",
        Some("kernel"),
        four(
            ["37.204", "38.795", "39.715", "38.872"],
            ["2.861", "4.416", "3.081", "5.167"],
            ["2.508", "3.871", "2.701", "4.529"],
            ["0.959", "0.977", "1.022"],
        ),
    ),
    (
        "hdparm (not modelled)",
        None,
        four(
            ["87.496", "87.510", "87.493", "87.513"],
            [".127", ".062", ".104", ".057"],
            [".064", ".032", ".053", ".029"],
            ["1.000", "1.000", "1.000"],
        ),
    ),
    (
        "dd",
        Some("dd"),
        four(
            ["0.079", "0.078", "0.078", "0.079"],
            [".001", ".002", ".002", ".003"],
            [".000", ".001", ".001", ".001"],
            ["1.002", "1.012*", "0.984*"],
        ),
    ),
];

/// A line of the bulk table: its head, our metric of the mean and of the deviation, and mean and deviation of each of [`BULK_WORKLOADS`].
pub(super) type Bulk = (
    &'static str,
    &'static str,
    &'static str,
    [[&'static str; 2]; 4],
);

/// The columns of the bulk table: his name and ours.
pub(super) const BULK_WORKLOADS: [(&str, &str); 4] = [
    ("config", "config"),
    ("MAB", "mab"),
    ("dpunish", "dpunish"),
    ("pmake", "pmake"),
];

/// Average size and order of bulk operations.
pub(super) const BULKS: [Bulk; 4] = [
    (
        "free_pages_bulk() - count",
        "give-pages",
        "give-pages-sd",
        [
            ["7.01", "0.74"],
            ["6.82", "1.01"],
            ["7.00", "0.14"],
            ["7.00", "0.00"],
        ],
    ),
    (
        "free_pages_bulk() - order",
        "give-order",
        "give-order-sd",
        [
            ["0.00", "0.05"],
            ["0.03", "0.17"],
            ["0.00", "0.06"],
            ["0.00", "0.00"],
        ],
    ),
    (
        "rmqueue_bulk() - count",
        "take-pages",
        "take-pages-sd",
        [
            ["7.03", "1.70"],
            ["7.21", "2.42"],
            ["7.07", "1.29"],
            ["6.28", "1.77"],
        ],
    ),
    (
        "rmqueue_bulk() - order",
        "take-order",
        "take-order-sd",
        [
            ["0.21", "0.65"],
            ["0.31", "0.87"],
            ["0.13", "0.14"],
            ["0.57", "1.07"],
        ],
    ),
];
