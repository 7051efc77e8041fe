//! A page source that records everything: which pages are taken, their mobilities, and how often a
//! request was refused. Of a slab that does not use all pages of a block, the others are free.
//!
//! Pages are filled with one pattern when they are taken and with another when they are given back,
//! so that code that relies on old contents, or still uses the pages, is detected. With the address
//! sanitizer, any access to free pages is an error, reads too.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brickyard::{Context, Mobility, Order};
use brickyard_slab::{PageAsk, PageSource};

use super::cpus::Cpus;
use crate::sanitizer;

pub(super) const PAGE: usize = 4096;
/// The largest block ever requested is 64 pages.
const ALIGN: usize = 64 * PAGE;

const TAKEN: u8 = 0xa5;
const GIVEN: u8 = 0xdb;

/// A span of pages in equal shares for the nodes.
#[derive(Debug)]
pub(super) struct Pages<'m> {
    start: NonNull<u8>,
    pages: usize,
    nodes: usize,
    cpus: &'m Cpus,
    state: Mutex<State>,
}

/// Invariant `given-once`: pages belong to one caller from `take` to `give`.
#[derive(Debug, Default)]
struct State {
    /// What is taken, by its first page: how many pages.
    blocks: BTreeMap<usize, (usize, Mobility)>,
    taken: usize,
    limit: usize,
    refused: usize,
    peak: usize,
}

// SAFETY: the pointer is an address, and by `given-once` the memory behind it is not shared.
unsafe impl Send for Pages<'_> {}
// SAFETY: as above.
unsafe impl Sync for Pages<'_> {}

impl<'m> Pages<'m> {
    pub(super) fn new(pages: usize, nodes: usize, cpus: &'m Cpus) -> Self {
        let start = {
            // SAFETY: the layout is not empty.
            let memory = unsafe { std::alloc::alloc(Self::layout(pages)) };
            NonNull::new(memory).expect("the test's machine has memory")
        };
        sanitizer::close(start, pages * PAGE);
        let state = State {
            limit: pages,
            ..State::default()
        };
        Self {
            start,
            pages,
            nodes,
            cpus,
            state: Mutex::new(state),
        }
    }

    fn layout(pages: usize) -> Layout {
        Layout::from_size_align(pages * PAGE, ALIGN).expect("a small multiple of the page size")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many pages are taken.
    pub(super) fn taken(&self) -> usize {
        self.state().taken
    }

    /// Returns the most pages taken at a time.
    pub(super) fn peak(&self) -> usize {
        self.state().peak
    }

    /// Returns how many pages are taken by requests of this mobility.
    pub(super) fn taken_for(&self, mobility: Mobility) -> usize {
        let state = self.state();
        let blocks = state.blocks.values();
        let ours = blocks.filter(|block| block.1 == mobility);
        ours.map(|block| block.0).sum()
    }

    /// Returns how often a request was refused.
    pub(super) fn refused(&self) -> usize {
        self.state().refused
    }

    /// Limits how many more pages can be taken; `None`: as many as there are.
    pub(super) fn allow(&self, more: Option<usize>) {
        let mut state = self.state();
        state.limit = more.map_or(self.pages, |more| state.taken + more);
    }

    fn share(&self) -> usize {
        self.pages / self.nodes
    }

    /// Returns the node that an address of the span belongs to.
    pub(super) fn node_at(&self, address: usize) -> usize {
        (address - self.start.addr().get()) / PAGE / self.share()
    }

    /// Returns the address of a free page, if there is one.
    pub(super) fn free_page(&self) -> Option<NonNull<u8>> {
        let state = self.state();
        let free = (0..self.pages).find(|&page| !state.has(page))?;
        Some(self.address(free))
    }

    fn address(&self, page: usize) -> NonNull<u8> {
        // SAFETY: inside the allocation, which belongs to this value.
        unsafe { self.start.add(page * PAGE) }
    }

    fn fill(&self, first: usize, pages: usize, with: u8) {
        // SAFETY: `given-once`: before they are taken, and after they are given back, the pages
        // belong to this source.
        unsafe {
            self.address(first).write_bytes(with, pages * PAGE);
        }
    }
}

impl State {
    fn has(&self, page: usize) -> bool {
        let before = self.blocks.range(..=page).next_back();
        before.is_some_and(|(&first, block)| page < first + block.0)
    }

    fn is_free(&self, first: usize, pages: usize) -> bool {
        let next = self.blocks.range(first..).next();
        !self.has(first) && next.is_none_or(|(&next, _)| next >= first + pages)
    }
}

impl Drop for Pages<'_> {
    fn drop(&mut self) {
        sanitizer::open(self.start, self.pages * PAGE);
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.pages)) };
    }
}

// SAFETY: `given-once`; blocks are aligned to their size, since the span is aligned to the largest,
// and are inside the allocation.
unsafe impl PageSource for &Pages<'_> {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        self.take_part(ask, ask.order.frames())
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        // SAFETY: passed on.
        unsafe { self.give_part(first, order, order.frames()) }
    }

    fn take_part(&self, ask: PageAsk, many: usize) -> Option<NonNull<u8>> {
        let may_sleep = ask.context == Context::MaySleep;
        assert!(
            !may_sleep || self.cpus.may_sleep(),
            "a request that may sleep, from a context that may not: {ask:?}"
        );
        let is_block = many == ask.order.frames();
        let range = match ask.node {
            Some(node) => node * self.share()..(node + 1) * self.share(),
            None => 0..self.pages,
        };
        let mut state = self.state();
        let end = range.end;
        let found = range
            .step_by(if is_block { many } else { 1 })
            .find(|&first| first + many <= end && state.is_free(first, many));
        let Some(first) = found.filter(|_| state.taken + many <= state.limit) else {
            state.refused += 1;
            return None;
        };
        state.blocks.insert(first, (many, ask.mobility));
        state.taken += many;
        state.peak = state.peak.max(state.taken);
        drop(state);
        sanitizer::open(self.address(first), many * PAGE);
        self.fill(first, many, TAKEN);
        Some(self.address(first))
    }

    unsafe fn give_part(&self, first: NonNull<u8>, _order: Order, many: usize) {
        let page = (first.addr().get() - self.start.addr().get()) / PAGE;
        self.fill(page, many, GIVEN);
        sanitizer::close(first, many * PAGE);
        let mut state = self.state();
        let block = state.blocks.remove(&page);
        assert_eq!(block.map(|block| block.0), Some(many), "page {page}");
        state.taken -= many;
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn node_of(&self, page: NonNull<u8>) -> usize {
        self.node_at(page.addr().get())
    }

    fn local_node(&self, cpu: usize) -> usize {
        cpu % self.nodes
    }
}
