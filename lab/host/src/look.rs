//! One look at a host: everything that this user may read, and the errors for the rest.

use std::time::SystemTime;

use brickyard::Order;
use brickyard::stats::FreeCounts;
use brickyard_trace::{PageUse, StateRun};

use crate::blocks::{self, BlockUse};
use crate::movability::Judge;
use crate::outlook::{self, Outlook, Verdict};
use crate::pagetypeinfo::PageTypes;
use crate::spans::own_runs;
use crate::zoneinfo::{ZoneInfo, counter};
use crate::{Host, HostError, Unevictable};

/// The order of a huge page if the kernel does not report it: 2 MiB in frames of 4 KiB.
const USUAL_HUGE_ORDER: u8 = 9;

/// How much a look reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// zoneinfo and buddyinfo: takes milliseconds; allowed to all users.
    Lists,
    /// The state of every frame too, as root: about 13 million frames a second.
    Frames {
        /// The order of a page block, from an earlier look.
        page_block_order: Order,
    },
    /// pagetypeinfo too, as root. The kernel locks each zone in turn to produce it, so it should
    /// not be read every second.
    Everything,
}

/// What was read of one zone.
#[derive(Debug, Clone)]
pub struct ZoneLook {
    /// The zone as zoneinfo has it.
    pub info: ZoneInfo,
    /// Free blocks by order, from buddyinfo.
    pub counts: FreeCounts,
    /// The highest order of the kernel's free lists.
    pub max_order: Order,
    /// Its page blocks; empty if the frames were not read.
    pub blocks: Vec<BlockUse>,
    /// The blocks that could be allocated, by order up to the larger of `max_order` and the huge
    /// order; empty if the frames were not read.
    pub outlook: Vec<Outlook>,
}

impl ZoneLook {
    /// Returns whether a movable request of this order would succeed in this zone.
    #[must_use]
    pub fn verdict(&self, order: Order) -> Verdict {
        outlook::verdict(&self.info, &self.counts, order)
    }
}

/// The kernel's counters that all users may read, under the names of uses.
const COUNTERS: [(&str, &str); 6] = [
    ("free", "nr_free_pages"),
    ("anonymous", "nr_anon_pages"),
    ("file", "nr_file_pages"),
    ("slab, reclaimable", "nr_slab_reclaimable"),
    ("slab, unreclaimable", "nr_slab_unreclaimable"),
    ("page-table", "nr_page_table_pages"),
];

/// Everything that was read.
#[derive(Debug)]
pub struct Look {
    /// The host's name; empty if it cannot be read.
    pub host: String,
    /// When it was taken; of copied files, when they were copied.
    pub time: SystemTime,
    /// The kernel's release; empty if it cannot be read.
    pub kernel: String,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// What compaction does with locked memory.
    pub unevictable: Unevictable,
    /// The order of a huge page.
    pub huge_order: Order,
    /// The order of a page block; that of a huge page if pagetypeinfo was not read.
    pub page_block_order: Order,
    /// The zones that have memory, node by node and lowest first; there is at least one.
    pub zones: Vec<ZoneLook>,
    /// Free blocks and page blocks by migrate type; `None` if pagetypeinfo was not read.
    pub page_types: Option<PageTypes>,
    /// The state of every frame, in order; empty if they were not read.
    pub runs: Vec<StateRun>,
    /// What could not be read, and why.
    pub withheld: Vec<HostError>,
}

impl Look {
    /// Returns whether a movable request of this order would succeed in some zone, and if not, why.
    #[must_use]
    pub fn verdict(&self, order: Order) -> Verdict {
        let verdicts: Vec<_> = self.zones.iter().map(|zone| zone.verdict(order)).collect();
        let any = |verdict| verdicts.contains(&verdict);
        if any(Verdict::Succeeds) {
            Verdict::Succeeds
        } else if any(Verdict::Fragmented) {
            Verdict::Fragmented
        } else {
            Verdict::Lack
        }
    }

