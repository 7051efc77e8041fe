//! What every design of queues stands on: the source of pages, the CPUs, the tables of pages, the
//! caches.
//!
//! Invariant `one-handle`: a cache is reached by its one handle (a
//! [`RawCache`](crate::RawCache), or a [`General`](crate::General), which is never given up), by
//! what borrows it, and by leases; so it can be destroyed by who has the handle, once no lease is
//! out and none can be had.
//!
//! Invariant `slab-pages`: a slab's pages are taken with its cache's order, by `take_pages`, and
//! given back once, when the slab's last object is in it and it has left its list.
//!
//! Invariant `object-bytes`: an object in hand is as many bytes as its cache's objects have,
//! writable, aligned as its cache says, and nobody else's.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use brickyard::{Context, Order};
use brickyard_sync::{Lease, OnceSlot};

use crate::cache_info::CacheInfo;
use crate::caller::{Caller, Callers, Inside};
use crate::debug::Finding;
use crate::error::FreeFault;
use crate::layout::CacheId;
use crate::local::Local;
use crate::pages::Pages;
use crate::source::{PageAsk, PageSource};

/// See the module; and for who may call what, [`design`](crate::design) (`backend-of-a-design`).
pub struct Backend<'m, S, L> {
    /// Where pages come from.
    pub source: S,
    /// How a CPU reaches what is its own.
    pub local: L,
    /// What is known of each page.
    pub pages: Pages<'m>,
    pub(crate) caches: &'m [OnceSlot<CacheInfo>],
    /// Who is told of what checks find.
    pub(crate) report: fn(&Finding),
}

impl<S, L> fmt::Debug for Backend<'_, S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}

/// Pages that are no slab, yet or any more: they go back to the source when this is dropped, by a
/// constructor or a report that panics too, unless they have become one.
#[must_use = "the pages go back as soon as this is dropped"]
#[derive(Debug)]
pub struct LoosePages<'g, 'm, S: PageSource, L: Local> {
    backend: &'g Backend<'m, S, L>,
    order: Order,
    head: usize,
}

impl<S: PageSource, L: Local> LoosePages<'_, '_, S, L> {
    /// The number of the first.
    #[must_use]
    pub const fn head(&self) -> usize {
        self.head
    }

    /// They are a slab from now on: the number of the first.
    #[must_use]
    pub fn keep(self) -> usize {
        ManuallyDrop::new(self).head
    }
}

impl<S: PageSource, L: Local> Drop for LoosePages<'_, '_, S, L> {
    fn drop(&mut self) {
        let first = self
            .backend
            .pointer(self.backend.pages.address_of(self.head));
        // SAFETY: `slab-pages`: taken with this order, and no slab.
        unsafe { self.backend.source.give(first, self.order) };
    }
}

