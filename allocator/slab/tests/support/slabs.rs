// Slabs over the test's own pages, and the memory that they need.

use core::mem::MaybeUninit;

use brickyard_slab::{PageSource, Pinned, SlabDesign, SlabPlan, Slabs, Tables};

use crate::pages::TestPages;

/// The way of a test's platform.
pub(crate) fn pinned<P>(platform: P) -> Pinned<P> {
    // SAFETY: threads of the tests are on CPUs of their own, and only slabs of one thread are on one CPU for all.
    unsafe { Pinned::new(platform) }
}

/// Memory for slabs over some pages.
pub(crate) struct Bench {
    plan: SlabPlan,
    memory: Vec<MaybeUninit<u8>>,
    tables: Vec<MaybeUninit<u8>>,
}

impl Bench {
    /// What slabs of design `D` need for `plan` over `source`.
    pub(crate) fn new<'p, D: SlabDesign<'p>>(plan: SlabPlan, source: &TestPages) -> Self {
        let bytes = Slabs::<D>::bytes(&plan, (&source).nodes());
        Self {
            plan,
            memory: vec![MaybeUninit::uninit(); bytes],
            tables: vec![MaybeUninit::uninit(); Tables::bytes((&source).pages())],
        }
    }

    /// The slabs.
    pub(crate) fn slabs<'p, D: SlabDesign<'p>>(
        &'p mut self,
        source: D::Source,
        local: D::Local,
    ) -> Slabs<'p, D> {
        let tables = Tables::Any(&mut self.tables);
        Slabs::new(self.plan, source, local, &mut self.memory, tables).unwrap()
    }
}
