//! One look at a host: all that this user may read, and for the rest why not.

use brickyard::Order;
use brickyard::stats::FreeCounts;
use brickyard_trace::{PageUse, StateRun};

use crate::blocks::{self, BlockUse};
use crate::movability::Judge;
use crate::outlook::{self, Outlook, Verdict};
use crate::pagetypeinfo::PageTypes;
use crate::zoneinfo::{ZoneInfo, counter};
use crate::{Host, HostError, Unevictable};

/// The order of a huge page where the kernel does not say: 2 MiB in frames of 4 KiB.
const USUAL_HUGE_ORDER: u8 = 9;

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// zoneinfo and buddyinfo: milliseconds, and everyone may.
    Lists,
    /// Every frame too, as root: about 13 million frames a second.
    Frames {
        /// The order of a page block, where an earlier look has told it.
        page_block_order: Order,
    },
    /// pagetypeinfo too, as root. The kernel reads it with its zones locked one after the other, so
    /// it is not for every second.
    Everything,
}

/// What was seen of one zone.
#[derive(Debug, Clone)]
pub struct ZoneLook {
    /// What zoneinfo says.
    pub info: ZoneInfo,
    /// Free blocks by order, from buddyinfo.
    pub counts: FreeCounts,
    /// The highest order that the kernel keeps blocks of.
    pub max_order: Order,
    /// Its page blocks; empty if the frames were not looked at.
    pub blocks: Vec<BlockUse>,
    /// What could be had, by order up to the larger of the highest and the huge order; empty if the
    /// frames were not looked at.
    pub outlook: Vec<Outlook>,
}

impl ZoneLook {
    /// Would a movable request of this order succeed here?
    #[must_use]
    pub fn verdict(&self, order: Order) -> Verdict {
        outlook::verdict(&self.info, &self.counts, order)
    }
}

/// What everyone may know, under the names of the uses.
const COUNTERS: [(&str, &str); 6] = [
    ("free", "nr_free_pages"),
    ("anonymous", "nr_anon_pages"),
    ("file", "nr_file_pages"),
    ("slab, reclaimable", "nr_slab_reclaimable"),
    ("slab, unreclaimable", "nr_slab_unreclaimable"),
    ("page-table", "nr_page_table_pages"),
];

/// All that was seen.
#[derive(Debug)]
pub struct Look {
    /// The kernel's release; empty where it does not say.
    pub kernel: String,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// What compaction does with locked memory.
    pub unevictable: Unevictable,
    /// The order of a huge page.
    pub huge_order: Order,
    /// The order of a page block; that of a huge page where only root could know better.
    pub page_block_order: Order,
    /// The zones that have memory, node by node and lowest first; there is at least one.
    pub zones: Vec<ZoneLook>,
    /// Free blocks and page blocks by migrate type; `None` for who is not root.
    pub page_types: Option<PageTypes>,
    /// The state of every frame, in order; empty if they were not looked at.
    pub runs: Vec<StateRun>,
    /// What could not be read, and why.
    pub withheld: Vec<HostError>,
}

impl Look {
    /// Would a movable request of this order succeed in some zone? If not, why?
    #[must_use]
    pub fn verdict(&self, order: Order) -> Verdict {
        let verdicts: Vec<_> = self.zones.iter().map(|zone| zone.verdict(order)).collect();
        let any = |wanted| verdicts.contains(&wanted);
        if any(Verdict::Succeeds) {
            Verdict::Succeeds
        } else if any(Verdict::Fragmented) {
            Verdict::Fragmented
        } else {
            Verdict::Lack
        }
    }

    /// Frames by what they are used for: all uses where the frames were looked at, else what the
    /// kernel's counters tell everyone.
    #[must_use]
    pub fn by_use(&self) -> Vec<(&'static str, u64)> {
        if self.runs.is_empty() {
            let infos: Vec<ZoneInfo> = self.zones.iter().map(|zone| zone.info.clone()).collect();
            let told = |&(name, stat): &(&'static str, &str)| Some((name, counter(&infos, stat)?));
            return COUNTERS.iter().filter_map(told).collect();
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

    /// Looks. `progress` is told how many frames were looked at, and of how many. Nothing is
    /// written.
    ///
    /// # Errors
    /// zoneinfo or buddyinfo cannot be read. All else that cannot be read is in [`Look::withheld`].
    pub fn at(
        host: &Host,
        depth: Depth,
        now: impl Fn() -> u64,
        progress: impl FnMut(u64, u64),
    ) -> Result<Self, HostError> {
        let mut withheld = Vec::new();
        let mut page_types = None;
        let mut runs = Vec::new();
        if depth == Depth::Everything {
            page_types = or_why(host.page_types(), &mut withheld);
        }
        if depth != Depth::Lists {
            runs = or_why(host.page_states(now, progress), &mut withheld).unwrap_or_default();
        }
        // Read last: counts that belong together with what was seen at the end of the frames, where
        // most memory is.
        let infos = host.zones()?;
        let buddies = host.buddyinfo()?;
        let huge_order = host.huge_order().and_then(Order::try_new);
        let huge_order = huge_order.unwrap_or(Order::new(USUAL_HUGE_ORDER));
        let told = match (depth, &page_types) {
            (Depth::Frames { page_block_order }, _) => Some(page_block_order),
            (_, Some(types)) => Order::try_new(types.page_block_order),
            _ => None,
        };
        let told = told.filter(|&order| order > Order::ZERO);
        let page_block_order = told.unwrap_or(huge_order);
        let unevictable = host.compacts_unevictable();
        let judge = Judge::new(&runs, page_block_order.get(), unevictable);
        let zones = infos.into_iter().map(|info| {
            let buddy = buddies
                .iter()
                .find(|buddy| (buddy.node, buddy.zone.as_str()) == (info.node, &info.name));
            let counts = buddy.map(|buddy| buddy.counts()).unwrap_or_default();
            let max_order = buddy.map_or(Order::DEFAULT_MAX, |buddy| buddy.max_order());
            let mut zone = ZoneLook {
                info,
                counts,
                max_order,
                blocks: Vec::new(),
                outlook: Vec::new(),
            };
            if !runs.is_empty() {
                let highest = max_order.max(huge_order);
                let info = &zone.info;
                zone.blocks = blocks::of_zone(&runs, info, page_block_order.get(), &judge);
                zone.outlook = outlook::of_zone(&runs, info, &counts, highest, &judge);
            }
            zone
        });
        let zones = zones.collect();
        Ok(Self {
            kernel: host.kernel(),
            frame_bytes: host.frame_bytes(),
            unevictable,
            huge_order,
            page_block_order,
            zones,
            page_types,
            runs,
            withheld,
        })
    }
}

/// The value, or the reason kept.
fn or_why<T>(read: Result<T, HostError>, withheld: &mut Vec<HostError>) -> Option<T> {
    read.map_err(|why| withheld.push(why)).ok()
}
