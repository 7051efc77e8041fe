//! A test: a zone, the oracle that knows who owns its frames, and the frames' contents. All that
//! workers, interrupts and changes of ranges do comes down to [`Test::got`] and [`Test::give`].

use brickyard::{AnyZone, Context, Frame, FrameRange, Mobility, Order, Platform, Request};

use crate::random::mix;
use crate::{By, Contents, Dice, Figures, Finding, Oracle, Owner};

/// The values that a task runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPlan {
    /// The seed of the random numbers. Tasks need different ones.
    pub seed: u64,
    /// The task, for reports.
    pub task: u16,
    /// The highest order that is requested.
    pub max_order: Order,
    /// The most frames that the task holds at a time, floods aside.
    pub most_held: usize,
    /// If set, some requests are for memory below this frame.
    pub limit: Option<Frame>,
    /// Of a hundred requests so many are for huge pages, beside those of all orders.
    pub huge_percent: u64,
    /// One step in so many takes all memory there is, and gives it back. 0: none does.
    pub steps_per_flood: u64,
}

impl TaskPlan {
    /// Returns a plan for this seed, by which a task holds up to 2048 frames.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            task: 0,
            max_order: Order::DEFAULT_MAX,
            most_held: 2048,
            limit: None,
            huge_percent: 2,
            steps_per_flood: 4000,
        }
    }

    /// Returns the same plan, for this task: another seed, and the name in reports.
    #[must_use]
    pub const fn task(self, task: u16) -> Self {
        Self {
            seed: mix(self.seed ^ (task as u64) << 32),
            task,
            ..self
        }
    }
}

/// A test of a zone. Any number of CPUs use one at once.
#[derive(Debug)]
pub struct Test<'t, Z, C> {
    /// The zone.
    pub zone: &'t Z,
    /// Who owns its frames.
    pub oracle: &'t Oracle<'t>,
    /// The memory of the frames.
    pub contents: C,
}

impl<Z, C: Copy> Clone for Test<'_, Z, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Z, C: Copy> Copy for Test<'_, Z, C> {}

/// The value that an owner writes to a word of its frame.
const fn stamp(frame: Frame, word: usize, owner: Owner) -> u64 {
    mix(owner.word() ^ (frame.number() as u64) << 24 ^ word as u64)
}

impl<'t, Z: AnyZone, C: Contents> Test<'t, Z, C> {
    /// Returns a new owner, on this CPU.
    pub(crate) fn owner(&self, order: Order, by: By, task: u16) -> Owner {
        let cpu = self.zone.platform().cpu();
        self.oracle.new_owner(order, by, cpu, task)
    }

    /// Passes a result on. If it is a finding, everybody stops.
    pub(crate) fn judge<R>(&self, result: Result<R, Finding>) -> Result<R, Finding> {
        if result.is_err() {
            self.oracle.stop();
        }
        result
    }

    /// Writes what only `owner` can know to a frame.
    pub(crate) fn write(&self, frame: Frame, owner: Owner) {
        if C::WORDS > 0 {
            for word in [0, C::WORDS - 1] {
                self.contents.write(frame, word, stamp(frame, word, owner));
            }
        }
    }

    /// Checks that a frame has the contents that `owner` wrote.
    pub(crate) fn read(&self, frame: Frame, owner: Owner) -> Result<(), Finding> {
        if C::WORDS == 0 {
            return Ok(());
        }
        for word in [0, C::WORDS - 1] {
            let (expected, found) = (stamp(frame, word, owner), self.contents.read(frame, word));
            if expected != found {
                return Err(Finding::Overwritten {
                    frame,
                    word,
                    owner,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// Makes `owner` the owner of a block that the zone has just handed out for `request`.
    pub(crate) fn got(&self, first: Frame, request: &Request, owner: Owner) -> Result<(), Finding> {
        let block = FrameRange::of_block(first, request.order);
        if let Some(limit) = request.limit
            && block.end > limit
        {
            let frame = first;
            return Err(Finding::AboveLimit { frame, limit });
        }
        self.oracle.claim(first, request.order, owner)?;
        block.frames().for_each(|frame| self.write(frame, owner));
        Ok(())
    }

    /// Ends the ownership of a block, or a part of one, whose contents must be its owner's.
    pub(crate) fn leave(&self, first: Frame, order: Order) -> Result<(), Finding> {
        let Some(owner) = self.oracle.owner_of(first) else {
            // Whoever gives it up had it: so it was taken from them.
            return Err(Finding::Vanished {
                frame: first,
                expected: self.owner(order, By::Task, 0),
                found: None,
            });
        };
        for frame in FrameRange::of_block(first, order).frames() {
            self.read(frame, owner)?;
            self.oracle.release_frame(frame, owner)?;
        }
        Ok(())
    }

    /// Gives a block, or a part of one, back to the zone.
    pub(crate) fn give(
        &self,
        first: Frame,
        order: Order,
        figures: &mut Figures,
    ) -> Result<(), Finding> {
        let whole = self.oracle.owner_of(first).map(Owner::order);
        figures.parts += u64::from(whole.is_some_and(|whole| whole > order));
        self.leave(first, order)?;
        figures.frees += 1;
        self.zone
            .free(first, order)
            .map_err(|error| Finding::FreeRefused {
                frame: first,
                order,
                error,
            })
    }

    /// Requests a block for `by`, and owns it.
    pub(crate) fn take(
        &self,
        request: &Request,
        by: By,
        task: u16,
        figures: &mut Figures,
    ) -> Result<Option<Frame>, Finding> {
        let Ok(frame) = self.zone.alloc(request) else {
            figures.refused += 1;
            let single = request.order == Order::ZERO && request.context == Context::MaySleep;
            figures.singles_refused += u64::from(single && by == By::Task);
            return Ok(None);
        };
        self.got(frame, request, self.owner(request.order, by, task))?;
        figures.takes += 1;
        figures.above_order_0 += u64::from(request.order > Order::ZERO);
        figures.in_interrupts += u64::from(by == By::Interrupt);
        figures.atomic += u64::from(by == By::Task && request.context != Context::MaySleep);
        Ok(Some(frame))
    }

    /// Leaves a block where others find it, and frees the one that lay there.
    pub(crate) fn hand_over(
        &self,
        place: u64,
        block: Option<(Frame, Order)>,
        figures: &mut Figures,
    ) -> Result<(), Finding> {
        figures.handed_over += u64::from(block.is_some());
        match self.oracle.exchange(place, block) {
            Some((frame, order)) => self.give(frame, order, figures),
            None => Ok(()),
        }
    }
}

/// Draws an order: mostly 0, and each up to the plan's highest.
pub(crate) fn some_order(dice: &mut Dice, plan: &TaskPlan) -> Order {
    if dice.below(100) < plan.huge_percent {
        return Order::HUGE.min(plan.max_order);
    }
    let order = match dice.below(100) {
        0..66 => 0,
        66..86 => 1 + dice.below(3) as u8,
        86..95 => 4 + dice.below(5) as u8,
        95..98 => 9,
        _ => 10,
    };
    Order::new(order).min(plan.max_order)
}

/// Draws a mobility.
pub(crate) fn some_mobility(dice: &mut Dice) -> Mobility {
    Mobility::ALL[dice.below(Mobility::ALL.len() as u64) as usize]
}
