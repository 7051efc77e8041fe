//! Every load by name: its source, what it stands for, and how many threads it has.

use crate::loads::known::{
    alloc_test, cache, cfrac, glibc, large, larson, mleak, mstress, refill, rptest, smartheap,
    xmalloc,
};
use crate::loads::work::{LoadResult, LoadTask};

/// How many threads a load has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    /// One.
    One,
    /// The number that is asked for.
    Many,
    /// It is run twice: by one, and by as many as asked for.
    Both,
}

/// A load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Its name.
    pub name: &'static str,
    /// What it does and stands for, in a line.
    pub what: &'static str,
    /// Whose load it is after, and of when.
    pub source: &'static str,
    /// How many threads it has.
    pub crowd: Crowd,
    run: fn(&LoadTask) -> LoadResult,
}

impl Load {
    /// Returns the load of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CATALOG.iter().find(|load| load.name == name)
    }

    /// Does the work, and returns what was done.
    ///
    /// # Panics
    /// If memory has lost what was written to it, overlaps or is misaligned, and if there is none.
    #[must_use]
    pub fn run(&self, work: &LoadTask) -> LoadResult {
        (self.run)(work)
    }
}

/// All loads, in the order of the table.
pub const CATALOG: &[Load] = &[
    Load {
        name: "alloc-test",
        what: "random sizes and lifetimes by a Pareto distribution",
        source: "alloc-test, OLogN Technologies (Hare), 2018",
        crowd: Crowd::Both,
        run: alloc_test::run,
    },
    Load {
        name: "cfrac",
        what: "many tiny blocks that live for one operation",
        source: "cfrac, Barrett; in Grunwald, Zorn, Henderson 1993",
        crowd: Crowd::One,
        run: cfrac::run,
    },
    Load {
        name: "larson",
        what: "a server; threads hand their blocks to the threads that replace them",
        source: "Larson, Krishnan 1998: Memory allocation for long-running server applications",
        crowd: Crowd::Many,
        run: larson::run,
    },
    Load {
        name: "xmalloc",
        what: "half of the threads allocate, the others free",
        source: "xmalloc-test; Lever, Boreham 2000: malloc() performance in a multithreaded Linux environment",
        crowd: Crowd::Many,
        run: xmalloc::run,
    },
    Load {
        name: "cache-scratch",
        what: "false sharing that the freed blocks of other threads lead to",
        source: "Berger, McKinley, Blumofe, Wilson 2000: Hoard",
        crowd: Crowd::Many,
        run: cache::scratch,
    },
    Load {
        name: "cache-thrash",
        what: "false sharing by threads that allocate at the same time",
        source: "Berger, McKinley, Blumofe, Wilson 2000: Hoard",
        crowd: Crowd::Many,
        run: cache::thrash,
    },
    Load {
        name: "glibc-simple",
        what: "blocks of one size, allocated and freed in the same order",
        source: "glibc's benchmark malloc-simple, Dijkstra 2019",
        crowd: Crowd::One,
        run: glibc::simple,
    },
    Load {
        name: "glibc-thread",
        what: "random blocks of 4 bytes to 32 KiB are replaced",
        source: "glibc's benchmark malloc-thread, Newton 2013",
        crowd: Crowd::Many,
        run: glibc::thread,
    },
    Load {
        name: "mstress",
        what: "a server in phases: threads come and go, blocks move between them",
        source: "mimalloc's stress test, Leijen 2018",
        crowd: Crowd::Many,
        run: mstress::run,
    },
    Load {
        name: "rptest",
        what: "sizes up to 16000 bytes, half of the blocks freed by another thread",
        source: "rpmalloc-benchmark, Jansson 2017",
        crowd: Crowd::Many,
        run: rptest::usual,
    },
    Load {
        name: "rptest-large",
        what: "the same with sizes up to 128 KiB",
        source: "rpmalloc-benchmark, Jansson 2017",
        crowd: Crowd::Many,
        run: rptest::large,
    },
    Load {
        name: "sh6bench",
        what: "most blocks are freed the last first, the rest later, the first first",
        source: "sh6bench, MicroQuill (SmartHeap), 1990s",
        crowd: Crowd::One,
        run: smartheap::six,
    },
    Load {
        name: "sh8bench",
        what: "the same on several threads; the rest is freed by another thread",
        source: "sh8bench, MicroQuill (SmartHeap), 2000s",
        crowd: Crowd::Many,
        run: smartheap::eight,
    },
    Load {
        name: "mleak",
        what: "thousands of threads begin and end",
        source: "mleak, of mimalloc-bench (Leijen)",
        crowd: Crowd::Many,
        run: mleak::run,
    },
    Load {
        name: "malloc-large",
        what: "blocks of 5 to 25 MiB",
        source: "malloc-large, of mimalloc-bench (Leijen)",
        crowd: Crowd::One,
        run: large::run,
    },
    Load {
        name: "refill",
        what: "memory is filled, three quarters are freed at random, other sizes fill it again",
        source: "after Rumble, Kejariwal, Ousterhout 2014: Log-structured memory for DRAM-based storage",
        crowd: Crowd::One,
        run: refill::run,
    },
];