impl<'m, S: PageSource, L: Local> Backend<'m, S, L> {
    /// The cache with a number, for who knows that it stays there (`one-handle`): its handle is
    /// borrowed, or it is never destroyed.
    #[inline]
    #[must_use]
    pub fn info(&self, id: CacheId) -> Option<&'m CacheInfo> {
        self.caches.get(usize::from(id))?.get()
    }

    /// The cache with a number, which stays there as long as the result lives. `None` too while it
    /// is being destroyed.
    pub(crate) fn lease(&self, id: CacheId) -> Option<Lease<'m, CacheInfo>> {
        self.caches.get(usize::from(id))?.lease()
    }

    /// Nodes of the source.
    #[inline]
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.source.nodes()
    }

    /// The node nearest to where the caller runs.
    #[inline]
    #[must_use]
    pub fn node_here(&self) -> usize {
        match self.nodes() {
            // Where there is one node, no CPU is asked for: so frees are rid of all of it.
            1 => 0,
            _ => self.source.local_node(self.local.cpu()),
        }
    }

    /// The node nearest to a CPU.
    #[inline(always)]
    #[must_use]
    pub fn node_of_cpu(&self, cpu: usize) -> usize {
        match self.nodes() {
            1 => 0,
            _ => self.source.local_node(cpu),
        }
    }

    /// Keeps the caller on its CPU, and interrupts away where callers of kind `C` have to, as long
    /// as the result lives: around every lock.
    #[inline]
    pub fn inside<C: Caller>(&self) -> Inside<'_, L> {
        Inside::new::<C>(&self.local)
    }

    /// May a caller of kind `C` come here? Interrupts stay out of caches that are for tasks only.
    #[inline(always)]
    #[must_use]
    pub fn admits<C: Caller>(&self) -> bool {
        C::MASKS || !self.local.in_interrupt()
    }

    /// May the caller take the locks of a cache? Not in an interrupt that may have interrupted
    /// their holder.
    pub(crate) fn may_touch(&self, info: &CacheInfo) -> bool {
        info.callers == Callers::All || !self.local.in_interrupt()
    }

    /// Waits a little for another CPU.
    #[inline]
    pub fn relax(&self) {
        self.local.relax();
    }

    /// Pages for a slab of the cache, of this node's memory if they can be had, else of any. No lock
    /// is held.
    pub fn take_pages<C: Caller>(
        &self,
        info: &CacheInfo,
        node: usize,
    ) -> Option<LoosePages<'_, 'm, S, L>> {
        let near = self.take_pages_of::<C>(info, Some(node));
        near.or_else(|| match self.nodes() {
            1 => None,
            _ => self.take_pages_of::<C>(info, None),
        })
    }

    /// Pages for a slab of the cache, of one node's memory or of any. No lock is held.
    pub(crate) fn take_pages_of<C: Caller>(
        &self,
        info: &CacheInfo,
        node: Option<usize>,
    ) -> Option<LoosePages<'_, 'm, S, L>> {
        let context = if self.local.in_interrupt() {
            Context::Interrupt
        } else if C::MASKS {
            Context::Atomic
        } else {
            Context::MaySleep
        };
        let first = self.source.take(PageAsk {
            order: info.geometry.order,
            mobility: info.spec.mobility,
            node: node.filter(|_| self.nodes() > 1),
            context,
        })?;
        let _ = first.as_ptr().expose_provenance();
        Some(LoosePages {
            backend: self,
            order: info.geometry.order,
            head: self.pages.page_of(first)?,
        })
    }

    /// The pages of a slab that is none any more: the tables do not know it, and no lock is held.
    pub(crate) const fn loose(&self, info: &CacheInfo, head: usize) -> LoosePages<'_, 'm, S, L> {
        LoosePages {
            backend: self,
            order: info.geometry.order,
            head,
        }
    }

    /// An address inside the span as a pointer.
    #[inline]
    #[must_use]
    pub fn pointer(&self, address: usize) -> NonNull<u8> {
        let pointer = core::ptr::with_exposed_provenance_mut(address);
        NonNull::new(pointer).expect("the span of pages does not reach address 0")
    }

    /// The node that a slab's page belongs to; 0 outside the span, where only bad frees point:
    /// sources are not asked of those.
    #[inline]
    #[must_use]
    pub fn node_of(&self, address: NonNull<u8>) -> usize {
        match self.nodes() {
            1 => 0,
            _ if self.pages.page_of(address).is_none() => 0,
            _ => self.source.node_of(address),
        }
    }

    /// Where the place of an object is, by number, of the slab of the cache that begins at page
    /// `head`.
    #[must_use]
    pub fn place_of(&self, info: &CacheInfo, head: usize, index: usize) -> NonNull<u8> {
        let first = self.pages.address_of(head) + self.pages.record(head).colour.get() as usize;
        self.pointer(first + index * info.geometry.stride as usize)
    }

    /// Which object of which slab of the cache begins at `address`: the slab's first page, and the
    /// object's number.
    ///
    /// # Errors
    /// [`FreeFault`]: no object of the cache.
    pub fn find(
        &self,
        info: &CacheInfo,
        address: NonNull<u8>,
    ) -> Result<(usize, usize), FreeFault> {
        let page = self.pages.page_of(address).ok_or(FreeFault::NotASlab)?;
        match self.pages.cache_of(address) {
            0 => return Err(FreeFault::NotASlab),
            id if id != info.id => return Err(FreeFault::WrongCache { cache: id }),
            _ => {}
        }
        let head = self.pages.head_of(page);
        let first = self.pages.address_of(head) + self.pages.record(head).colour.get() as usize;
        // An address below the first object wraps, and is on no grid.
        let offset = address.addr().get().wrapping_sub(first);
        let index = info.geometry.index_of(offset).ok_or(FreeFault::OffGrid)?;
        Ok((head, index))
    }
}
