//! The text of slabinfo.

use core::fmt;

use crate::design::SlabDesign;
use crate::slabs::Slabs;

/// The text of slabinfo of all caches, in Linux's format 2.1: made by [`Slabs::slab_info`], read by
/// `slabtop` and its like.
///
/// `objsize` is the distance of objects, checks included, as Linux has it. Tunables are 0.
pub struct SlabInfo<'s, 'm, D: SlabDesign<'m>>(&'s Slabs<'m, D>);

impl<'m, D: SlabDesign<'m>> fmt::Debug for SlabInfo<'_, 'm, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.numbers()).finish()
    }
}

impl<'m, D: SlabDesign<'m>> fmt::Display for SlabInfo<'_, 'm, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("slabinfo - version: 2.1\n")?;
        f.write_str("# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n")?;
        self.0.numbers().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// The text of slabinfo: numbers of the moment in which it is printed. Takes each cache's locks
    /// once.
    #[must_use]
    pub const fn slab_info(&self) -> SlabInfo<'_, 'm, D> {
        SlabInfo(self)
    }
}
