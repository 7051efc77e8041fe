// Pages out of the test's own heap: a source that counts what it has given.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use brickyard::Order;
use brickyard_slab::{PageAsk, PageSource};

const PAGE: usize = 4096;
const ALIGN: usize = PAGE << 10;

/// A span of pages, the first of each node's share given first.
#[derive(Debug)]
pub struct TestPages {
    start: NonNull<u8>,
    pages: usize,
    nodes: usize,
    /// Which pages are taken.
    taken: Mutex<Vec<bool>>,
    /// How many may be taken at a time.
    limit: AtomicUsize,
}

// SAFETY: the pointer is an address; the pages behind it are handed out one by one, under the lock.
unsafe impl Send for TestPages {}
// SAFETY: as above.
unsafe impl Sync for TestPages {}

#[allow(dead_code, reason = "not every test uses all of it")]
impl TestPages {
    /// `pages` pages in equal shares for `nodes` nodes.
    pub fn new(pages: usize, nodes: usize) -> Self {
        let layout = Layout::from_size_align(pages * PAGE, ALIGN).unwrap();
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
        Self {
            start,
            pages,
            nodes,
            taken: Mutex::new(vec![false; pages]),
            limit: AtomicUsize::new(pages),
        }
    }

    /// Pages that are taken now.
    pub fn taken(&self) -> usize {
        self.taken.lock().unwrap().iter().filter(|t| **t).count()
    }

    /// From now on at most so many pages are given.
    pub fn limit(&self, pages: usize) {
        self.limit.store(pages, Ordering::SeqCst);
    }

    fn share(&self) -> usize {
        self.pages / self.nodes
    }
}

impl Drop for TestPages {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.pages * PAGE, ALIGN).unwrap();
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
    }
}

// SAFETY: each page is given to one caller at a time, aligned, out of the allocation.
unsafe impl PageSource for &TestPages {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        let many = ask.order.frames();
        let mut taken = self.taken.lock().unwrap();
        if taken.iter().filter(|t| **t).count() + many > self.limit.load(Ordering::SeqCst) {
            return None;
        }
        let range = match ask.node {
            Some(node) => node * self.share()..(node + 1) * self.share(),
            None => 0..self.pages,
        };
        let first = range.step_by(many).find(|&first| {
            first + many <= self.pages && !taken[first..first + many].contains(&true)
        })?;
        taken[first..first + many].fill(true);
        // SAFETY: inside the allocation.
        Some(unsafe { self.start.add(first * PAGE) })
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let first = (first.addr().get() - self.start.addr().get()) / PAGE;
        let mut taken = self.taken.lock().unwrap();
        for page in &mut taken[first..first + order.frames()] {
            assert!(*page, "a page is given back twice");
            *page = false;
        }
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn node_of(&self, page: NonNull<u8>) -> usize {
        (page.addr().get() - self.start.addr().get()) / PAGE / self.share()
    }

    fn local_node(&self, cpu: usize) -> usize {
        cpu % self.nodes
    }
}
