//! Page blocks that hold pages of more than one mobility. pagetypeinfo does not show them, and they
//! decide whether huge pages can be allocated.

use brickyard::{Frame, Mobility, Order};

/// The frames in use of a page block, by mobility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockContents {
    /// The frames, by index in [`Mobility::ALL`].
    pub frames: [u32; 3],
}

impl BlockContents {
    /// Returns true if the block has frames of more than one mobility in use.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.frames.iter().filter(|&&frames| frames > 0).count() > 1
    }

    /// Returns true if the block has no frame in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames == [0; 3]
    }

    /// Returns the mobility with the most frames; in a tie the more movable one. `None` if the
    /// block has no frame in use.
    #[must_use]
    pub fn majority(&self) -> Option<Mobility> {
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
}

const fn place(mobility: Mobility) -> usize {
    match mobility {
        Mobility::Unmovable => 0,
        Mobility::Movable => 1,
        Mobility::Reclaimable => 2,
    }
}

/// Counts of each page block, updated with every allocation and free.
#[derive(Debug)]
pub struct Mixing {
    first: usize,
    block_order: u8,
    blocks: Vec<BlockContents>,
    mixed: u64,
    // The last page block that became mixed, until it is taken.
    last: Option<Mixed>,
}

/// A page block that has just become mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mixed {
    /// The first frame of the page block.
    pub block: Frame,
    /// The mobility of the allocation that mixed it.
    pub newcomer: Mobility,
    /// Its contents before.
    pub contents: BlockContents,
}

impl Mixing {
    pub(crate) fn new(base: Frame, frames: usize, block_order: Order) -> Self {
        let first = base.number() >> block_order.get();
        let end = (base.number() + frames + block_order.frames() - 1) >> block_order.get();
        Self {
            first,
            block_order: block_order.get(),
            blocks: vec![BlockContents::default(); end - first],
            mixed: 0,
            last: None,
        }
    }

    /// The number of page blocks that hold more than one mobility.
    #[must_use]
    pub const fn mixed(&self) -> u64 {
        self.mixed
    }

    /// All page blocks, with their first frames.
    pub fn blocks(&self) -> impl Iterator<Item = (Frame, &BlockContents)> {
        let first = |i: usize| Frame::new((self.first + i) << self.block_order);
        self.blocks
            .iter()
            .enumerate()
            .map(move |(i, held)| (first(i), held))
    }

    /// Takes the last page block that became mixed, if one has since the call before.
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

    fn each(&mut self, frame: Frame, order: Order, change: impl Fn(&mut BlockContents, u32)) {
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
                        newcomer: Mobility::ALL[came],
                        contents: before,
                    });
                }
                (true, false) => self.mixed -= 1,
                _ => {}
            }
        }
    }
}
