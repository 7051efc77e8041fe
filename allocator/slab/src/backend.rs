//! The base of every design of queues: the source of pages, the CPUs, the tables of pages, the
//! caches.
//!
//! Invariant `one-handle`: a cache is reached by its one handle (a [`RawCache`](crate::RawCache),
//! or a [`General`](crate::General), which is never given up), by what borrows that handle, and by
//! leases. So the holder of the handle can destroy it, once no lease is out and none can be had.
//!
//! Invariant `slab-pages`: a slab's pages are taken with its cache's order and pages, by
//! `take_pages`. They are given back once, when the slab's last object is in it and it has left its
//! list.
//!
//! Invariant `object-bytes`: an object in hand has as many bytes as its cache's objects have. They
//! are writable, aligned as its cache says, and belong to nobody else.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use brickyard::{Context, Order};
use brickyard_sync::{Lease, OnceSlot};

use crate::cache_info::CacheInfo;
use crate::caller::{Caller, Callers, Inside};
use crate::error::FreeFault;
use crate::homes::Homes;
use crate::layout::CacheId;
use crate::local::Local;
use crate::pages::Pages;
use crate::plan::Reporter;
use crate::source::{PageAsk, PageSource};

/// See the module. [`design`](crate::design) says who may call what (`backend-of-a-design`).
pub struct Backend<'m, S, L> {
    /// The source of pages.
    pub source: S,
    /// The way in which a CPU reaches its own words.
    pub local: L,
    /// The tables of pages.
    pub pages: Pages<'m>,
    /// The home of each page, if pages have one.
    pub(crate) homes: Option<Homes<'m>>,
    pub(crate) caches: &'m [OnceSlot<CacheInfo>],
    /// The function that is told what checks find.
    pub(crate) report: Reporter,
}

impl<S, L> fmt::Debug for Backend<'_, S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}

/// Pages that are not a slab yet, or are one no longer. When this is dropped, they go back to the
/// source, unless they have become a slab. So they go back even when a constructor or a report
/// panics.
#[must_use = "the pages go back as soon as this is dropped"]
#[derive(Debug)]
pub struct LoosePages<'g, 'm, S: PageSource, L: Local> {
    backend: &'g Backend<'m, S, L>,
    order: Order,
    pages: u16,
    head: usize,
}

impl<S: PageSource, L: Local> LoosePages<'_, '_, S, L> {
    /// Returns the number of the first page.
    #[must_use]
    pub const fn head(&self) -> usize {
        self.head
    }

    /// Makes them a slab from now on. Returns the number of the first page.
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
        let pages = usize::from(self.pages);
        // SAFETY: `slab-pages`: taken so, and no slab.
        unsafe { self.backend.source.give_part(first, self.order, pages) };
    }
}

