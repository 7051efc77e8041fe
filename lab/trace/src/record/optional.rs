//! Events beyond those of the page allocator's users, in groups that can be left out: what moves
//! between a zone and the lists of CPUs, and the steps of compaction and reclaim.

use brickyard::Order;

use super::decode::TypeNumbers;
use super::format::{Field, Format};
use super::row::Body;
use brickyard_run::named;

use crate::{Step, What};

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
pub(super) struct OptionalEvent {
    pub(super) event: &'static str,
    group: Group,
    becomes: Becomes,
    /// The field with the event's frame; `-` if it has none.
    frame: &'static str,
    /// The field with the order; `-` if it has none.
    order: &'static str,
    /// The numbers of a step. The first is needed; a kernel may lack the others.
    numbers: [Number; 3],
}

/// All of them, the most frequent first, a line each: the event, its group, what it becomes, the
/// fields with its frame and its order, and the numbers of a step. `-` is none; `from..to` the
/// second field less the first, `new|old` a field under its name until Linux 5.7, and `nid+idx` the
/// place of a zone.
const ALL: &str = include_str!("events.txt");

/// Parses [`ALL`], of which a test shows that no line is left out.
fn all() -> impl Iterator<Item = OptionalEvent> {
    ALL.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let mut next = || words.next();
        Some(OptionalEvent {
            event: next()?,
            group: next().and_then(|name| name.parse().ok())?,
            becomes: match next()? {
                "taken" => Becomes::Taken,
                "drained" => Becomes::Drained,
                "batched" => Becomes::Batched,
                step => Becomes::Step(step.parse().ok()?),
            },
            frame: next()?,
            order: next()?,
            numbers: [next()?, next()?, next()?].map(number),
        })
    })
}

fn number(text: &'static str) -> Number {
    match (text, text.split_once(".."), text.split_once('|')) {
        ("-", ..) => Number::Nothing,
        ("nid+idx", ..) => Number::Place,
        (_, Some((from, to)), _) => Number::From(from, to),
        (_, _, Some((new, old))) => Number::Renamed(new, old),
        _ => Number::Of(text),
    }
}

impl OptionalEvent {
    /// Returns the events of these groups.
    pub(super) fn of<'g>(groups: &'g [Group]) -> impl Iterator<Item = Self> + use<'g> {
        all().filter(|more| groups.contains(&more.group))
    }

    /// Returns the event of this name, without its system.
    fn named(name: &str) -> Option<Self> {
        let own = |more: &Self| more.event.rsplit('/').next() == Some(name);
        all().find(own)
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
        let more = OptionalEvent::named(&format.name)?;
        let field = |name: &str| match name {
            "-" => Some(None),
            _ => format.field(name).cloned().map(Some),
        };
        let has_type = matches!(more.becomes, Becomes::Taken | Becomes::Drained);
        let [first, second, third] = more.numbers.map(|number| Found::of(number, format));
        Some(Self {
            id: format.id,
            becomes: more.becomes,
            frame: field(more.frame)?,
            order: field(more.order)?,
            mobility: field(if has_type { "migratetype" } else { "-" })?,
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
        assert_eq!(all().count(), ALL.lines().count());
        for step in Step::ALL {
            let events = all().filter(|more| more.becomes == Becomes::Step(step));
            let events: Vec<OptionalEvent> = events.collect();
            assert_eq!(events.len(), 1, "{step:?}");
            for (number, name) in events[0].numbers.into_iter().zip(step.numbers()) {
                assert_eq!(number == Number::Nothing, name.is_empty(), "{step:?}");
            }
        }
    }
}
