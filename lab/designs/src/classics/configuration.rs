//! The configurations by name: each rebuilds what one of the source documents proposed, or what it
//! compared it with.
//!
//! Types are chosen at compile time and names at run time; [`Configuration::run`] is where the two
//! meet.

use core::error::Error;
use core::fmt;
use core::mem::MaybeUninit;
use core::str::FromStr;

use brickyard::node::Node;
use brickyard::node::movable::{self, Sizing};
use brickyard::sync::SlotAccess;
use brickyard::{FrameRange, Order, PlanError, Platform, Zone, ZoneKind, ZonePlan};

use crate::classics::bulk::Batch;
use crate::classics::front::{ListSizes, MagazineSizes};
use crate::classics::lab_zone::LabZone;
use crate::classics::lock::LabLock;
use crate::classics::plan::LabPlan;
use crate::classics::plan::Planned;
use crate::classics::{Linux612, Linux618, List2007, Magazine2013, TwoKinds2005, Vanilla};

/// A configuration. The default is [`Configuration::Brickyard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Configuration {
    /// No grouping, per-CPU lists: 2.6 up to 2.6.23.
    Vanilla,
    /// Kernel pages and easily reclaimed pages apart, per-CPU lists (Gorman 2005).
    TwoKinds2005,
    /// Grouping by mobility in page blocks, per-CPU lists (Gorman 2007, list-based; what Linux 3.9
    /// had, and so the baseline of 2013).
    List2007,
    /// A zone for movable pages, no grouping, per-CPU lists (Gorman 2007, zone-based).
    Zone2007,
    /// A zone for movable pages, and grouping (Gorman 2007, both).
    Combined2007,
    /// Grouping, and magazines in place of per-CPU lists (Gorman 2013).
    Magazine2013,
    /// Linux 6.12: page sets that tune themselves, page blocks claimed or stolen from.
    Linux612,
    /// Linux 6.18, where it differs.
    Linux618,
    /// A lock-free bitmap store and a stash per CPU.
    #[default]
    Brickyard,
}

impl Configuration {
    /// All configurations, oldest first.
    pub const ALL: [Self; 9] = [
        Self::Vanilla,
        Self::TwoKinds2005,
        Self::List2007,
        Self::Zone2007,
        Self::Combined2007,
        Self::Magazine2013,
        Self::Linux612,
        Self::Linux618,
        Self::Brickyard,
    ];

