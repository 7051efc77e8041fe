//! A worker: what one task holds, and the operations that it does, drawn one by one.

use brickyard::{AnyZone, Frame, Mobility, Order, Platform, Request};

use crate::test::{some_mobility, some_order};
use crate::{By, Contents, Dice, Figures, Finding, TaskPlan, Test};

/// The most blocks that a worker holds.
const BLOCKS: usize = 96;

/// One task of a test.
#[derive(Debug)]
pub struct Worker<'t, Z, C> {
    test: Test<'t, Z, C>,
    plan: TaskPlan,
    dice: Dice,
    blocks: [(Frame, Order); BLOCKS],
    count: usize,
    held: usize,
    figures: Figures,
}

impl<'t, Z: AnyZone, C: Contents> Worker<'t, Z, C> {
    /// Returns a worker that holds nothing yet.
    #[must_use]
    pub fn new(test: Test<'t, Z, C>, plan: TaskPlan) -> Self {
        Self {
            test,
            plan,
            dice: Dice::new(plan.seed),
            blocks: [(Frame::new(0), Order::ZERO); BLOCKS],
            count: 0,
            held: 0,
            figures: Figures::default(),
        }
    }

    /// Returns what the worker has done so far.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Does one operation. `bulk` is room for requests of many frames; with 320 every path is
    /// reached. Returns false if somebody has found something, and all are to stop.
    ///
    /// The caller is a task that may sleep, with interrupts allowed.
    ///
    /// # Errors
    /// The [`Finding`].
    pub fn step(&mut self, bulk: &mut [Frame]) -> Result<bool, Finding> {
        if self.test.oracle.is_stopped() {
            return Ok(false);
        }
        let done = self.do_one(bulk);
        self.test.judge(done).map(|()| true)
    }

    /// Gives back all that the worker holds. Returns what it has done.
    ///
    /// # Errors
    /// The [`Finding`].
    pub fn finish(mut self) -> Result<Figures, Finding> {
        while !self.test.oracle.is_stopped()
            && let Some((frame, order)) = self.pick()
        {
            let given = self.test.give(frame, order, &mut self.figures);
            self.test.judge(given)?;
        }
        Ok(self.figures)
    }

    fn do_one(&mut self, bulk: &mut [Frame]) -> Result<(), Finding> {
        if self.plan.steps_per_flood > 0 && self.dice.one_in(self.plan.steps_per_flood) {
            return self.flood();
        }
        match self.dice.below(1000) {
            0..480 => self.alloc(),
            480..520 => self.bulk(bulk),
            520..580 => self.free_part(),
            580..660 => self.hand_over(),
            660..670 => self.free_badly(),
            670..674 => {
                self.test.zone.drain();
                self.figures.drains += 1;
                Ok(())
            }
            674..690 => self.take_at(),
            _ => self.free(),
        }
    }

    fn hold(&mut self, frame: Frame, order: Order) {
        self.blocks[self.count] = (frame, order);
        self.count += 1;
        self.held += order.frames();
    }

    fn pick(&mut self) -> Option<(Frame, Order)> {
        let place = self.dice.below(self.count as u64) as usize;
        let block = *self.blocks[..self.count].get(place)?;
        self.count -= 1;
        self.blocks[place] = self.blocks[self.count];
        self.held -= block.1.frames();
        Some(block)
    }

    fn alloc(&mut self) -> Result<(), Finding> {
        let order = some_order(&mut self.dice, &self.plan);
        if self.count == BLOCKS || self.held + order.frames() > self.plan.most_held {
            return self.free();
        }
        let mut request = Request::new(order, some_mobility(&mut self.dice));
        if let Some(limit) = self.plan.limit
            && self.dice.one_in(8)
        {
            request = request.below(limit);
        }
        let (test, task) = (&self.test, self.plan.task);
        let platform = test.zone.platform();
        let taken = match self.dice.below(16) {
            0 => test.take(&request.atomic(), By::Task, task, &mut self.figures),
            // As a caller that holds a lock which interrupts take, too.
            1 => {
                let found = platform.mask_interrupts();
                let taken = test.take(&request.atomic(), By::Task, task, &mut self.figures);
                platform.restore_interrupts(found);
                taken
            }
            _ => test.take(&request, By::Task, task, &mut self.figures),
        };
        if let Some(frame) = taken? {
            self.hold(frame, order);
        }
        Ok(())
    }

