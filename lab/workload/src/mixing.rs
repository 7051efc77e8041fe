//! Which page blocks hold pages of more than one mobility: what pagetypeinfo hides, and what
//! decides whether huge pages can be had.

use brickyard::{Frame, Mobility, Order};

/// What one page block holds, in frames, by mobility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// By place in [`Mobility::ALL`].
    pub frames: [u32; 3],
}

impl Held {
    /// More than one mobility?
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.frames.iter().filter(|&&frames| frames > 0).count() > 1
    }

    /// Nothing at all?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames == [0; 3]
    }

    /// The mobility that most of it has; of two with as much, the movable one. None of nothing.
    #[must_use]
    pub fn most(&self) -> Option<Mobility> {
        let of = |mobility| self.frames[place(mobility)];
        let from_movable = [
            Mobility::Unmovable,
            Mobility::Reclaimable,
            Mobility::Movable,
        ];
        let most = from_movable
            .into_iter()
            .max_by_key(|&mobility| of(mobility));
        most.filter(|&mobility| of(mobility) > 0)
    }

    /// Something that cannot be moved?
    #[must_use]
    pub const fn has_unmovable(&self) -> bool {
        self.frames[place(Mobility::Unmovable)] > 0
    }
}

const fn place(mobility: Mobility) -> usize {
    match mobility {
        Mobility::Unmovable => 0,
        Mobility::Movable => 1,
        Mobility::Reclaimable => 2,
    }
}

/// Counts by page block, kept up to date with every block that comes and goes.
#[derive(Debug)]
pub struct Mixing {
    first: usize,
    block_order: u8,
    blocks: Vec<Held>,
    mixed: u64,
    // The mobilities that were there when the block last went from one to two, for whoever asks.
    last: Option<Mixed>,
}

/// A block that has just become mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mixed {
    /// The page block.
    pub block: Frame,
    /// What came.
    pub came: Mobility,
    /// What was there before.
    pub held: Held,
}

impl Mixing {
    pub(crate) fn new(base: Frame, frames: usize, block_order: Order) -> Self {
        let first = base.number() >> block_order.get();
        let end = (base.number() + frames + block_order.frames() - 1) >> block_order.get();
        Self {
            first,
            block_order: block_order.get(),
            blocks: vec![Held::default(); end - first],
            mixed: 0,
            last: None,
        }
    }

    /// How many page blocks hold more than one mobility.
    #[must_use]
    pub const fn mixed(&self) -> u64 {
        self.mixed
    }

    /// All page blocks, with their first frame.
    pub fn blocks(&self) -> impl Iterator<Item = (Frame, &Held)> {
        let first = |i: usize| Frame::new((self.first + i) << self.block_order);
        self.blocks
            .iter()
            .enumerate()
            .map(move |(i, held)| (first(i), held))
    }

    /// The block that the last insertion has mixed, if it has.
    pub(crate) const fn take_last(&mut self) -> Option<Mixed> {
        self.last.take()
    }

    pub(crate) fn add(&mut self, frame: Frame, order: Order, mobility: Mobility) {
        self.each(frame, order, |held, frames| {
            held.frames[place(mobility)] += frames;
        });
    }

    pub(crate) fn remove(&mut self, frame: Frame, order: Order, mobility: Mobility) {
        self.each(frame, order, |held, frames| {
            held.frames[place(mobility)] -= frames;
        });
    }

    fn each(&mut self, frame: Frame, order: Order, change: impl Fn(&mut Held, u32)) {
        let at = (frame.number() >> self.block_order) - self.first;
        let whole = 1_u32 << self.block_order;
        let (count, frames) = match order.get().checked_sub(self.block_order) {
            Some(above) => (1 << above, whole),
            None => (1, order.frames() as u32),
        };
        for held in &mut self.blocks[at..at + count] {
            let before = *held;
            change(held, frames);
            match (before.is_mixed(), held.is_mixed()) {
                (false, true) => {
                    self.mixed += 1;
                    let came = (0..3).find(|&i| before.frames[i] == 0 && held.frames[i] > 0);
                    self.last = came.map(|came| Mixed {
                        block: frame.align_down(Order::new(self.block_order)),
                        came: Mobility::ALL[came],
                        held: before,
                    });
                }
                (true, false) => self.mixed -= 1,
                _ => {}
            }
        }
    }
}
