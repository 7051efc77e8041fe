//! What every design of queues stands on: the source of pages, the CPUs, the tables of pages, the caches.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use brickyard_sync::OnceSlot;

use super::debug::{self, Finding};
use super::design::SlabDesign;
use super::error::FreeFault;
use super::kind::Kind;
use super::local::{Caller, MaskedFor};
use super::pages::{CacheId, Pages};
use super::source::{PageAsk, PageSource};
use crate::Context;
use crate::platform::Platform;

/// What every design of queues stands on: the source of pages, the CPUs, the tables of pages, the caches.
pub struct Ground<'m, D: SlabDesign<'m>> {
    pub(crate) source: D::Source,
    pub(crate) local: D::Local,
    pub(crate) pages: Pages<'m>,
    pub(crate) kinds: &'m [OnceSlot<Kind>],
    /// Who is told of what checks find.
    pub(crate) report: fn(&Finding),
    pub(crate) of: PhantomData<fn() -> D>,
}

impl<'m, D: SlabDesign<'m>> fmt::Debug for Ground<'m, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ground").finish_non_exhaustive()
    }
}

impl<'m, D: SlabDesign<'m>> Ground<'m, D> {
    /// The cache with a number.
    #[inline]
    pub(crate) fn kind(&self, id: CacheId) -> Option<&'m Kind> {
        self.kinds.get(usize::from(id))?.get()
    }

    /// Nodes of the source.
    #[inline]
    pub(crate) fn nodes(&self) -> usize {
        self.source.nodes()
    }

    /// The node nearest to where the caller runs.
    #[inline]
    pub(crate) fn node_here(&self) -> usize {
        match self.nodes() {
            1 => 0,
            _ => self.source.local_node(self.local.cpu()),
        }
    }

    /// Masks interrupts as long as the result lives, where callers of kind `C` have to.
    #[inline]
    pub(crate) fn masked<C: Caller>(&self) -> MaskedFor<'_, D::Local> {
        MaskedFor::new::<C>(&self.local)
    }

    /// Waits a little for another CPU.
    #[inline]
    pub(crate) fn relax(&self) {
        self.local.relax();
    }

    /// Pages for a slab of `kind`, of this node's memory if they can be had, else of any; the number of the first. No lock is held.
    pub(crate) fn take_pages<C: Caller>(&self, kind: &Kind, node: usize) -> Option<usize> {
        let near = self.take_pages_of::<C>(kind, Some(node));
        near.or_else(|| match self.nodes() {
            1 => None,
            _ => self.take_pages_of::<C>(kind, None),
        })
    }

    /// Pages for a slab of `kind`, of one node's memory or of any; the number of the first. No lock is held.
    pub(crate) fn take_pages_of<C: Caller>(
        &self,
        kind: &Kind,
        node: Option<usize>,
    ) -> Option<usize> {
        let context = if self.local.in_interrupt() {
            Context::Interrupt
        } else if C::MASKS {
            Context::Atomic
        } else {
            Context::MaySleep
        };
        let first = self.source.take(PageAsk {
            order: kind.geometry.order,
            mobility: kind.spec.mobility,
            node: node.filter(|_| self.nodes() > 1),
            context,
        })?;
        let _ = first.as_ptr().expose_provenance();
        self.pages.page_of(first)
    }

    /// Gives a slab's pages back. No lock is held, and the tables do not know the slab any more.
    pub(crate) fn give_pages(&self, kind: &Kind, head: usize) {
        debug::old_slab(self, kind, head);
        // SAFETY: invariant `slab-pages`: a slab's pages were taken with its cache's order, by `take_pages`, and are given back once, when the slab's last object is in it
        // and it has left its list.
        unsafe {
            self.source.give(
                self.pointer(self.pages.address_of(head)),
                kind.geometry.order,
            );
        }
    }

    /// An address inside the span as a pointer.
    #[inline]
    pub(crate) fn pointer(&self, address: usize) -> NonNull<u8> {
        let pointer = core::ptr::with_exposed_provenance_mut(address);
        NonNull::new(pointer).expect("the span of pages does not reach address 0")
    }

    /// The node that a slab's page belongs to; 0 outside the span, where only bad frees point: sources are not asked of those.
    #[inline]
    pub(crate) fn node_of(&self, address: NonNull<u8>) -> usize {
        match self.nodes() {
            1 => 0,
            _ if self.pages.page_of(address).is_none() => 0,
            _ => self.source.node_of(address),
        }
    }

    /// Which object of which slab of `kind` begins at `address`: the slab's first page, and the object's number.
    pub(crate) fn find(
        &self,
        kind: &Kind,
        address: NonNull<u8>,
    ) -> Result<(usize, usize), FreeFault> {
        let page = self.pages.page_of(address).ok_or(FreeFault::NotASlab)?;
        match self.pages.cache_of(address) {
            0 => return Err(FreeFault::NotASlab),
            id if id != kind.id => return Err(FreeFault::WrongCache { cache: id }),
            _ => {}
        }
        let head = self.pages.head_of(page);
        let first = self.pages.address_of(head) + self.pages.record(head).colour.get() as usize;
        // An address below the first object wraps, and is on no grid.
        let offset = address.addr().get().wrapping_sub(first);
        let index = kind.geometry.index_of(offset).ok_or(FreeFault::OffGrid)?;
        Ok((head, index))
    }
}
