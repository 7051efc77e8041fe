//! The pages of slabs on a machine, and the objects in them as words that the machine charges.

#![allow(
    unsafe_code,
    reason = "a source promises pages with one owner; owners of objects write to them"
)]

use core::mem::MaybeUninit;
use core::ptr::{NonNull, with_exposed_provenance};
use std::sync::{Mutex, PoisonError};

use brickyard::Order;
use brickyard::sync::{AtomicU64, Ordering};
use brickyard_machine::current;
use brickyard_slab::{PageAsk, PageSource};

use crate::SharedPages;

const PAGE: usize = 4096;

/// The largest block that slabs take.
const BLOCK: usize = PAGE << 5;

/// Bytes of a cache line.
const LINE: usize = 64;

/// What the page allocator takes for a block, and for its free, in cycles. An assumption: the
/// document of 2013 has 320 to 350 cycles an allocation for Linux 3.9. Its lock and its cache lines
/// are not modelled.
const BLOCK_CYCLES: u64 = 350;

/// Pages of a machine, a share for each node. A node's blocks are given in the order of their
/// addresses; a block that comes back is given again first.
#[derive(Debug)]
pub(super) struct Pages {
    memory: Vec<MaybeUninit<u8>>,
    skip: usize,
    pages: usize,
    nodes: usize,
    cpus: usize,
    state: Mutex<Vec<Share>>,
}

/// A node's share.
#[derive(Debug)]
struct Share {
    /// The first page that was never given, and the end.
    rest: (usize, usize),
    /// Blocks that came back, by order.
    back: [Vec<usize>; 6],
}

impl Pages {
    pub(super) fn new(pages: usize, nodes: usize, cpus: usize) -> Self {
        let share = (pages / nodes).next_multiple_of(BLOCK / PAGE);
        let pages = share * nodes;
        let memory = vec![MaybeUninit::uninit(); pages * PAGE + BLOCK];
        let skip = memory.as_ptr().align_offset(BLOCK);
        let shares = (0..nodes).map(|node| Share {
            rest: (node * share, (node + 1) * share),
            back: Default::default(),
        });
        Self {
            memory,
            skip,
            pages,
            nodes,
            cpus,
            state: Mutex::new(shares.collect()),
        }
    }

    /// Returns all of them, for a machine to map.
    pub(super) fn shared(&self) -> SharedPages {
        SharedPages::of(&self.memory[self.skip..self.skip + self.pages * PAGE])
    }
}

impl Share {
    fn take(&mut self, order: usize) -> Option<usize> {
        let back = self.back[order].pop();
        back.or_else(|| {
            let first = self.rest.0.next_multiple_of(1 << order);
            let end = first + (1 << order);
            (end <= self.rest.1).then(|| {
                self.rest.0 = end;
                first
            })
        })
    }
}

// SAFETY: each page is in one node's share, and there either beyond `rest` or in one block, which
// is in `back` or was given to one caller. Blocks are aligned, as the memory is. The memory is as
// old as the source.
unsafe impl PageSource for &Pages {
    fn start(&self) -> NonNull<u8> {
        let first = self.memory[self.skip..].as_ptr().cast_mut().cast();
        NonNull::new(first).expect("memory is not at address 0")
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        current::work(BLOCK_CYCLES);
        let order = usize::from(ask.order.get());
        let mut shares = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let page = match ask.node {
            Some(node) => shares.get_mut(node)?.take(order),
            None => shares.iter_mut().find_map(|share| share.take(order)),
        };
        // SAFETY: a page of the memory.
        Some(unsafe { self.start().add(page? * PAGE) })
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        current::work(BLOCK_CYCLES);
        let page = (first.addr().get() - self.start().addr().get()) / PAGE;
        let mut shares = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        shares[self.node_of(first)].back[usize::from(order.get())].push(page);
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn node_of(&self, page: NonNull<u8>) -> usize {
        let page = (page.addr().get() - self.start().addr().get()) / PAGE;
        page / (self.pages / self.nodes)
    }

    fn local_node(&self, cpu: usize) -> usize {
        // CPUs are divided evenly; numbers beyond them count as the last one.
        cpu.min(self.cpus - 1) * self.nodes / self.cpus
    }
}

/// Writes a word of each cache line of an object in hand, as its user does.
pub(super) fn fill(object: NonNull<u8>, size: usize, mark: u64) {
    for word in words(object, size) {
        // Relaxed: the object is the caller's.
        word.store(mark, Ordering::Relaxed);
    }
}

/// Returns true if each cache line of an object in hand has this mark.
pub(super) fn has(object: NonNull<u8>, size: usize, mark: u64) -> bool {
    // Relaxed: the object is the caller's.
    words(object, size).all(|word| word.load(Ordering::Relaxed) == mark)
}

/// Reads the first word of an object in hand.
pub(super) fn read(object: NonNull<u8>) {
    for word in words(object, 1) {
        // Relaxed: the object is the caller's.
        let _ = word.load(Ordering::Relaxed);
    }
}

fn words<'a>(object: NonNull<u8>, size: usize) -> impl Iterator<Item = &'a AtomicU64> {
    let first = object.as_ptr().expose_provenance();
    (0..size).step_by(LINE).map(move |offset| {
        // SAFETY: callers have the object in hand, and objects are aligned to words; its size is
        // `size` at least, and a multiple of a word.
        unsafe { &*with_exposed_provenance::<AtomicU64>(first + offset) }
    })
}
