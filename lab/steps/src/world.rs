//! A small machine: a zone of seven page blocks and room for an eighth, a second zone that mostly
//! has nothing, their nodes, the slabs, and all that must hold of them at rest.

use core::mem::MaybeUninit;

use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::patience::WAITS_MOST;
use brickyard::sync::SlotAccess;
use brickyard::watermark::{Mark, Marks};
use brickyard::{
    AllocError, AnyZone, Frame, FrameRange, Mobility, Order, Request, Zone, ZoneKind, ZonePlan,
};

use crate::calls::Call;
use crate::machine::{Cpus, Mode, in_interrupt, observe, waits};
use crate::model::{ABSENT, FREE, Model, OTHERS, RESERVED};
use crate::slabs::{self, Objects};

/// The first zone, which has memory in one start only, and the second.
const LOW: FrameRange = FrameRange::new(0, 512);
pub(crate) const SPAN: FrameRange = FrameRange::new(1024, 1024 + 8 * BLOCK);
const BLOCK: usize = 512;

/// Ranges that calls work on, in quarters of page blocks.
pub(crate) const ADDED: FrameRange = quarters(28, 32);
pub(crate) const REMOVED: FrameRange = quarters(4, 8);
pub(crate) const RESERVES: FrameRange = quarters(2, 5);
pub(crate) const WAS_RESERVED: FrameRange = quarters(17, 18);
pub(crate) const ISOLATES: FrameRange = quarters(6, 13);
pub(crate) const WAS_ISOLATED: FrameRange = quarters(1, 3);
/// Holds the range that is isolated in one start.
pub(crate) const RESERVES_WIDE: FrameRange = quarters(0, 6);
pub(crate) const OFFLINE: FrameRange = quarters(12, 16);

const fn quarters(from: usize, to: usize) -> FrameRange {
    let start = SPAN.start.number();
    FrameRange::new(start + from * BLOCK / 4, start + to * BLOCK / 4)
}

/// What each of the first two parties holds at the start, in frames.
const HELD: [usize; 9] = [1, 1, 8, 512, 128, 5, 16, 2, 4];
/// And as many single frames, for bulk frees.
const SINGLES: usize = 40;

pub(crate) type TheZone<'w, A> = Zone<'w, Cpus, A>;

pub(crate) struct World<'w, A: SlotAccess> {
    pub(crate) zones: &'w [TheZone<'w, A>],
    pub(crate) nodes: Nodes<'w, TheZone<'w, A>, &'w Model>,
    pub(crate) model: &'w Model,
    pub(crate) objects: Option<Objects<'w, A>>,
    mode: Mode,
}

/// How much is free at the start, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Everything but what the parties hold.
    Free,
    /// One page block, of which nothing was ever in use.
    OneBlock,
    /// Three frames, in three page blocks.
    Three,
    /// Forty frames, all in the stash of the second CPU.
    Cached,
    /// Everything, with full stashes on both CPUs, which have page blocks on loan.
    Lent,
    /// Everything, and a range that cuts two page blocks is isolated.
    Isolated,
    /// Three frames, and one in the zone that is asked last.
    TwoZones,
    /// Half, and the watermarks forbid to take any of it.
    AtMark,
    /// Only what is set aside for atomic requests, of one page block.
    Aside,
    /// 64 CPUs hold a block of 16 frames each.
    Crowd,
}

impl Start {
    pub(crate) const PAIRED: [Self; 9] = [
        Self::Free,
        Self::OneBlock,
        Self::Three,
        Self::Cached,
        Self::Lent,
        Self::Isolated,
        Self::TwoZones,
        Self::AtMark,
        Self::Aside,
    ];
}