    /// Asks for one block and no other. Mostly it is in use, or no memory.
    fn take_at(&mut self) -> Result<(), Finding> {
        let span = self.test.oracle.span();
        let order = some_order(&mut self.dice, &self.plan);
        let frame = span.start.plus(self.dice.below(span.len() as u64) as usize);
        let (frame, request) = (
            frame.align_down(order),
            Request::new(order, some_mobility(&mut self.dice)),
        );
        if self.count == BLOCKS || self.test.zone.take_at(frame, &request).is_err() {
            return Ok(());
        }
        let owner = self.test.owner(order, By::Task, self.plan.task);
        self.test.got(frame, &request, owner)?;
        self.figures.takes += 1;
        self.figures.taken_at += 1;
        self.figures.above_order_0 += u64::from(order > Order::ZERO);
        self.hold(frame, order);
        Ok(())
    }

    fn free(&mut self) -> Result<(), Finding> {
        match self.pick() {
            Some((frame, order)) => self.test.give(frame, order, &mut self.figures),
            None => Ok(()),
        }
    }

    /// Frees one half of a block, and keeps the other.
    fn free_part(&mut self) -> Result<(), Finding> {
        let Some((frame, order)) = self.pick() else {
            return Ok(());
        };
        let Some(half) = order.down() else {
            return self.test.give(frame, order, &mut self.figures);
        };
        let (mut kept, mut freed) = (frame, frame.plus(half.frames()));
        if self.dice.one_in(2) {
            (kept, freed) = (freed, kept);
        }
        self.hold(kept, half);
        self.test.give(freed, half, &mut self.figures)
    }

    fn hand_over(&mut self) -> Result<(), Finding> {
        let block = self.pick();
        let place = self.dice.draw();
        self.test.hand_over(place, block, &mut self.figures)
    }

    /// Frees a block as one of twice its size, which must be refused.
    fn free_badly(&mut self) -> Result<(), Finding> {
        let Some((frame, order)) = self.pick() else {
            return Ok(());
        };
        self.hold(frame, order);
        let Some(twice) = order.up() else {
            return Ok(());
        };
        if self.test.zone.free(frame, twice).is_ok() {
            let order = twice;
            return Err(Finding::BadFreeAccepted { frame, order });
        }
        self.figures.bad_frees += 1;
        Ok(())
    }

    /// Takes many single frames in one call, and gives them back in one.
    fn bulk(&mut self, room: &mut [Frame]) -> Result<(), Finding> {
        let wanted = self.dice.below(room.len() as u64 + 1) as usize;
        let request = Request::page(some_mobility(&mut self.dice));
        let got = self.test.zone.alloc_batch(&request, &mut room[..wanted]);
        let frames = &room[..got];
        self.figures.bulk += 1;
        self.figures.takes += got as u64;
        let owner = self.test.owner(Order::ZERO, By::Task, self.plan.task);
        for &frame in frames {
            self.test.got(frame, &request, owner)?;
        }
        for &frame in frames {
            self.test.leave(frame, Order::ZERO)?;
        }
        self.figures.frees += got as u64;
        match self.test.zone.free_bulk(frames) {
            Ok(()) => Ok(()),
            Err(refused) => Err(Finding::FreeRefused {
                frame: frames[refused.freed],
                order: Order::ZERO,
                error: refused.error,
            }),
        }
    }

    /// Takes all there is, in blocks of one order, until a request is refused; then gives all of it
    /// back, half of the blocks in parts.
    fn flood(&mut self) -> Result<(), Finding> {
        let order = match self.dice.one_in(2) {
            true => Order::ZERO,
            false => some_order(&mut self.dice, &self.plan),
        };
        let test = &self.test;
        let owner = test.owner(order, By::Task, self.plan.task);
        let request = Request::new(order, Mobility::Movable);
        while !test.oracle.is_stopped()
            && let Ok(frame) = test.zone.alloc(&request)
        {
            test.got(frame, &request, owner)?;
            self.figures.takes += 1;
            self.figures.above_order_0 += u64::from(order > Order::ZERO);
            self.figures.flooded += order.frames() as u64;
        }
        self.figures.floods += 1;
        self.figures.refused += 1;
        self.figures.singles_refused += u64::from(order == Order::ZERO);
        let mut at = test.oracle.span().start;
        while at < test.oracle.span().end {
            if test.oracle.owner_of(at) != Some(owner) {
                at = at.plus(1);
                continue;
            }
            match order.down() {
                Some(half) if self.dice.one_in(2) => {
                    test.give(at.plus(half.frames()), half, &mut self.figures)?;
                    test.give(at, half, &mut self.figures)?;
                }
                _ => test.give(at, order, &mut self.figures)?,
            }
            at = at.plus(order.frames());
        }
        Ok(())
    }
}
