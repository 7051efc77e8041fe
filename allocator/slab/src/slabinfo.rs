//! The text of slabinfo.

use core::fmt;

use crate::design::SlabDesign;
use crate::slabs::Slabs;

/// The text of slabinfo of all caches, in Linux's format 2.1. [`Slabs::slab_info`] makes it;
/// `slabtop` and similar tools read it.
///
/// `objsize` is the distance of objects, checks included, as in Linux. Tunables are 0.
pub struct SlabInfo<'s, 'm, D: SlabDesign<'m>>(&'s Slabs<'m, D>);

impl<'m, D: SlabDesign<'m>> fmt::Debug for SlabInfo<'_, 'm, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for info in self.0.caches() {
            list.entry(&self.0.numbers_of(&info));
        }
        list.finish()
    }
}

impl<'m, D: SlabDesign<'m>> fmt::Display for SlabInfo<'_, 'm, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("slabinfo - version: 2.1\n")?;
        f.write_str("# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n")?;
        // A line is written under the cache's lease: who destroys the cache may own its name.
        self.0
            .caches()
            .try_for_each(|info| writeln!(f, "{}", self.0.numbers_of(&info)))
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// Returns the text of slabinfo. Its numbers are those of the moment in which it is printed.
    /// Printing takes each cache's locks once. A cache is not destroyed while its line is written.
    #[must_use]
    pub const fn slab_info(&self) -> SlabInfo<'_, 'm, D> {
        SlabInfo(self)
    }
}