impl<'m, S: PageSource, L: Local> Backend<'m, S, L> {
    /// Returns the cache with a number. For callers that know that it stays there (`one-handle`):
    /// they borrow its handle, or it is never destroyed.
    #[inline]
    #[must_use]
    pub fn info(&self, id: CacheId) -> Option<&'m CacheInfo> {
        self.caches.get(usize::from(id))?.get()
    }

    /// Returns the cache with a number, which stays there as long as the result lives. Also `None`
    /// while it is being destroyed.
    pub(crate) fn lease(&self, id: CacheId) -> Option<Lease<'m, CacheInfo>> {
        self.caches.get(usize::from(id))?.lease()
    }

    /// Returns the number of nodes of the source.
    #[inline]
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.source.nodes()
    }

    /// Returns the node nearest to where the caller runs.
    #[inline]
    #[must_use]
    pub fn node_here(&self) -> usize {
        match self.nodes() {
            // With one node the CPU is not asked for, which saves frees all of that cost.
            1 => 0,
            _ => self.source.local_node(self.local.cpu()),
        }
    }

    /// Returns the node nearest to a CPU.
    #[inline(always)]
    #[must_use]
    pub fn node_of_cpu(&self, cpu: usize) -> usize {
        match self.nodes() {
            1 => 0,
            _ => self.source.local_node(cpu),
        }
    }

    /// Keeps the caller on its CPU as long as the result lives, and masks interrupts if callers of
    /// kind `C` need that. To be used around every lock.
    #[inline]
    pub fn inside<C: Caller>(&self) -> Inside<'_, L> {
        Inside::new::<C>(&self.local)
    }

    /// Returns true if a caller of kind `C` may come here. Interrupts stay out of task-only caches.
    #[inline(always)]
    #[must_use]
    pub fn admits<C: Caller>(&self) -> bool {
        C::MASKS || !self.local.in_interrupt()
    }

    /// Returns true if the caller may take the locks of a cache. An interrupt may not where it may
    /// have interrupted their holder.
    pub(crate) fn may_touch(&self, info: &CacheInfo) -> bool {
        info.callers == Callers::All || !self.local.in_interrupt()
    }

    /// Waits a little for another CPU.
    #[inline]
    pub fn relax(&self) {
        self.local.relax();
    }

    /// Takes pages for a slab of the cache, from this node's memory if it has some, else from any.
    /// No lock may be held.
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

    /// Takes pages for a slab of the cache, from one node's memory or from any. No lock may be
    /// held.
    pub fn take_pages_of<C: Caller>(
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
        let ask = PageAsk {
            order: info.geometry.order,
            mobility: info.spec.mobility,
            node: node.filter(|_| self.nodes() > 1),
            context,
        };
        let pages = info.geometry.pages;
        let first = self.source.take_part(ask, usize::from(pages))?;
        let _ = first.as_ptr().expose_provenance();
        Some(LoosePages {
            backend: self,
            order: info.geometry.order,
            pages,
            head: self.pages.page_of(first)?,
        })
    }

    /// Wraps the pages of a slab that is one no longer: the tables do not know it, and no lock is
    /// held.
    pub(crate) const fn loose(&self, info: &CacheInfo, head: usize) -> LoosePages<'_, 'm, S, L> {
        LoosePages {
            backend: self,
            order: info.geometry.order,
            pages: info.geometry.pages,
            head,
        }
    }

    /// Returns an address inside the span as a pointer.
    #[inline]
    #[must_use]
    pub fn pointer(&self, address: usize) -> NonNull<u8> {
        let pointer = core::ptr::with_exposed_provenance_mut(address);
        NonNull::new(pointer).expect("the span of pages does not reach address 0")
    }

    /// Returns the node that a slab's page belongs to. 0 outside the span, where only bad frees
    /// point; sources are not asked about those.
    #[inline]
    #[must_use]
    pub fn node_of(&self, address: NonNull<u8>) -> usize {
        match self.nodes() {
            1 => 0,
            _ if self.pages.page_of(address).is_none() => 0,
            _ => self.source.node_of(address),
        }
    }

    /// Returns the homes of pages, if they matter for objects of this cache.
    #[inline]
    pub(crate) fn homes_for(&self, info: &CacheInfo) -> Option<Homes<'m>> {
        self.homes
            .filter(|_| info.geometry.stride < Homes::STRIDE_BELOW && !self.local.is_alone())
    }

    /// Returns the place of object number `index` in the slab of the cache that begins at page
    /// `head`.
    #[must_use]
    pub fn place_of(&self, info: &CacheInfo, head: usize, index: usize) -> NonNull<u8> {
        self.pointer(self.pages.first_of(head) + index * info.geometry.stride as usize)
    }

    /// Finds which object of which slab of the cache begins at `address`. Returns the slab's first
    /// page and the object's number.
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
        let first = self.pages.first_of(head);
        // An address below the first object wraps, and is on no grid.
        let offset = address.addr().get().wrapping_sub(first);
        let index = info.geometry.index_of(offset).ok_or(FreeFault::OffGrid)?;
        Ok((head, index))
    }
}
