//! How a slab begins and ends. Its objects are constructed and painted when it is made. Before its
//! pages go back, the paint is checked.

use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::local::Local;
use crate::object_checks;
use crate::source::PageSource;

impl<S: PageSource, L: Local> Backend<'_, S, L> {
    /// Makes the objects of a new slab whose first place begins at `first`. Nobody knows of the
    /// slab yet. Calls the constructor, so no lock may be held.
    pub fn make_objects(&self, info: &CacheInfo, first: usize) {
        if let Some(constructor) = info.spec.constructor {
            for index in 0..info.geometry.objects {
                let place = first + (index * info.geometry.stride) as usize;
                constructor.run(self.pointer(place + info.before));
            }
        }
        object_checks::new_slab(self, info, first);
    }

    /// Gives a slab's pages back. No lock may be held, and the tables do not know the slab any
    /// more.
    pub fn give_pages(&self, info: &CacheInfo, head: usize) {
        let _pages = self.loose(info, head);
        // This may report damage. The pages go back after it, even if the report panics.
        object_checks::old_slab(self, info, head);
    }
}