    /// Returns the number of frames of each use: of all uses if the frames were read, otherwise of
    /// those for which the kernel has counters that all users may read.
    #[must_use]
    pub fn by_use(&self) -> Vec<(&'static str, u64)> {
        if self.runs.is_empty() {
            let infos: Vec<ZoneInfo> = self.zones.iter().map(|zone| zone.info.clone()).collect();
            let value = |&(name, stat): &(&'static str, &str)| Some((name, counter(&infos, stat)?));
            return COUNTERS.iter().filter_map(value).collect();
        }
        let mut frames = [0; PageUse::ALL.len()];
        for run in &self.runs {
            frames[run.state.usage as usize] += run.frames;
        }
        let named = PageUse::ALL.map(|usage| (usage.name(), frames[usage as usize]));
        let present = named
            .into_iter()
            .filter(|&(name, _)| name != PageUse::Hole.name());
        present.collect()
    }

    /// Reads the host to this depth. `now` gives the time of each read of frames; `progress` is
    /// called with how many frames were read, and of how many. Nothing is written.
    ///
    /// # Errors
    /// If zoneinfo or buddyinfo cannot be read. Errors of other files go to [`Look::withheld`].
    pub fn at(
        host: &Host,
        depth: Depth,
        now: impl Fn() -> u64 + Sync,
        progress: impl FnMut(u64, u64),
    ) -> Result<Self, HostError> {
        let mut withheld = Vec::new();
        let mut page_types = None;
        let mut runs = Vec::new();
        if depth == Depth::Everything {
            page_types = ok_or_withheld(host.page_types(), &mut withheld);
        }
        if depth != Depth::Lists {
            let states = host.page_states(now, progress);
            let states = ok_or_withheld(states, &mut withheld);
            runs = states.unwrap_or_default().runs;
        }
        let reported = match (depth, &page_types) {
            (Depth::Frames { page_block_order }, _) => Some(page_block_order),
            (_, Some(types)) => Order::try_new(types.page_block_order),
            _ => None,
        };
        let mut look = Self::of_runs(host, reported, runs)?;
        look.page_types = page_types;
        look.withheld = withheld;
        Ok(look)
    }

    /// Reads the lists of the host, and combines them with frames that were read before; `runs` may
    /// be empty. `page_block_order` is what the kernel reported, if that is known.
    ///
    /// # Errors
    /// If zoneinfo or buddyinfo cannot be read.
    pub fn of_runs(
        host: &Host,
        page_block_order: Option<Order>,
        runs: Vec<StateRun>,
    ) -> Result<Self, HostError> {
        // Read last, so that the counts agree best with the frames read last: most memory is at the
        // end.
        let infos = host.zones()?;
        let buddies = host.buddyinfo()?;
        let huge_order = host.huge_order().and_then(Order::try_new);
        let huge_order = huge_order.unwrap_or(Order::new(USUAL_HUGE_ORDER));
        let reported = page_block_order.filter(|&order| order > Order::ZERO);
        let page_block_order = reported.unwrap_or(huge_order);
        let unevictable = host.compacts_unevictable();
        let judge = Judge::new(&runs, page_block_order.get(), unevictable);
        let zones = infos.iter().map(|info| {
            let buddy = buddies
                .iter()
                .find(|buddy| (buddy.node, buddy.zone.as_str()) == (info.node, info.name.as_str()));
            let counts = buddy.map(|buddy| buddy.counts()).unwrap_or_default();
            let max_order = buddy.map_or(Order::DEFAULT_MAX, |buddy| buddy.max_order());
            let mut zone = ZoneLook {
                info: info.clone(),
                counts,
                max_order,
                blocks: Vec::new(),
                outlook: Vec::new(),
            };
            if !runs.is_empty() {
                let highest = max_order.max(huge_order);
                let own = own_runs(&runs, info, &infos);
                zone.blocks = blocks::of_zone(&own, info, page_block_order.get(), &judge);
                zone.outlook = outlook::of_zone(&own, info, &counts, highest, &judge);
            }
            zone
        });
        let zones = zones.collect();
        Ok(Self {
            host: host.name(),
            time: host.time(),
            kernel: host.kernel(),
            frame_bytes: host.frame_bytes(),
            unevictable,
            huge_order,
            page_block_order,
            zones,
            page_types: None,
            runs,
            withheld: Vec::new(),
        })
    }
}

/// Returns the value, or adds the error to `withheld`.
fn ok_or_withheld<T>(read: Result<T, HostError>, withheld: &mut Vec<HostError>) -> Option<T> {
    read.map_err(|why| withheld.push(why)).ok()
}
