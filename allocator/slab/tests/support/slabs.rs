// Slabs over the test's own pages, and the memory that they need.

use core::mem::MaybeUninit;

use brickyard_slab::{Pinned, SlabDesign, SlabPlan, Slabs};

use crate::pages::TestPages;

/// The way of a test's platform.
pub(crate) fn pinned<P>(platform: P) -> Pinned<P> {
    // SAFETY: threads of the tests are on CPUs of their own, and only slabs of one thread are on
    // one CPU for all.
    unsafe { Pinned::new(platform) }
}

/// Memory for slabs over some pages.
pub(crate) struct Bench {
    plan: SlabPlan,
    memory: Vec<MaybeUninit<u8>>,
}

impl Bench {
    /// What slabs of design `D` need for `plan` over `source`.
    pub(crate) fn new<'p, D: SlabDesign<'p>>(plan: SlabPlan, source: &TestPages) -> Self {
        let bytes = Slabs::<D>::bytes(&plan.over(&source));
        Self {
            plan,
            memory: vec![MaybeUninit::uninit(); bytes],
        }
    }

    /// The slabs.
    pub(crate) fn slabs<'p, D: SlabDesign<'p>>(
        &'p mut self,
        source: D::Source,
        local: D::Local,
    ) -> Slabs<'p, D> {
        Slabs::new(self.plan, source, local, &mut self.memory).unwrap()
    }
}