    /// Returns its name, as [`FromStr`] reads it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vanilla => "vanilla",
            Self::TwoKinds2005 => "two-kinds-2005",
            Self::List2007 => "list-2007",
            Self::Zone2007 => "zone-2007",
            Self::Combined2007 => "combined-2007",
            Self::Magazine2013 => "magazine-2013",
            Self::Linux612 => "linux-6.12",
            Self::Linux618 => "linux-6.18",
            Self::Brickyard => "brickyard",
        }
    }

    /// Returns a one-line description.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Vanilla => "no grouping, per-CPU lists (Linux 2.6 up to 2.6.23)",
            Self::TwoKinds2005 => "two kinds of page apart, per-CPU lists (Gorman 2005)",
            Self::List2007 => "page blocks by mobility, per-CPU lists (Gorman 2007; Linux 3.9)",
            Self::Zone2007 => "a zone for movable pages, per-CPU lists (Gorman 2007)",
            Self::Combined2007 => "page blocks and a zone for movable pages (Gorman 2007)",
            Self::Magazine2013 => "page blocks, split magazines (Gorman 2013)",
            Self::Linux612 => "page sets that tune themselves, claims and thefts (Linux 6.12)",
            Self::Linux618 => "the same with the rules of Linux 6.18",
            Self::Brickyard => "a lock-free bitmap store, a stash per CPU (the default)",
        }
    }

    /// Returns true if it has a zone for movable pages.
    #[must_use]
    pub const fn has_movable_zone(self) -> bool {
        matches!(self, Self::Zone2007 | Self::Combined2007)
    }

    /// The order above which a kernel of 2005 to 2013 with this design drained all per-CPU caches
    /// after direct reclaim; `None` if it never did. The patches of 2005 did above order 3, those
    /// of 2007 above 0, the kernels that they were compared with not at all. The patches of 2013
    /// drained magazines after direct compaction, so above 0. `brickyard` has no kernel of its own;
    /// our choice is above 0, since its caches hold more.
    #[must_use]
    pub const fn drains_above(self) -> Option<Order> {
        match self {
            Self::Vanilla | Self::Zone2007 => None,
            Self::TwoKinds2005 => Some(Order::new(3)),
            _ => Some(Order::ZERO),
        }
    }

    /// Whether it can hold the zone lock for less than a bulk, and so has every
    /// [`BulkPolicy`](super::bulk::BulkPolicy). The later kernels always hold it for the bulk, and
    /// `brickyard` has no such lock.
    #[must_use]
    pub const fn has_bulk_policies(self) -> bool {
        !matches!(self, Self::Linux612 | Self::Linux618 | Self::Brickyard)
    }

    /// Whether it has Linux's test of a zone until 4.3, by the frames in blocks of each order up to
    /// the one requested. The others test, as Linux has since, whether there is a block of it.
    #[must_use]
    pub const fn tests_each_order(self) -> bool {
        !matches!(self, Self::Linux612 | Self::Linux618 | Self::Brickyard)
    }

    /// Calls `choice` with the design of this configuration as a type.
    ///
    /// `A` is the access to per-CPU lists and stashes, `L` the lock of zones and magazines. A
    /// configuration with a zone for movable pages has the same design as the one without; the
    /// builder adds the zone, see [`Configuration::has_movable_zone`] and [`MachinePlan::zones`].
    pub fn choose<'m, A: SlotAccess, L: LabLock, P: Platform, C: Choice<'m, P>>(
        self,
        choice: C,
    ) -> C::Output {
        match self {
            Self::Vanilla | Self::Zone2007 => choice.run::<Vanilla<'m, P, A, L>>(),
            Self::TwoKinds2005 => choice.run::<TwoKinds2005<'m, P, A, L>>(),
            Self::List2007 | Self::Combined2007 => choice.run::<List2007<'m, P, A, L>>(),
            Self::Magazine2013 => choice.run::<Magazine2013<'m, P, L>>(),
            Self::Linux612 => choice.run::<Linux612<'m, P, A, L>>(),
            Self::Linux618 => choice.run::<Linux618<'m, P, A, L>>(),
            Self::Brickyard => choice.run::<Zone<'m, P, A>>(),
        }
    }

    /// Returns the bytes of metadata that [`Configuration::run`] needs for `plan`.
    ///
    /// # Panics
    /// If [`Configuration::checked_bytes`] returns an error.
    #[must_use]
    pub fn bytes<A: SlotAccess, L: LabLock, P: Platform>(self, plan: &MachinePlan) -> usize {
        match self.checked_bytes::<A, L, P>(plan) {
            Ok(bytes) => bytes,
            Err(why) => why.refuse(),
        }
    }

    /// Returns the bytes of metadata that [`Configuration::run`] needs, for a plan that may be too
    /// large.
    ///
    /// # Errors
    /// [`PlanError`], if the plan exceeds a limit of a zone.
    pub fn checked_bytes<A: SlotAccess, L: LabLock, P: Platform>(
        self,
        plan: &MachinePlan,
    ) -> Result<usize, PlanError> {
        let (first, second) = plan.zones(self);
        core::iter::once(first)
            .chain(second)
            .try_fold(0_usize, |sum, zone| {
                let bytes = self.checked_zone_bytes::<A, L, P>(&zone)?;
                sum.checked_add(bytes).ok_or(PlanError::TooManyBytes)
            })
    }

    /// Returns the bytes of metadata that one zone of this configuration needs.
    ///
    /// # Panics
    /// If [`Configuration::checked_zone_bytes`] returns an error.
    #[must_use]
    pub fn zone_bytes<A: SlotAccess, L: LabLock, P: Platform>(self, plan: &LabPlan) -> usize {
        match self.checked_zone_bytes::<A, L, P>(plan) {
            Ok(bytes) => bytes,
            Err(why) => why.refuse(),
        }
    }

    /// Returns the bytes of metadata that one zone needs, for a plan that may be too large.
    ///
    /// # Errors
    /// [`PlanError`], if the plan exceeds a limit of a zone.
    pub fn checked_zone_bytes<A: SlotAccess, L: LabLock, P: Platform>(
        self,
        plan: &LabPlan,
    ) -> Result<usize, PlanError> {
        self.choose::<A, L, P, _>(Bytes(plan))
    }

    /// Builds a node of this configuration in `memory`, with all frames of the plan's span free,
    /// and hands it to `experiment`.
    ///
    /// Per-CPU lists are reached by `A`, zones (and magazines) locked by `L`.
    ///
    /// # Errors
    /// The errors of [`Configuration::checked_bytes`]; [`PlanError::TooLittleMemory`] if `memory`
    /// is shorter than that; the other errors of [building a zone](Planned::by).
    pub fn run<A: SlotAccess, L: LabLock, P: Platform + Clone, E: Experiment<P>>(
        self,
        plan: &MachinePlan,
        platform: P,
        memory: &mut [MaybeUninit<u8>],
        experiment: E,
    ) -> Result<E::Output, PlanError> {
        self.choose::<A, L, P, _>(Build {
            zones: plan.zones(self),
            platform,
            memory,
            experiment,
        })
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of a name that no configuration has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownConfiguration;

impl fmt::Display for UnknownConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown configuration; there are")?;
        for (i, configuration) in Configuration::ALL.into_iter().enumerate() {
            write!(f, "{} {configuration}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Error for UnknownConfiguration {}

impl FromStr for Configuration {
    type Err = UnknownConfiguration;

    fn from_str(name: &str) -> Result<Self, UnknownConfiguration> {
        Self::ALL
            .into_iter()
            .find(|configuration| configuration.name() == name)
            .ok_or(UnknownConfiguration)
    }
}

/// The machine that a configuration is built on: one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachinePlan {
    /// The plan of all its memory as one zone.
    pub whole: LabPlan,
    /// The size of the zone for movable pages, where the configuration has one.
    pub sizing: Sizing,
}

impl MachinePlan {
    /// Returns a machine with memory at `span`. Where the configuration has a zone for movable
    /// pages, it gets half.
    #[must_use]
    pub const fn new(span: FrameRange, cpus: usize) -> Self {
        Self {
            whole: LabPlan::new(ZoneKind::Normal, span, cpus),
            sizing: Sizing::KernelCorePercent(50),
        }
    }

    /// Returns a machine of 600 frames with caches of a few frames, which overflow after a few
    /// requests.
    #[must_use]
    pub fn small(cpus: usize) -> Self {
        let mut machine = Self::new(FrameRange::new(5, 605), cpus);
        machine.sizing = Sizing::KernelCorePercent(60);
        machine.whole.max_order = Order::new(6);
        machine.whole.page_block_order = Order::new(4);
        machine.whole.lists = ListSizes { batch: 3, high: 8 };
        machine.whole.magazine = MagazineSizes {
            limit: 12,
            refill: Batch { least: 2, most: 7 },
            drain: Batch { least: 1, most: 5 },
        };
        machine
    }

    /// Returns the zones that a configuration divides it into: one, and where it has one, a second
    /// for movable pages.
    #[must_use]
    pub fn zones(&self, configuration: Configuration) -> (LabPlan, Option<LabPlan>) {
        let span = self.whole.span;
        let mut starts = [None];
        if configuration.has_movable_zone() {
            let node: &[FrameRange] = &[span];
            let max = self.whole.max_order;
            movable::starts(&[node], span.start, self.sizing, max, &mut starts);
        }
        let [Some(start)] = starts else {
            return (self.whole, None);
        };
        let part = |kind, span| LabPlan {
            zone: ZonePlan {
                kind,
                span,
                ..self.whole.zone
            },
            ..self.whole
        };
        let normal = part(self.whole.kind, FrameRange { end: start, ..span });
        let movable = part(ZoneKind::Movable, FrameRange { start, ..span });
        (normal, Some(movable))
    }
}

/// A function generic over the design of a node's zones.
pub trait Experiment<P: Platform> {
    /// The result.
    type Output;

    /// Calls the function.
    fn run<Z: LabZone<Platform = P>>(self, node: &Node<'_, Z>) -> Self::Output;
}

/// A function generic over the design that a [configuration](Configuration::choose) has.
pub trait Choice<'m, P: Platform> {
    /// The result.
    type Output;

    /// Calls the function.
    fn run<Z: Planned<'m, Platform = P>>(self) -> Self::Output;
}

/// Computes the bytes of metadata of one zone.
struct Bytes<'p>(&'p LabPlan);

impl<'m, P: Platform> Choice<'m, P> for Bytes<'_> {
    type Output = Result<usize, PlanError>;

    fn run<Z: Planned<'m, Platform = P>>(self) -> Self::Output {
        Z::checked_bytes_for(self.0)
    }
}

/// Builds the zones, adds all their memory and runs the experiment.
struct Build<'m, P, E> {
    zones: (LabPlan, Option<LabPlan>),
    platform: P,
    memory: &'m mut [MaybeUninit<u8>],
    experiment: E,
}

impl<'m, P: Platform + Clone, E: Experiment<P>> Choice<'m, P> for Build<'m, P, E> {
    type Output = Result<E::Output, PlanError>;

    fn run<Z: Planned<'m, Platform = P>>(self) -> Self::Output {
        let filled = |plan: &LabPlan, memory| {
            let zone = Z::by(plan, self.platform.clone(), memory)?;
            // The span is the zone's own, so it cannot be refused.
            let added = zone.add(plan.span);
            debug_assert_eq!(added, Ok(plan.span.len()));
            Ok(zone)
        };
        let (first, second) = self.zones;
        let cut = Z::checked_bytes_for(&first)?.min(self.memory.len());
        let (low, high) = self.memory.split_at_mut(cut);
        let low = filled(&first, low)?;
        match second {
            None => Ok(self.experiment.run(&Node::new(0, &[low]))),
            Some(second) => {
                let zones = [low, filled(&second, high)?];
                Ok(self.experiment.run(&Node::new(0, &zones)))
            }
        }
    }
}
