//! The ownership oracle: threads claim every frame they get, so that a frame handed out twice is
//! detected at that moment.
//!
//! Each frame has a word. A thread that gets a block changes the word of each of its frames from 0
//! to its own number by a compare-and-swap, and back before it frees them. Of two owners of one
//! frame only one can succeed.

use core::slice;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, FrameRange, FreeError, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;

use crate::tally::{on_threads, tally};

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of threads.
    pub threads: u32,
    /// Requests and frees of each thread.
    pub operations: u64,
    /// The highest order requested.
    pub max_order: Order,
    /// The most frames that a thread holds. As many again, for all threads together, may be in
    /// transit between threads.
    pub held_frames: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

tally! {
    /// What the threads did.
    pub struct Outcome: u64 {
        /// Requests served.
        served,
        /// Requests for single frames that were refused.
        singles_refused,
        /// Requests for more that were refused.
        others_refused,
        /// Blocks freed by another thread than the one that allocated them.
        freed_elsewhere,
    }
}

/// Runs threads on `node` that allocate, free whole blocks and parts of them, hand blocks to each
/// other, use batches and drain.
///
/// At the end everything is freed and every invariant is checked.
///
/// # Panics
/// If a frame is handed out twice or is outside the zones, a good free is refused, or an invariant
/// does not hold.
pub fn run<Z: LabZone>(node: &Node<'_, Z>, plan: &Plan) -> Outcome {
    let oracle = Oracle::new(node);
    let free_before = oracle.free_frames();
    let outcome = on_threads(1..plan.threads + 1, |number| {
        let mut worker = Worker::new(&oracle, plan, number);
        worker.work();
        worker.outcome
    });
    oracle.free_what_was_handed_over();
    if let Err(violation) = oracle.nodes.check() {
        panic!("after all threads ended: {violation}");
    }
    assert_eq!(oracle.free_frames(), free_before, "frames were lost");
    outcome
}

/// The words of all frames, and the blocks in transit between threads.
struct Oracle<'n, Z: LabZone> {
    nodes: Nodes<'n, Z>,
    span: FrameRange,
    owners: Vec<AtomicU32>,
    handed_over: Mutex<VecDeque<(Frame, Order, u32)>>,
}

impl<'n, Z: LabZone> Oracle<'n, Z> {
    fn new(node: &'n Node<'n, Z>) -> Self {
        let spans: Vec<FrameRange> = node.zones().iter().map(|zone| zone.span()).collect();
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            panic!("a machine has zones");
        };
        let span = FrameRange {
            start: first.start,
            end: last.end,
        };
        Self {
            nodes: Nodes::new(slice::from_ref(node)),
            span,
            owners: (0..span.len()).map(|_| AtomicU32::new(0)).collect(),
            handed_over: Mutex::new(VecDeque::new()),
        }
    }

    fn free_frames(&self) -> usize {
        let zones = self.nodes.zones();
        zones
            .map(|zone| zone.free_frames() + zone.cached_frames())
            .sum()
    }

    fn turn(&self, frame: Frame, order: Order, from: u32, to: u32) {
        for frame in FrameRange::of_block(frame, order).frames() {
            assert!(
                self.span.contains(frame),
                "{frame} is no frame of this machine"
            );
            let owner = &self.owners[frame.number() - self.span.start.number()];
            // Acquire and release: the next owner of a frame sees all that was done with it.
            let turned = owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
            if let Err(owner) = turned {
                panic!("{frame} should go from owner {from} to {to}, but is owned by {owner}");
            }
        }
    }

    fn free_what_was_handed_over(&self) {
        let blocks = self
            .handed_over
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for &(frame, order, owner) in blocks.iter() {
            self.turn(frame, order, owner, 0);
            assert_eq!(self.nodes.free(frame, order), Ok(()));
        }
    }
}

/// One thread.
struct Worker<'o, 'n, Z: LabZone> {
    oracle: &'o Oracle<'n, Z>,
    plan: &'o Plan,
    number: u32,
    dice: u64,
    blocks: Vec<(Frame, Order)>,
    held: usize,
    outcome: Outcome,
}

impl<'o, 'n, Z: LabZone> Worker<'o, 'n, Z> {
    fn new(oracle: &'o Oracle<'n, Z>, plan: &'o Plan, number: u32) -> Self {
        Self {
            oracle,
            plan,
            number,
            dice: plan.seed ^ (u64::from(number) << 32 | 0x9e37_79b9),
            blocks: Vec::new(),
            held: 0,
            outcome: Outcome::default(),
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) % sides
    }

