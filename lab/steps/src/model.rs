//! Who holds what, as the parties know it: the oracle.
//!
//! Frames change hands here when a call that takes them has returned, and when one that frees them
//! begins. What calls have in hand in between is known by its size only. So two numbers are known
//! of each party at any time: the least and the most frames that were free since its call began.

use core::cell::{Cell, RefCell};

use brickyard::pressure::{Migrate, Migration, Need, Reclaim};
use brickyard::{Frame, FrameRange, Order};

use crate::machine::{PARTIES, party};

/// What a frame is, if no party holds it: those are the parties' own numbers.
pub(crate) const FREE: u8 = 255;
pub(crate) const RESERVED: u8 = 254;
pub(crate) const ABSENT: u8 = 253;
/// Holds what keeps memory scarce.
pub(crate) const OTHERS: usize = PARTIES;

/// A call under way.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    in_hand: usize,
    least: usize,
    most: usize,
}

pub(crate) struct Model {
    frames: Vec<Cell<u8>>,
    held: Vec<RefCell<Vec<FrameRange>>>,
    isolated: RefCell<Vec<FrameRange>>,
    windows: RefCell<[Window; PARTIES]>,
    free: Cell<usize>,
    /// Whether a call that no mark stops may have filled a stash.
    pub(crate) past_marks: Cell<bool>,
}

impl Model {
    pub(crate) fn new(frames: usize) -> Self {
        Self {
            frames: vec![Cell::new(ABSENT); frames],
            held: vec![RefCell::new(Vec::new()); PARTIES + 1],
            isolated: RefCell::default(),
            windows: RefCell::new([Window::default(); PARTIES]),
            free: Cell::new(0),
            past_marks: Cell::new(false),
        }
    }

    /// Returns true if all of `range` is free.
    pub(crate) fn is_free(&self, range: FrameRange) -> bool {
        let mut frames = range.frames();
        frames.all(|frame| self.frames[frame.number()].get() == FREE)
    }