/// Makes a machine, and runs `work` with it.
pub(crate) fn with_world<A: SlotAccess>(
    start: Start,
    mode: Mode,
    slabs: bool,
    work: impl FnOnce(&World<'_, A>),
) {
    observe(0);
    let model = Model::new(SPAN.end.number());
    let plans = [(ZoneKind::Dma32, LOW), (ZoneKind::Normal, SPAN)].map(|(kind, span)| ZonePlan {
        set_aside: brickyard::bitmap::SetAside {
            percent: 20,
            blocks: 1,
        },
        ..ZonePlan::new(kind, span, 2)
    });
    let mut memory = plans.map(|plan| vec![MaybeUninit::uninit(); TheZone::<A>::bytes(&plan)]);
    let [low, high] = &mut memory;
    let zones = [(&plans[0], low), (&plans[1], high)]
        .map(|(plan, memory)| TheZone::<A>::new(plan, Cpus, memory).expect("memory enough"));
    let node = [Node::new(0, &zones)];
    let mut world = World {
        zones: &zones,
        nodes: Nodes::with_hooks(&node, &model, SlowPath::MODERN),
        model: &model,
        objects: None,
        mode,
    };
    world.fill(start);
    let mut room = if slabs {
        slabs::room::<A>()
    } else {
        Vec::new()
    };
    let slabs = slabs.then(|| slabs::over(&zones[1], &mut room));
    world.objects = slabs.as_ref().map(Objects::new);
    work(&world);
}

impl<A: SlotAccess> World<'_, A> {
    /// Returns the zone that calls of zones are made on.
    pub(crate) fn zone(&self) -> &TheZone<'_, A> {
        &self.zones[1]
    }

    fn add(&self, range: FrameRange) {
        let zone = &self.zones[usize::from(SPAN.covers(range))];
        assert_eq!(zone.add(range), Ok(range.len()));
        self.model.turn(range, &[ABSENT], FREE);
    }

    fn fill(&self, start: Start) {
        self.add(FrameRange {
            end: ADDED.start,
            ..SPAN
        });
        assert_eq!(self.zone().reserve(WAS_RESERVED), Ok(WAS_RESERVED.len()));
        self.model.turn(WAS_RESERVED, &[FREE], RESERVED);
        let (parties, lens): (usize, &[usize]) = match start {
            Start::Crowd => (64, &[16]),
            _ => (2, &HELD),
        };
        let request = Request::page(Mobility::Movable);
        for holder in 0..parties {
            observe(holder);
            for &len in lens {
                let range = self.zone().alloc_range(&request, len).expect("plenty");
                self.model.got_by(holder, range);
            }
            if start != Start::Crowd {
                let mut frames = [Frame::new(0); SINGLES];
                assert_eq!(self.zone().alloc_bulk(&request, &mut frames), Ok(SINGLES));
                let frames = frames.map(|frame| FrameRange::at(frame, 1));
                self.model.got_all(holder, &frames);
            }
        }
        if start == Start::TwoZones {
            self.add(LOW);
        }
        self.drain();
        if !matches!(
            start,
            Start::Free | Start::Lent | Start::Isolated | Start::Aside | Start::Crowd
        ) {
            self.fill_up(start);
        }
        match start {
            Start::OneBlock => self.add(ADDED),
            Start::Cached => self.to_stash(1, 40, OTHERS),
            Start::Lent => {
                self.to_stash(0, 1024, OTHERS);
                self.to_stash(1, 1024, OTHERS);
            }
            Start::Isolated => {
                assert_eq!(self.zone().isolate(WAS_ISOLATED), Ok(()));
                self.model.isolate(WAS_ISOLATED);
            }
            Start::Aside => {
                let request = Request::new(Order::new(3), Mobility::Unmovable).atomic();
                let frame = self.zone().alloc_above(&request, Mark::Min);
                let mut taken = vec![FrameRange::of_block(frame.expect("plenty"), request.order)];
                self.drain();
                for order in [9, 5, 3, 0].map(Order::new) {
                    let request = Request::new(order, Mobility::Movable);
                    let blocks = core::iter::from_fn(|| self.zone().alloc_uncached(&request));
                    taken.extend(blocks.map(|frame| FrameRange::of_block(frame, order)));
                }
                self.model.got_all(OTHERS, &taken);
                assert!(self.zone().free_frames() > 300, "nothing is set aside");
            }
            Start::AtMark => {
                self.drain();
                let mark = self.zone().free_frames();
                self.set_marks(mark);
            }
            _ => {}
        }
        observe(0);
    }

    /// Takes all but the frames that `start` leaves.
    fn fill_up(&self, start: Start) {
        let mut frames = vec![Frame::new(0); SPAN.len()];
        let request = Request::page(Mobility::Movable);
        let huge = Request::new(Order::HUGE, Mobility::Movable);
        let frame = self.zone().alloc(&huge).expect("plenty");
        self.model
            .got_by(OTHERS, FrameRange::of_block(frame, huge.order));
        for zone in self.zones.iter().filter(|zone| zone.managed_frames() > 0) {
            let taken = zone.alloc_bulk(&request, &mut frames).expect("something");
            let frames = &mut frames[..taken];
            frames.sort();
            let is_whole = |place: &usize| {
                let last = frames.get(place + BLOCK - 1);
                let start = frames[*place];
                start.is_aligned(Order::HUGE) && last == Some(&start.plus(BLOCK - 1))
            };
            let whole = || (0..taken).find(is_whole).expect("a page block is free");
            let left: Vec<usize> = match start {
                Start::AtMark => (whole()..taken.min(whole() + BLOCK + 100)).collect(),
                Start::Cached | Start::OneBlock => Vec::new(),
                _ if zone.kind() == ZoneKind::Dma32 => vec![9],
                _ => vec![9, taken / 2, taken - 9],
            };
            let (left, kept): (Vec<_>, Vec<_>) = frames
                .iter()
                .enumerate()
                .partition(|(place, _)| left.binary_search(place).is_ok());
            for (_, &frame) in left {
                assert_eq!(zone.free_uncached(frame, Order::ZERO), Ok(()));
            }
            let kept: Vec<_> = kept
                .iter()
                .map(|(_, frame)| FrameRange::at(**frame, 1))
                .collect();
            self.model.got_all(OTHERS, &kept);
        }
        self.drain();
    }

    /// Frees frames on a CPU that has taken them before or, if all is in use, frames of `holder`.
    fn to_stash(&self, cpu: usize, count: usize, holder: usize) {
        observe(cpu);
        let request = Request::page(Mobility::Movable);
        let mut frames = vec![Frame::new(0); count];
        let taken = self.zone().alloc_bulk(&request, &mut frames).unwrap_or(0);
        frames.truncate(taken);
        while frames.len() < count {
            let Some(range) = self.model.free_by(holder, 1) else {
                break;
            };
            frames.push(range.start);
        }
        for frame in frames {
            assert_eq!(self.zone().free(frame, Order::ZERO), Ok(()));
        }
    }

    fn set_marks(&self, mark: usize) {
        let marks = Marks {
            min: mark,
            low: mark,
            high: mark,
        };
        self.zone().watermarks().set(marks, [0; ZoneKind::COUNT]);
    }

    fn drain(&self) {
        for cpu in 0..2 {
            observe(cpu);
            self.nodes.drain();
        }
        observe(0);
    }

    // ---- what calls are made of ----

    /// Makes a call as the running party.
    pub(crate) fn call(&self, call: &Call<A>) {
        self.model.begin(call.in_hand);
        let before = waits();
        (call.make)(self);
        self.model.end();
        // And one after each pass over a range.
        let most = call.requests as u64 * u64::from(WAITS_MOST) + 64;
        assert!(
            waits() - before < most,
            "{} waits in one call",
            waits() - before
        );
    }

    /// Takes a block in one of the ways, and checks a refusal.
    pub(crate) fn take(
        &self,
        mut request: Request,
        by: impl Fn(&Self, &Request) -> Result<Frame, AllocError>,
        way: Way,
    ) {
        if in_interrupt() {
            request.context = brickyard::Context::Interrupt;
        }
        if way == Way::Zone {
            self.model.past_marks.set(true);
        }
        let taken = by(self, &request);
        let (least, most) = self.model.free_meanwhile();
        let mark = match way {
            Way::Zone => 0,
            Way::Nodes => self.zone().watermarks().marks().min,
        };
        match taken {
            Ok(frame) => {
                let ordinary = request.context == brickyard::Context::MaySleep;
                assert!(
                    !ordinary
                        || self.model.past_marks.get()
                        || most >= mark + request.order.frames(),
                    "below the mark of {mark}: at most {most} frames were free"
                );
                self.model.got(FrameRange::of_block(frame, request.order));
            }
            Err(why) => {
                let promised = request.order == Order::ZERO
                    && request.limit.is_none()
                    && request.context == brickyard::Context::MaySleep
                    && (way == Way::Nodes || self.zones[0].managed_frames() == 0)
                    && self.mode.serves_single_frames();
                assert!(
                    !promised || least <= mark,
                    "a frame refused ({why}), though {least} were free all the time"
                );
            }
        }
    }

    // ---- what holds at rest ----

    /// Checks everything, gives everything back, and checks again.
    pub(crate) fn check(&self) {
        self.check_counts();
        self.check_mark();
        if let Some(objects) = &self.objects {
            objects.end();
        }
        let (frames, ranges) = self.model.free_all();
        assert_eq!(self.nodes.free_bulk(&frames), Ok(()));
        for range in ranges {
            assert_eq!(self.nodes.free_range(range), Ok(()), "{range:?}");
        }
        for range in self.model.isolated() {
            self.zone().unisolate(range);
            self.model.unisolate(range);
        }
        let unreserved = self.zone().unreserve(SPAN);
        assert_eq!(unreserved, Ok(self.model.turn(SPAN, &[RESERVED], FREE)));
        self.check_counts();
        // What is free has come together again.
        let whole = (0..SPAN.len() / BLOCK)
            .filter(|block| self.model.is_free(quarters(block * 4, block * 4 + 4)));
        let table = self.zone().free_table();
        let found = Order::HUGE.up_to(Order::DEFAULT_MAX);
        let found = found.map(|order| {
            let blocks: usize = table[order.index()].iter().sum();
            blocks * order.frames() / BLOCK
        });
        assert_eq!(found.sum::<usize>(), whole.count(), "page blocks in pieces");
    }

    /// Compares every count with the oracle, before caches are drained and after.
    fn check_counts(&self) {
        let census = self.nodes.check();
        let census = census.unwrap_or_else(|violation| panic!("{violation}"));
        let objects = self.objects.as_ref().map_or(0, Objects::check);
        let [free, isolated, held] = self.model.counts();
        assert_eq!(census.allocated, held + objects, "frames in use");
        let all = census.free + census.cached + census.isolated;
        assert_eq!(all, free + isolated - objects, "free frames");
        self.drain();
        let sum = |of: fn(&TheZone<'_, A>) -> usize| self.zones.iter().map(of).sum::<usize>();
        assert_eq!(sum(|zone| zone.cached_frames()), 0, "cached after a drain");
        assert_eq!(
            sum(|zone| zone.free_frames()),
            free - objects,
            "the count of free frames"
        );
        let managed = sum(|zone| zone.managed_frames());
        assert_eq!(
            managed,
            free + isolated + held,
            "the count of managed frames"
        );
    }

    /// A page block that would leave one frame less than the mark is refused, whatever the quick
    /// count says.
    fn check_mark(&self) {
        let free = self.zone().free_frames();
        if free < BLOCK {
            return;
        }
        let before = self.zone().watermarks().marks().min;
        self.set_marks(free - BLOCK + 1);
        let request = Request::new(Order::HUGE, Mobility::Movable);
        for mark in [Mark::Low, Mark::Min] {
            let taken = self.zone().alloc_above(&request, mark);
            assert_eq!(taken, None, "{mark:?} does not hold");
        }
        self.set_marks(before);
    }
}

/// Whom a request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The zone, which ignores its marks.
    Zone,
    /// All zones, above their marks.
    Nodes,
}
