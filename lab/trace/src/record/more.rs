//! Events beyond those of the page allocator's users, in groups that can be left out: what moves
//! between a zone and the lists of CPUs, and the steps of compaction and reclaim.

use brickyard::Order;

use super::decode::TypeNumbers;
use super::format::{Field, Format};
use super::row::Body;
use crate::{Step, What, named};

named! {
    /// A group of events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Group {
        /// Blocks that move between a zone and the lists of CPUs.
        Zones => "zones",
        /// Frees to the lists of CPUs. They repeat other events, one for nearly each free.
        Batched => "batched",
        /// Steps of compaction.
        Compaction => "compaction",
        /// Steps of reclaim.
        Reclaim => "reclaim",
    }
}

/// What an event becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    Taken,
    Drained,
    Batched,
    /// A step, with the fields of its frame, its order and its count, where it has them.
    Step(Step, [&'static str; 3]),
}

/// An event that can be recorded, as `system/name`.
#[derive(Debug, Clone, Copy)]
pub(super) struct More {
    pub(super) event: &'static str,
    group: Group,
    becomes: Becomes,
}

const fn step(event: &'static str, group: Group, step: Step, fields: [&'static str; 3]) -> More {
    More {
        event,
        group,
        becomes: Becomes::Step(step, fields),
    }
}

/// All of them, the most frequent first.
const ALL: [More; 14] = [
    More {
        event: "kmem/mm_page_alloc_zone_locked",
        group: Group::Zones,
        becomes: Becomes::Taken,
    },
    More {
        event: "kmem/mm_page_pcpu_drain",
        group: Group::Zones,
        becomes: Becomes::Drained,
    },
    More {
        event: "kmem/mm_page_free_batched",
        group: Group::Batched,
        becomes: Becomes::Batched,
    },
    step(
        "compaction/mm_compaction_isolate_migratepages",
        Group::Compaction,
        Step::SourcesIsolated,
        ["start_pfn", "", "nr_taken"],
    ),
    step(
        "compaction/mm_compaction_isolate_freepages",
        Group::Compaction,
        Step::TargetsIsolated,
        ["start_pfn", "", "nr_taken"],
    ),
    step(
        "compaction/mm_compaction_migratepages",
        Group::Compaction,
        Step::Migrated,
        ["", "", "nr_migrated"],
    ),
    step(
        "compaction/mm_compaction_begin",
        Group::Compaction,
        Step::CompactionBegins,
        ["migrate_pfn", "", ""],
    ),
    step(
        "compaction/mm_compaction_end",
        Group::Compaction,
        Step::CompactionEnds,
        ["migrate_pfn", "", "status"],
    ),
    step(
        "compaction/mm_compaction_kcompactd_wake",
        Group::Compaction,
        Step::KcompactdWakes,
        ["", "order", "nid"],
    ),
    step(
        "compaction/mm_compaction_kcompactd_sleep",
        Group::Compaction,
        Step::KcompactdSleeps,
        ["", "", "nid"],
    ),
    step(
        "vmscan/mm_vmscan_direct_reclaim_begin",
        Group::Reclaim,
        Step::ReclaimBegins,
        ["", "order", ""],
    ),
    step(
        "vmscan/mm_vmscan_direct_reclaim_end",
        Group::Reclaim,
        Step::ReclaimEnds,
        ["", "", "nr_reclaimed"],
    ),
    step(
        "vmscan/mm_vmscan_kswapd_wake",
        Group::Reclaim,
        Step::KswapdWakes,
        ["", "order", "nid"],
    ),
    step(
        "vmscan/mm_vmscan_kswapd_sleep",
        Group::Reclaim,
        Step::KswapdSleeps,
        ["", "", "nid"],
    ),
];

impl More {
    /// Returns the events of these groups.
    pub(super) fn of<'g>(groups: &'g [Group]) -> impl Iterator<Item = Self> + use<'g> {
        ALL.into_iter().filter(|more| groups.contains(&more.group))
    }

    /// Returns the event of this name, without its system.
    fn named(name: &str) -> Option<Self> {
        let own = |more: &Self| more.event.rsplit('/').next() == Some(name);
        ALL.into_iter().find(own)
    }
}

/// The fields of such an event, on the kernel whose format they are from.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) id: u16,
    becomes: Becomes,
    frame: Option<Field>,
    order: Option<Field>,
    value: Option<Field>,
    mobility: Option<Field>,
}

impl Fields {
    /// Finds the fields in a format. `None` if it is that of another event, or lacks one that is
    /// needed: such an event is left out.
    pub(super) fn of(format: &Format) -> Option<Self> {
        let becomes = More::named(&format.name)?.becomes;
        let names = match becomes {
            Becomes::Taken => ["pfn", "order", "percpu_refill"],
            Becomes::Drained => ["pfn", "order", ""],
            Becomes::Batched => ["pfn", "", ""],
            Becomes::Step(_, fields) => fields,
        };
        let mut found = [None, None, None];
        for (field, name) in found.iter_mut().zip(names) {
            *field = format.field(name).cloned();
            // `percpu_refill` is no more than a hint.
            if field.is_none() && !matches!(name, "" | "percpu_refill") {
                return None;
            }
        }
        let [frame, order, value] = found;
        let mobility = format.field("migratetype").cloned();
        let has_type = matches!(becomes, Becomes::Taken | Becomes::Drained);
        if has_type && mobility.is_none() {
            return None;
        }
        Some(Self {
            id: format.id,
            becomes,
            frame,
            order,
            value,
            mobility,
        })
    }

    /// Decodes an event; `None` if it is inconsistent.
    pub(super) fn body(&self, types: &TypeNumbers, data: &[u8]) -> Option<Body> {
        let frame = match &self.frame {
            Some(field) => field.unsigned(data)?,
            None => 0,
        };
        let order = match &self.order {
            Some(field) => super::decode::order(field, data),
            None => Some(Order::ZERO),
        };
        let value = || match &self.value {
            Some(field) => field.unsigned(data),
            None => Some(0),
        };
        let mobility = || types.get(self.mobility.as_ref()?.signed(data)?);
        let what = match self.becomes {
            Becomes::Taken => What::Taken {
                mobility: mobility()?,
                refill: value()? != 0,
            },
            Becomes::Drained => What::Drained {
                mobility: mobility()?,
            },
            Becomes::Batched => What::Batched,
            Becomes::Step(step, _) => What::Step {
                step,
                count: value()?,
            },
        };
        // kswapd may be asked for an order beyond the largest.
        let order = match what {
            What::Step { .. } => order.unwrap_or(Order::MAX),
            _ => order?,
        };
        Some(Body::Page { frame, order, what })
    }
}