    fn work(&mut self) {
        for _ in 0..self.plan.operations {
            match self.roll(1000) {
                0 => {
                    self.oracle.nodes.drain();
                }
                1..=19 => self.hand_over(),
                20..=39 => self.take_over(),
                40..=69 => self.alloc_bulk(),
                70..=99 => self.free_bulk(),
                100..=129 => self.free_part(),
                _ if self.roll(2) == 0 => self.alloc(),
                _ => self.free(),
            }
        }
        while !self.blocks.is_empty() {
            self.free();
        }
        // So that frames in exclusive slots are back for the final comparison.
        self.oracle.nodes.drain();
    }

    fn mobility(&mut self) -> Mobility {
        Mobility::ALL[self.roll(3) as usize]
    }

    fn alloc(&mut self) {
        let orders = u64::from(self.plan.max_order.get()) + 1;
        // Mostly order 0, sometimes any order.
        let order = if self.roll(2) == 0 {
            0
        } else {
            self.roll(orders) as u8
        };
        let request = Request::new(Order::new(order), self.mobility());
        if self.held + request.order.frames() > self.plan.held_frames {
            return self.free();
        }
        match self.oracle.nodes.alloc(0, &request) {
            Ok(frame) => self.got(frame, request.order),
            Err(_) if order == 0 => self.outcome.singles_refused += 1,
            Err(_) => self.outcome.others_refused += 1,
        }
    }

    fn got(&mut self, frame: Frame, order: Order) {
        assert!(frame.is_aligned(order), "{frame} for order {order}");
        self.oracle.turn(frame, order, 0, self.number);
        self.blocks.push((frame, order));
        self.held += order.frames();
        self.outcome.served += 1;
    }

    fn pick(&mut self) -> Option<(Frame, Order)> {
        if self.blocks.is_empty() {
            return None;
        }
        let place = self.roll(self.blocks.len() as u64) as usize;
        let (frame, order) = self.blocks.swap_remove(place);
        self.held -= order.frames();
        Some((frame, order))
    }

    fn release(&self, frame: Frame, order: Order) {
        self.oracle.turn(frame, order, self.number, 0);
        assert_eq!(
            self.oracle.nodes.free(frame, order),
            Ok(()),
            "{frame}, order {order}"
        );
    }

    fn free(&mut self) {
        if let Some((frame, order)) = self.pick() {
            self.release(frame, order);
        }
    }

    /// Frees the lower half of a block and keeps the upper one. For a single frame, checks that a
    /// free of a larger order is refused.
    fn free_part(&mut self) {
        let Some((frame, order)) = self.pick() else {
            return;
        };
        let Some(half) = order.down() else {
            let wrong = self.oracle.nodes.free(frame, Order::new(1));
            assert!(
                matches!(wrong, Err(FreeError::WrongOrder { .. })),
                "{wrong:?}"
            );
            return self.release(frame, order);
        };
        self.release(frame, half);
        self.blocks.push((frame.plus(half.frames()), half));
        self.held += half.frames();
    }

    fn alloc_bulk(&mut self) {
        let room = self.plan.held_frames.saturating_sub(self.held);
        let count = (self.roll(100) as usize).min(room);
        let mut frames = vec![Frame::new(0); count];
        let request = Request::page(self.mobility());
        let got = self.oracle.nodes.alloc_bulk(0, &request, &mut frames);
        for &frame in &frames[..got.unwrap_or(0)] {
            self.got(frame, Order::ZERO);
        }
    }

    fn free_bulk(&mut self) {
        let singles = |block: &(Frame, Order)| block.1 == Order::ZERO;
        let (singles, rest): (Vec<_>, Vec<_>) = self.blocks.iter().partition(|b| singles(b));
        self.blocks = rest;
        self.held -= singles.len();
        let frames: Vec<Frame> = singles.iter().map(|&(frame, _)| frame).collect();
        for &frame in &frames {
            self.oracle.turn(frame, Order::ZERO, self.number, 0);
        }
        assert_eq!(self.oracle.nodes.free_bulk(&frames), Ok(()));
    }

    fn hand_over(&mut self) {
        let Some((frame, order)) = self.pick() else {
            return;
        };
        let handed_over = self.oracle.handed_over.lock();
        let mut handed_over = handed_over.unwrap_or_else(PoisonError::into_inner);
        let in_transit: usize = handed_over.iter().map(|block| block.1.frames()).sum();
        if in_transit + order.frames() <= self.plan.held_frames {
            handed_over.push_back((frame, order, self.number));
        } else {
            drop(handed_over);
            self.release(frame, order);
        }
    }

    fn take_over(&mut self) {
        let block = {
            let handed_over = self.oracle.handed_over.lock();
            handed_over
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front()
        };
        if let Some((frame, order, owner)) = block {
            self.outcome.freed_elsewhere += u64::from(owner != self.number);
            self.oracle.turn(frame, order, owner, 0);
            assert_eq!(
                self.oracle.nodes.free(frame, order),
                Ok(()),
                "{frame}, order {order}"
            );
        }
    }
}
