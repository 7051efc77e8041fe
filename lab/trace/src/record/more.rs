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
    Step(Step),
}

/// Where a number of a step comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Nothing,
    /// A field.
    Of(&'static str),
    /// A field, under its name until Linux 5.7.
    Renamed(&'static str, &'static str),
    /// The second field less the first.
    From(&'static str, &'static str),
    /// Node * 2^16 + zone.
    Place,
}

/// An event that can be recorded, as `system/name`.
#[derive(Debug, Clone, Copy)]
pub(super) struct More {
    pub(super) event: &'static str,
    group: Group,
    becomes: Becomes,
    /// The field with the event's frame; empty if it has none.
    frame: &'static str,
    /// The field with the order; empty if it has none.
    order: &'static str,
    /// The numbers of a step. The first is needed; a kernel may lack the others.
    numbers: [Number; 3],
}

/// An event about blocks.
const fn blocks(event: &'static str, group: Group, becomes: Becomes, order: &'static str) -> More {
    More {
        event,
        group,
        becomes,
        frame: "pfn",
        order,
        numbers: [Number::Nothing; 3],
    }
}

/// A step of compaction.
const fn compaction(
    event: &'static str,
    step: Step,
    [frame, order]: [&'static str; 2],
    numbers: [Number; 3],
) -> More {
    More {
        event,
        group: Group::Compaction,
        becomes: Becomes::Step(step),
        frame,
        order,
        numbers,
    }
}

/// A step of reclaim.
const fn reclaim(
    event: &'static str,
    step: Step,
    order: &'static str,
    numbers: [Number; 3],
) -> More {
    More {
        group: Group::Reclaim,
        ..compaction(event, step, ["", order], numbers)
    }
}

/// Pages that compaction has isolated.
const fn isolated(event: &'static str, step: Step) -> More {
    compaction(
        event,
        step,
        ["start_pfn", ""],
        [
            Number::Of("nr_taken"),
            Number::Of("nr_scanned"),
            Number::From("start_pfn", "end_pfn"),
        ],
    )
}

/// Compaction of a zone from `migrate_pfn` upwards and `free_pfn` downwards.
const fn searching(event: &'static str, step: Step, first: &'static str) -> More {
    compaction(
        event,
        step,
        ["migrate_pfn", ""],
        [
            Number::Of(first),
            Number::From("migrate_pfn", "free_pfn"),
            Number::From("zone_start", "zone_end"),
        ],
    )
}

/// A decision on a zone.
const fn decided(event: &'static str, step: Step, [first, second]: [Number; 2]) -> More {
    compaction(event, step, ["", "order"], [first, second, Number::Place])
}

const NOTHING: Number = Number::Nothing;
const NODE: Number = Number::Of("nid");
const RESULT: [Number; 2] = [Number::Of("ret"), NOTHING];
const PUT_OFF: [Number; 2] = [Number::Of("considered"), Number::Of("defer_shift")];
const HIGHEST: Number = Number::Renamed("highest_zoneidx", "classzone_idx");

/// All of them, the most frequent first.
const ALL: [More; 22] = [
    blocks(
        "kmem/mm_page_alloc_zone_locked",
        Group::Zones,
        Becomes::Taken,
        "order",
    ),
    blocks(
        "kmem/mm_page_pcpu_drain",
        Group::Zones,
        Becomes::Drained,
        "order",
    ),
    // Its text has an order, which is always 0.
    blocks(
        "kmem/mm_page_free_batched",
        Group::Batched,
        Becomes::Batched,
        "",
    ),
    isolated(
        "compaction/mm_compaction_isolate_migratepages",
        Step::SourcesIsolated,
    ),
    isolated(
        "compaction/mm_compaction_isolate_freepages",
        Step::TargetsIsolated,
    ),
    isolated(
        "compaction/mm_compaction_fast_isolate_freepages",
        Step::TargetsPicked,
    ),
    compaction(
        "compaction/mm_compaction_migratepages",
        Step::Migrated,
        ["", ""],
        [
            Number::Of("nr_migrated"),
            Number::Of("nr_failed"),
            Number::Nothing,
        ],
    ),
    decided(
        "compaction/mm_compaction_finished",
        Step::CompactionFinished,
        RESULT,
    ),
    decided(
        "compaction/mm_compaction_suitable",
        Step::CompactionSuitable,
        RESULT,
    ),
    decided(
        "compaction/mm_compaction_deferred",
        Step::CompactionDeferred,
        PUT_OFF,
    ),
    decided(
        "compaction/mm_compaction_defer_compaction",
        Step::CompactionDefers,
        PUT_OFF,
    ),
    decided(
        "compaction/mm_compaction_defer_reset",
        Step::CompactionResumes,
        PUT_OFF,
    ),
    searching(
        "compaction/mm_compaction_begin",
        Step::CompactionBegins,
        "sync",
    ),
    searching(
        "compaction/mm_compaction_end",
        Step::CompactionEnds,
        "status",
    ),
    compaction(
        "compaction/mm_compaction_wakeup_kcompactd",
        Step::KcompactdCalled,
        ["", "order"],
        [NODE, HIGHEST, NOTHING],
    ),
    compaction(
        "compaction/mm_compaction_kcompactd_wake",
        Step::KcompactdWakes,
        ["", "order"],
        [NODE, HIGHEST, NOTHING],
    ),
    compaction(
        "compaction/mm_compaction_kcompactd_sleep",
        Step::KcompactdSleeps,
        ["", ""],
        [NODE, NOTHING, NOTHING],
    ),
    reclaim(
        "vmscan/mm_vmscan_wakeup_kswapd",
        Step::KswapdCalled,
        "order",
        [NODE, Number::Of("zid"), Number::Of("gfp_flags")],
    ),
    reclaim(
        "vmscan/mm_vmscan_kswapd_wake",
        Step::KswapdWakes,
        "order",
        [NODE, Number::Of("zid"), NOTHING],
    ),
    reclaim(
        "vmscan/mm_vmscan_kswapd_sleep",
        Step::KswapdSleeps,
        "",
        [NODE, NOTHING, NOTHING],
    ),
    reclaim(
        "vmscan/mm_vmscan_direct_reclaim_begin",
        Step::ReclaimBegins,
        "order",
        [Number::Of("gfp_flags"), NOTHING, NOTHING],
    ),
    reclaim(
        "vmscan/mm_vmscan_direct_reclaim_end",
        Step::ReclaimEnds,
        "",
        [Number::Of("nr_reclaimed"), NOTHING, NOTHING],
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

/// A number of a step, by the fields of a format.
#[derive(Debug)]
enum Found {
    Nothing,
    Of(Field),
    From(Field, Field),
    Place(Field, Field),
}

impl Found {
    /// Finds the fields; `None` if the format lacks one.
    fn of(number: Number, format: &Format) -> Option<Self> {
        let field = |name| format.field(name).cloned();
        Some(match number {
            Number::Nothing => Self::Nothing,
            Number::Of(name) => Self::Of(field(name)?),
            Number::Renamed(name, before) => Self::Of(field(name).or_else(|| field(before))?),
            Number::From(from, to) => Self::From(field(from)?, field(to)?),
            Number::Place => Self::Place(field("nid")?, field("idx")?),
        })
    }

    /// Decodes the number; `None` if the event is too short.
    fn number(&self, data: &[u8]) -> Option<u32> {
        let number = match self {
            Self::Nothing => 0,
            Self::Of(field) => field.unsigned(data)?,
            Self::From(from, to) => to.unsigned(data)?.saturating_sub(from.unsigned(data)?),
            Self::Place(node, zone) => node.unsigned(data)? << 16 | zone.unsigned(data)? & 0xffff,
        };
        Some(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

/// The fields of such an event, on the kernel whose format they are from.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) id: u16,
    becomes: Becomes,
    frame: Option<Field>,
    order: Option<Field>,
    mobility: Option<Field>,
    refill: Option<Field>,
    numbers: [Found; 3],
}

impl Fields {
    /// Finds the fields in a format. `None` if it is that of another event, or lacks one that is
    /// needed: such an event cannot be recorded.
    pub(super) fn of(format: &Format) -> Option<Self> {
        let more = More::named(&format.name)?;
        let field = |name: &str| match name {
            "" => Some(None),
            _ => format.field(name).cloned().map(Some),
        };
        let has_type = matches!(more.becomes, Becomes::Taken | Becomes::Drained);
        let [first, second, third] = more.numbers.map(|number| Found::of(number, format));
        Some(Self {
            id: format.id,
            becomes: more.becomes,
            frame: field(more.frame)?,
            order: field(more.order)?,
            mobility: field(if has_type { "migratetype" } else { "" })?,
            // No more than a hint, which older kernels lack.
            refill: format.field("percpu_refill").cloned(),
            numbers: [
                first?,
                second.unwrap_or(Found::Nothing),
                third.unwrap_or(Found::Nothing),
            ],
        })
    }

    /// Decodes an event; `None` if it is inconsistent.
    pub(super) fn body(&self, types: &TypeNumbers, data: &[u8]) -> Option<Body> {
        let number = |field: &Option<Field>| match field {
            Some(field) => field.unsigned(data),
            None => Some(0),
        };
        let frame = number(&self.frame)?;
        let order = match &self.order {
            Some(field) => super::decode::order(field, data),
            None => Some(Order::ZERO),
        };
        let mobility = || types.get(self.mobility.as_ref()?.signed(data)?);
        let what = match self.becomes {
            Becomes::Taken => What::Taken {
                mobility: mobility()?,
                refill: number(&self.refill)? != 0,
            },
            Becomes::Drained => What::Drained {
                mobility: mobility()?,
            },
            Becomes::Batched => What::Batched,
            Becomes::Step(step) => {
                let [first, second, third] = &self.numbers;
                let numbers = [
                    first.number(data)?,
                    second.number(data)?,
                    third.number(data)?,
                ];
                What::Step { step, numbers }
            }
        };
        // kswapd and kcompactd may be asked for an order beyond the largest, or for none.
        let order = match what {
            What::Step { .. } => order.unwrap_or(Order::MAX),
            _ => order?,
        };
        Some(Body::Page { frame, order, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_recorded_with_the_numbers_that_it_is_said_to_have() {
        for step in Step::ALL {
            let events = ALL
                .iter()
                .filter(|more| more.becomes == Becomes::Step(step));
            let events: Vec<&More> = events.collect();
            assert_eq!(events.len(), 1, "{step:?}");
            for (number, name) in events[0].numbers.into_iter().zip(step.numbers()) {
                assert_eq!(number == Number::Nothing, name.is_empty(), "{step:?}");
            }
        }
    }
}
