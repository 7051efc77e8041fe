//! The oracle: one word for each frame that says who owns it, apart from all that the zone knows.
//!
//! Whoever gets a frame changes its word from 0 to its own by a compare-and-swap, and back before
//! the frame is freed. Of two owners of one frame only one can succeed, and the other one's report
//! names both.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use brickyard::sync::{AtomicU64, place};
use brickyard::{Frame, FrameRange, Order};

use crate::{By, Finding, Owner};

/// The places where blocks change hands.
const EXCHANGE: usize = 64;

/// Who owns each frame of a span. All CPUs share one.
#[derive(Debug)]
pub struct Oracle<'m> {
    span: FrameRange,
    owners: &'m [AtomicU64],
    exchange: [AtomicU64; EXCHANGE],
    numbers: AtomicU64,
    stopped: AtomicU64,
}

impl<'m> Oracle<'m> {
    /// Returns the bytes of memory that an oracle over `span` needs, at any address.
    #[must_use]
    pub const fn bytes(span: FrameRange) -> usize {
        span.len() * size_of::<AtomicU64>() + align_of::<AtomicU64>() - 1
    }

    /// Returns an oracle over `span`, by which nobody owns anything.
    ///
    /// # Errors
    /// [`Finding::TooLittleMemory`].
    pub fn new(span: FrameRange, memory: &'m mut [MaybeUninit<u8>]) -> Result<Self, Finding> {
        let too_little = Finding::TooLittleMemory {
            supplied: memory.len(),
            needed: Self::bytes(span),
        };
        let (owners, _) = place(memory, span.len(), || AtomicU64::new(0)).ok_or(too_little)?;
        Ok(Self {
            span,
            owners,
            exchange: [const { AtomicU64::new(0) }; EXCHANGE],
            numbers: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
        })
    }

    /// Returns the span that the oracle knows of.
    #[must_use]
    pub const fn span(&self) -> FrameRange {
        self.span
    }

    /// Returns an owner unlike all others.
    #[must_use]
    pub fn new_owner(&self, order: Order, by: By, cpu: usize, task: u16) -> Owner {
        // Relaxed: only that each number is had once matters.
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        Owner::new(number as u32, order, by, cpu, task)
    }

    /// Returns true if somebody has found something: all stop then.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        // Relaxed: it is noticed soon.
        self.stopped.load(Ordering::Relaxed) != 0
    }

    /// Makes all workers stop.
    pub fn stop(&self) {
        // Relaxed: as above.
        self.stopped.store(1, Ordering::Relaxed);
    }

    fn word(&self, frame: Frame) -> Result<&AtomicU64, Finding> {
        let span = self.span;
        frame
            .number()
            .checked_sub(span.start.number())
            .and_then(|place| self.owners.get(place))
            .ok_or(Finding::OutsideSpan { frame, span })
    }

    /// Returns the owner of a frame.
    #[must_use]
    pub fn owner_of(&self, frame: Frame) -> Option<Owner> {
        // Relaxed: for a frame of the caller's own, or a hint.
        let word = self.word(frame).ok()?.load(Ordering::Relaxed);
        Owner::from_word(word)
    }

    /// Makes `owner` the owner of a block that the zone has handed out.
    ///
    /// # Errors
    /// [`Finding::TwoOwners`], [`Finding::Misaligned`], [`Finding::OutsideSpan`].
    pub fn claim(&self, first: Frame, order: Order, owner: Owner) -> Result<(), Finding> {
        if !first.is_aligned(order) {
            let frame = first;
            return Err(Finding::Misaligned { frame, order });
        }
        FrameRange::of_block(first, order)
            .frames()
            .try_for_each(|frame| self.claim_frame(frame, owner))
    }

    /// Makes `owner` the owner of one frame.
    ///
    /// # Errors
    /// The errors of [`Oracle::claim`].
    pub fn claim_frame(&self, frame: Frame, owner: Owner) -> Result<(), Finding> {
        let new = owner;
        // Acquire and release: pairs with `release_frame` of the owner before. Whoever owns a frame
        // sees all that was done with it.
        match self.word(frame)?.compare_exchange(
            0,
            owner.word(),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(()),
            Err(old) => match Owner::from_word(old) {
                Some(old) => Err(Finding::TwoOwners { frame, new, old }),
                // A compare-and-swap fails only if it found something else.
                None => Ok(()),
            },
        }
    }

    /// Ends the ownership of one frame, before it is freed.
    ///
    /// # Errors
    /// [`Finding::Vanished`] if `owner` is not its owner.
    pub fn release_frame(&self, frame: Frame, owner: Owner) -> Result<(), Finding> {
        // Acquire and release: pairs with `claim_frame` of the next owner.
        let swapped = self.word(frame)?.compare_exchange(
            owner.word(),
            0,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match swapped {
            Ok(_) => Ok(()),
            Err(found) => Err(Finding::Vanished {
                frame,
                expected: owner,
                found: Owner::from_word(found),
            }),
        }
    }

    /// Ends the ownership of a block, or of any part of one.
    ///
    /// # Errors
    /// The errors of [`Oracle::release_frame`].
    pub fn release(&self, first: Frame, order: Order, owner: Owner) -> Result<(), Finding> {
        FrameRange::of_block(first, order)
            .frames()
            .try_for_each(|frame| self.release_frame(frame, owner))
    }

    /// Leaves a block in a place where others find it, and returns the block that lay there. The
    /// owner stays as it is: whoever takes the block out frees it for the owner.
    pub(crate) fn exchange(
        &self,
        place: u64,
        block: Option<(Frame, Order)>,
    ) -> Option<(Frame, Order)> {
        let word = block.map_or(0, |(frame, order)| {
            (frame.number() as u64) << 6 | u64::from(order.get()) << 1 | 1
        });
        let place = &self.exchange[place as usize % EXCHANGE];
        // Acquire and release: whoever takes the block out sees what its owner wrote to it.
        let found = place.swap(word, Ordering::AcqRel);
        let order = Order::try_new((found >> 1) as u8 & 31)?;
        (found != 0).then(|| (Frame::new((found >> 6) as usize), order))
    }

    /// Takes every block out of the places where they change hands.
    pub(crate) fn left_behind(&self) -> impl Iterator<Item = (Frame, Order)> {
        (0..EXCHANGE as u64).filter_map(|place| self.exchange(place, None))
    }
}
