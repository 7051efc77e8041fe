//! The tables of 2005, cell by cell.

use super::{AT_REST, BRK_TEST, BUILD, EXTRACT, Of, PAGE_TEST, UNDER_LOAD};

/// A line of the summary.
pub(super) struct Difference {
    /// Its head.
    pub(super) head: &'static str,
    /// What is measured for it.
    pub(super) of: Of,
    /// Without two kinds.
    pub(super) clean: &'static str,
    /// With them.
    pub(super) kinds: &'static str,
    /// The difference, where one is printed.
    pub(super) difference: Option<&'static str>,
    /// In percent, or in words.
    pub(super) percent: &'static str,
    /// Digits behind the point.
    pub(super) decimals: usize,
}

const fn same(head: &'static str, of: Of, both: &'static str) -> Difference {
    Difference {
        head,
        of,
        clean: both,
        kinds: both,
        difference: None,
        percent: "(no difference)",
        decimals: 2,
    }
}

const fn differs(
    head: &'static str,
    of: Of,
    [clean, kinds, difference, percent]: [&'static str; 4],
    decimals: usize,
) -> Difference {
    Difference {
        head,
        of,
        clean,
        kinds,
        difference: Some(difference),
        percent,
        decimals,
    }
}

pub(super) const SUMMARY: [Difference; 6] = [
    same("Kernel extract", EXTRACT, "16"),
    same("Kernel build", BUILD, "736"),
    differs(
        "aim9-page_test",
        PAGE_TEST,
        ["132996.67", "133802.07", "+805.40", "(0.61%)"],
        2,
    ),
    differs(
        "aim9-brk_test",
        BRK_TEST,
        ["627478.75", "628223.93", "+745.18", "(0.12%)"],
        2,
    ),
    differs(
        "HugePages under load",
        UNDER_LOAD,
        ["79", "98", "+19", "(24%)"],
        0,
    ),
    differs(
        "HugePages after tests",
        AT_REST,
        ["102", "296", "+194", "(190%)"],
        0,
    ),
];

/// A test of AIM9.
pub(super) struct Aim9 {
    /// Its number.
    pub(super) number: u32,
    /// Its name.
    pub(super) name: &'static str,
    /// What an operation is.
    pub(super) what: &'static str,
    /// Elapsed time, iteration count, iteration rate, operation rate, without two kinds.
    pub(super) clean: [&'static str; 4],
    /// With them.
    pub(super) kinds: [&'static str; 4],
    /// The difference of the operation rates.
    pub(super) difference: &'static str,
    /// In percent.
    pub(super) percent: &'static str,
}

pub(super) const AIM9: [Aim9; 8] = [
    Aim9 {
        number: 1,
        name: "creat-clo",
        what: "File Creations and Closes/second",
        clean: ["60.02", "958", "15.96135", "15961.35"],
        kinds: ["60.04", "957", "15.93937", "15939.37"],
        difference: "-21.98",
        percent: "-0.14%",
    },
    Aim9 {
        number: 2,
        name: "page_test",
        what: "System Allocations & Pages/second",
        clean: ["60.00", "4694", "78.23333", "132996.67"],
        kinds: ["60.02", "4724", "78.70710", "133802.07"],
        difference: "805.40",
        percent: "0.61%",
    },
    Aim9 {
        number: 3,
        name: "brk_test",
        what: "System Memory Allocations/second",
        clean: ["60.01", "2215", "36.91051", "627478.75"],
        kinds: ["60.02", "2218", "36.95435", "628223.93"],
        difference: "745.18",
        percent: "0.12%",
    },
    Aim9 {
        number: 4,
        name: "jmp_test",
        what: "Non-local gotos/second",
        clean: ["60.00", "264119", "4401.98333", "4401983.33"],
        kinds: ["60.01", "264389", "4405.74904", "4405749.04"],
        difference: "3765.71",
        percent: "0.09%",
    },
    Aim9 {
        number: 5,
        name: "signal_test",
        what: "Signal Traps/second",
        clean: ["60.02", "5068", "84.43852", "84438.52"],
        kinds: ["60.01", "5022", "83.68605", "83686.05"],
        difference: "-752.47",
        percent: "-0.89%",
    },
    Aim9 {
        number: 6,
        name: "exec_test",
        what: "Program Loads/second",
        clean: ["60.07", "761", "12.66855", "63.34"],
        kinds: ["60.00", "756", "12.60000", "63.00"],
        difference: "-0.34",
        percent: "-0.54%",
    },
    Aim9 {
        number: 7,
        name: "fork_test",
        what: "Task Creations/second",
        clean: ["60.06", "1073", "17.86547", "1786.55"],
        kinds: ["60.06", "1076", "17.91542", "1791.54"],
        difference: "4.99",
        percent: "0.28%",
    },
    Aim9 {
        number: 8,
        name: "link_test",
        what: "Link/Unlink Pairs/second",
        clean: ["60.02", "5282", "88.00400", "5544.25"],
        kinds: ["60.01", "5318", "88.61856", "5582.97"],
        difference: "38.72",
        percent: "0.70%",
    },
];

/// High-order allocations under load: line, clean, with two kinds.
pub(super) const HIGH_ORDER: [(&str, &str, &str); 7] = [
    ("Attempted allocations", "275", "275"),
    ("Success allocs", "79", "98"),
    ("Failed allocs", "196", "177"),
    ("DMA zone allocs", "1", "1"),
    ("Normal zone allocs", "4", "2"),
    ("HighMem zone allocs", "74", "95"),
    ("% Success", "28", "35"),
];
