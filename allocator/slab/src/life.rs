//! How a slab begins and ends: its objects are constructed and painted; before its pages go, what
//! was painted is looked at.

use crate::ground::Ground;
use crate::kind::Kind;
use crate::local::Local;
use crate::source::PageSource;
use crate::watch;

impl<S: PageSource, L: Local> Ground<'_, S, L> {
    /// Makes the objects of a new slab, which nobody knows of yet, and whose first place begins at
    /// `first`. Calls the constructor, so no lock is held.
    pub fn make_objects(&self, kind: &Kind, first: usize) {
        if let Some(constructor) = kind.spec.constructor {
            for index in 0..kind.geometry.objects {
                let place = first + (index * kind.geometry.stride) as usize;
                constructor(self.pointer(place + kind.before));
            }
        }
        watch::new_slab(self, kind, first);
    }

    /// Gives a slab's pages back. No lock is held, and the tables do not know the slab any more.
    pub fn give_pages(&self, kind: &Kind, head: usize) {
        let _pages = self.loose(kind, head);
        // Reports, if there is cause; the pages go back behind it, whatever becomes of that.
        watch::old_slab(self, kind, head);
    }
}