    /// Returns how many frames are free outside all isolated ranges, free inside one, and held.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let [free, isolated] = self.available();
        let held = self.held.iter().flat_map(|held| held.borrow().clone());
        let held = held.map(|range| range.len()).sum();
        [free, isolated, held]
    }

    /// Returns how many frames are free outside all isolated ranges, and inside one.
    fn available(&self) -> [usize; 2] {
        let ranges = self.isolated.borrow();
        let isolated = ranges.iter().flat_map(|range| range.frames());
        let isolated = isolated.filter(|frame| self.frames[frame.number()].get() == FREE);
        let isolated = isolated.count();
        [self.free.get() - isolated, isolated]
    }

    /// Turns all frames of `range` that are one of `from` into `to`; others must not be in use.
    /// Returns how many.
    pub(crate) fn turn(&self, range: FrameRange, from: &[u8], to: u8) -> usize {
        let turned = self.turn_quietly(range, from, to);
        self.recount();
        turned
    }

    /// Memory of `range` that was `from` becomes free; other frames stay as they are.
    pub(crate) fn appears(&self, range: FrameRange, from: u8) {
        for frame in range.frames() {
            if self.frames[frame.number()].get() == from {
                self.turn_quietly(FrameRange::at(frame, 1), &[from], FREE);
            }
        }
        self.recount();
    }

    /// What has [appeared](Self::appears) did not become memory.
    pub(crate) fn disappears(&self, range: FrameRange, to: u8) {
        self.turn(range, &[FREE], to);
    }

    fn turn_quietly(&self, range: FrameRange, from: &[u8], to: u8) -> usize {
        let mut turned = 0;
        let mut free = self.free.get();
        for frame in range.frames() {
            let cell = &self.frames[frame.number()];
            let was = cell.get();
            if from.contains(&was) {
                cell.set(to);
                turned += 1;
                free = free + usize::from(to == FREE) - usize::from(was == FREE);
            } else {
                let stays = was >= ABSENT && to >= ABSENT;
                assert!(stays, "frame {frame} is {was}, and becomes {to}");
            }
        }
        self.free.set(free);
        turned
    }

    /// A call has handed `range` to the running party.
    pub(crate) fn got(&self, range: FrameRange) {
        self.got_by(party(), range);
    }

    pub(crate) fn got_by(&self, holder: usize, range: FrameRange) {
        self.got_all(holder, &[range]);
    }

    /// Calls have handed `ranges` to `holder`.
    pub(crate) fn got_all(&self, holder: usize, ranges: &[FrameRange]) {
        for range in ranges {
            assert!(!range.is_empty(), "nothing was handed out");
            let turned = self.turn_quietly(*range, &[FREE], holder as u8);
            assert_eq!(turned, range.len(), "handed out twice");
        }
        self.held[holder].borrow_mut().extend(ranges);
        self.recount();
    }

    /// Takes a range of `len` frames from what the running party holds, to be freed by it.
    pub(crate) fn free(&self, len: usize) -> Option<FrameRange> {
        self.free_by(party(), len)
    }

    pub(crate) fn free_by(&self, holder: usize, len: usize) -> Option<FrameRange> {
        let range = {
            let mut held = self.held[holder].borrow_mut();
            let place = held.iter().position(|range| range.len() == len)?;
            held.remove(place)
        };
        self.turn(range, &[holder as u8], FREE);
        Some(range)
    }

    /// Gives up all that is held: the single frames, and the rest.
    pub(crate) fn free_all(&self) -> (Vec<Frame>, Vec<FrameRange>) {
        let (mut frames, mut ranges) = (Vec::new(), Vec::new());
        for (holder, held) in self.held.iter().enumerate() {
            for range in held.take() {
                self.turn_quietly(range, &[holder as u8], FREE);
                match range.len() {
                    1 => frames.push(range.start),
                    _ => ranges.push(range),
                }
            }
        }
        (frames, ranges)
    }

    pub(crate) fn isolate(&self, range: FrameRange) {
        self.isolated.borrow_mut().push(range);
        self.recount();
    }

    pub(crate) fn unisolate(&self, range: FrameRange) {
        self.isolated.borrow_mut().retain(|other| *other != range);
        self.recount();
    }

    pub(crate) fn isolated(&self) -> Vec<FrameRange> {
        self.isolated.borrow().clone()
    }

    /// A call of the running party begins, which has up to `in_hand` frames in hand.
    pub(crate) fn begin(&self, in_hand: usize) {
        self.windows.borrow_mut()[party()] = Window {
            in_hand,
            least: usize::MAX,
            most: 0,
        };
        self.recount();
    }

    pub(crate) fn end(&self) {
        self.windows.borrow_mut()[party()].in_hand = 0;
    }

    /// Returns the least and the most frames that were free since the running party's call began.
    pub(crate) fn free_meanwhile(&self) -> (usize, usize) {
        let window = self.windows.borrow()[party()];
        (window.least, window.most)
    }

    fn recount(&self) {
        let [free, ..] = self.available();
        let mut windows = self.windows.borrow_mut();
        let in_hand: usize = windows.iter().map(|window| window.in_hand).sum();
        for window in windows.iter_mut() {
            let others = in_hand - window.in_hand;
            window.least = window.least.min(free.saturating_sub(others));
            window.most = window.most.max(free);
        }
    }
}

impl Reclaim for Model {
    fn reclaims(&self) -> bool {
        false
    }

    fn reclaim(&self, _need: &Need) -> usize {
        0
    }
}

impl Migrate for Model {
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        let (from, to) = (
            FrameRange::of_block(from, order),
            FrameRange::of_block(to, order),
        );
        let holder = self.frames[from.start.number()].get();
        if holder >= ABSENT {
            return Migration::Unknown;
        }
        {
            let mut held = self.held[usize::from(holder)].borrow_mut();
            let Some(range) = held.iter_mut().find(|range| **range == from) else {
                return Migration::Unknown;
            };
            *range = to;
        }
        assert_eq!(self.turn(to, &[FREE], holder), to.len(), "handed out twice");
        self.turn(from, &[holder], FREE);
        Migration::Moved
    }
}
