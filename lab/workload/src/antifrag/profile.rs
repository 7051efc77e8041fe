//! The machines of the documents, as far as they are described.
//!
//! The mail of 2007 gives names, architectures and times; the number of CPUs follows from CPU time
//! over elapsed time (kernbench keeps all CPUs busy on all machines but one). Memory is not given.
//! It was calibrated on one column, which no longer counts as a check: the multiple of 128 MiB with
//! which `vanilla` has the huge pages under load that were published, as nearly as the mean of three
//! phases can say (published: 10, 21, 34, 2 and 1 %):
//!
//! ```sh
//! brickyard run mobility --on bl6-13 --set config=vanilla --set reclaim=plain --set memory=1 --set phase=0
//! ```
//!
//! Boot logs that the author posted a week later give gekko-lp1 4 GiB and bl6-13 1 GiB; with these and
//! seven builds, `vanilla` is far from what was published, so how many kernels were built is what is
//! not known (`docs/book/internals/lab.md`).
//!
//! Huge pages: 2 MiB on x86 (order 9), 16 MiB on ppc64 with its 4 KiB pages (order 12). According to
//! the posting of 2005, 296 blocks of 4 MiB are 78 % of physical memory, so its machine had 1.5 GiB.

use brickyard::node::{Lumpy, SlowPath};
use brickyard::watermark;
use brickyard::{Order, ZoneKind};
use brickyard_run::named;

/// A machine of one of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its name in the document.
    pub name: &'static str,
    /// Its architecture.
    pub architecture: &'static str,
    /// The bytes of memory.
    pub memory: u64,
    /// The number of CPUs.
    pub cpus: usize,
    /// The order of a huge page.
    pub huge: Order,
    /// The highest order of its allocator.
    pub max: Order,
    /// The first byte of high memory, which the kernel does not map. `None` if it has none.
    pub high_memory_from: Option<u64>,
}

const MIB: u64 = 1 << 20;

impl Profile {
    /// The machine of 2005.
    pub const OF_2005: Self = Self {
        name: "desktop-2005",
        architecture: "x86",
        memory: 1518 * MIB,
        cpus: 2,
        huge: Order::new(10),
        max: Order::new(10),
        high_memory_from: Some(896 * MIB),
    };

    /// The five machines of 2007, in the order of its tables.
    pub const OF_2007: [Self; 5] = [
        Self::calibrated("bl6-13", "x86_64", 2304, 4, [9, 10]),
        Self {
            high_memory_from: Some(896 * MIB),
            ..Self::calibrated("elm3b14", "x86-numaq", 2048, 4, [9, 10])
        },
        Self::calibrated("elm3b245", "x86_64", 3200, 4, [9, 10]),
        Self::calibrated("gekko-lp1", "ppc64", 2048, 2, [12, 12]),
        Self::calibrated("gekko-lp4", "ppc64", 1664, 1, [12, 12]),
    ];

    /// A machine without high memory, whose memory was calibrated. The orders are that of a huge
    /// page and the highest.
    const fn calibrated(
        name: &'static str,
        architecture: &'static str,
        mib: u64,
        cpus: usize,
        [huge, max]: [u8; 2],
    ) -> Self {
        Self {
            name,
            architecture,
            memory: mib * MIB,
            cpus,
            huge: Order::new(huge),
            max: Order::new(max),
            high_memory_from: None,
        }
    }

    /// Returns the profile with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = core::iter::once(Self::OF_2005).chain(Self::OF_2007);
        all.into_iter().find(|profile| profile.name == name)
    }

    /// The memory that it keeps free, in KiB. In 2005 nothing is said, so it is Linux's default. In
    /// 2007 it was raised, on all kernels: to 16384, which is four blocks of the highest order on
    /// x86, and on the ppc64 machine of the video to 2 % of memory, which is assumed for both.
    #[must_use]
    pub fn min_free_kbytes(&self) -> usize {
        let memory = (self.memory / 1024) as usize;
        let low = self
            .high_memory_from
            .map_or(memory, |from| memory.min((from / 1024) as usize));
        match self.architecture {
            "x86" => watermark::min_free_kbytes(low),
            "ppc64" => memory / 50,
            _ => watermark::recommended_min_free_kbytes(Order::DEFAULT_MAX, 4096),
        }
    }

    /// The bytes that the kernel takes at boot: a `struct page` for each frame of 4 KiB (32 bytes,
    /// or 56 on 64 bits), and its image and tables, assumed to be 8 MiB.
    #[must_use]
    pub const fn boot(&self) -> u64 {
        let record = match self.architecture.as_bytes() {
            b"x86" | b"x86-numaq" => 32,
            _ => 56,
        };
        self.memory / 4096 * record + 8 * MIB
    }

    /// The highest kind of zone that it has.
    #[must_use]
    pub const fn highest(&self) -> ZoneKind {
        match self.high_memory_from {
            Some(_) => ZoneKind::HighMem,
            None => ZoneKind::Normal,
        }
    }
}

named! {
    /// The reclaim patches with which a published row was measured.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Reclaim {
        /// None: reclaim takes the oldest pages.
        Plain => "plain",
        /// Whitcroft's lumpy reclaim.
        Lumpy => "lumpy",
        /// Compaction, as in Linux since 2010; no document has figures for it.
        Compaction => "compaction",
    }
}

impl Reclaim {
    /// Whether reclaim of 2007 is lumpy. `None` for that of later kernels.
    #[must_use]
    pub const fn of_2007(self) -> Option<Lumpy> {
        match self {
            Self::Plain => Some(Lumpy::Off),
            Self::Lumpy => Some(Lumpy::On),
            Self::Compaction => None,
        }
    }

    /// Returns the steps that a request takes when no free block is found.
    #[must_use]
    pub const fn slow_path(self) -> SlowPath {
        match self {
            Self::Plain => SlowPath::PLAIN,
            Self::Lumpy => SlowPath::LUMPY_2007,
            Self::Compaction => SlowPath::MODERN,
        }
    }
}
