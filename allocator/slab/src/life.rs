//! How a slab begins and ends: its objects are constructed and painted; before its pages go, what
//! was painted is looked at.

use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::local::Local;
use crate::source::PageSource;
use crate::watch;

impl<S: PageSource, L: Local> Backend<'_, S, L> {
    /// Makes the objects of a new slab, which nobody knows of yet, and whose first place begins at
    /// `first`. Calls the constructor, so no lock is held.
    pub fn make_objects(&self, info: &CacheInfo, first: usize) {
        if let Some(constructor) = info.spec.constructor {
            for index in 0..info.geometry.objects {
                let place = first + (index * info.geometry.stride) as usize;
                constructor(self.pointer(place + info.before));
            }
        }
        watch::new_slab(self, info, first);
    }

    /// Gives a slab's pages back. No lock is held, and the tables do not know the slab any more.
    pub fn give_pages(&self, info: &CacheInfo, head: usize) {
        let _pages = self.loose(info, head);
        // Reports, if there is cause; the pages go back behind it, whatever becomes of that.
        watch::old_slab(self, info, head);
    }
}
