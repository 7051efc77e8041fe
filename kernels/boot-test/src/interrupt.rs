//! What an interrupt does: a few requests and frees, wherever it came in.

use brickyard::{AnyZone, Context, Order, Request};

use crate::test::some_mobility;
use crate::{By, Contents, Dice, Figures, Finding, Test};

impl<Z: AnyZone, C: Contents> Test<'_, Z, C> {
    /// Takes, frees and hands over one to three blocks of orders 0 to 3, as interrupts do. To be
    /// called in an interrupt, at any depth.
    ///
    /// Half of the requests say that they come from an interrupt. The others only say that they may
    /// not sleep, so that [`Platform::in_interrupt`](brickyard::Platform::in_interrupt) must say
    /// it.
    ///
    /// # Errors
    /// The [`Finding`].
    pub fn interrupt(&self, seed: u64) -> Result<Figures, Finding> {
        let mut figures = Figures::default();
        if self.oracle.is_stopped() {
            return Ok(figures);
        }
        let dice = &mut Dice::new(seed);
        let done = self.interrupt_steps(dice, &mut figures);
        self.judge(done.map(|()| figures))
    }

    fn interrupt_steps(&self, dice: &mut Dice, figures: &mut Figures) -> Result<(), Finding> {
        for _ in 0..1 + dice.below(3) {
            let order = Order::new(match dice.one_in(4) {
                true => dice.below(4) as u8,
                false => 0,
            });
            let context = match dice.one_in(2) {
                true => Context::Interrupt,
                false => Context::Atomic,
            };
            let request = Request::new(order, some_mobility(dice)).in_context(context);
            let Some(frame) = self.take(&request, By::Interrupt, 0, figures)? else {
                continue;
            };
            match dice.one_in(2) {
                true => self.give(frame, order, figures)?,
                false => self.hand_over(dice.draw(), Some((frame, order)), figures)?,
            }
        }
        self.hand_over(dice.draw(), None, figures)
    }
}
