//! The malloc family against a model: who owns which memory, and what the owner has written into
//! every byte of it.
//!
//! Operations are read from bytes: sizes around every boundary, alignments, chains of resizing,
//! zeroed memory, requests that cannot be served. [`Family`] is the interface under test: the heap
//! itself ([`ProcessHeap`]), or the functions of a library.

use core::alloc::Layout;
use core::ops::Add;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use brickyard_measure::objects::in_hand::{InHand, Pattern};

/// The functions of the malloc family. A null pointer means "no memory".
///
/// # Safety
/// They return null, or as many bytes as requested, which no other caller has until they are freed.
/// ([`drive`] tests this; it relies on it only to access the memory.)
pub unsafe trait Family {
    /// `malloc`.
    fn malloc(&self, bytes: usize) -> *mut u8;
    /// `calloc`.
    fn calloc(&self, count: usize, bytes: usize) -> *mut u8;
    /// `aligned_alloc`, with any size.
    fn aligned(&self, layout: Layout) -> *mut u8;
    /// `realloc`, to more than 0 bytes.
    ///
    /// # Safety
    /// `memory` belongs to the caller; after null is returned it still does, else no longer.
    unsafe fn realloc(&self, memory: *mut u8, bytes: usize) -> *mut u8;
    /// `free`.
    ///
    /// # Safety
    /// `memory` belongs to the caller, or is null.
    unsafe fn free(&self, memory: *mut u8);
    /// `malloc_usable_size`.
    ///
    /// # Safety
    /// The conditions of [`Family::free`].
    unsafe fn usable_size(&self, memory: *mut u8) -> usize;
    /// `malloc_trim`.
    fn trim(&self);
}

/// The process's heap.
#[derive(Debug, Clone, Copy)]
pub struct ProcessHeap;

// SAFETY: the heap promises it.
unsafe impl Family for ProcessHeap {
    fn malloc(&self, bytes: usize) -> *mut u8 {
        brickyard_heap::alloc(bytes)
    }

    fn calloc(&self, count: usize, bytes: usize) -> *mut u8 {
        match count.checked_mul(bytes) {
            Some(bytes) => brickyard_heap::allocate_zeroed(bytes),
            None => core::ptr::null_mut(),
        }
    }

    fn aligned(&self, layout: Layout) -> *mut u8 {
        brickyard_heap::allocate_aligned(layout)
    }

    unsafe fn realloc(&self, memory: *mut u8, bytes: usize) -> *mut u8 {
        // SAFETY: passed on.
        unsafe { brickyard_heap::reallocate(memory, bytes) }
    }

    unsafe fn free(&self, memory: *mut u8) {
        // SAFETY: passed on.
        unsafe { brickyard_heap::free(memory) };
    }

    unsafe fn usable_size(&self, memory: *mut u8) -> usize {
        brickyard_heap::usable_size(memory)
    }

    fn trim(&self) {
        brickyard_heap::trim();
    }
}

/// What a run of operations did, so that a test can check that it was not vacuous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Driven {
    /// Operations run.
    pub operations: usize,
    /// Blocks allocated.
    pub served: usize,
    /// Requests too large to serve.
    pub refused: usize,
    /// Blocks allocated zeroed.
    pub zeroed: usize,
    /// Blocks allocated with an alignment above 16.
    pub aligned: usize,
    /// Blocks resized.
    pub resized: usize,
    /// Blocks that moved when resized.
    pub moved: usize,
    /// Blocks of more than 2 MiB.
    pub large: usize,
    /// Blocks freed.
    pub freed: usize,
}

impl Add for Driven {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            served: self.served + other.served,
            refused: self.refused + other.refused,
            zeroed: self.zeroed + other.zeroed,
            aligned: self.aligned + other.aligned,
            resized: self.resized + other.resized,
            moved: self.moved + other.moved,
            large: self.large + other.large,
            freed: self.freed + other.freed,
        }
    }
}

/// Bytes that are read as choices; behind the end all are 0.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    fn word(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }
}

/// The alignment of every block of the C library.
const ALIGN: usize = 16;
const LARGE: usize = 2 << 20;
/// The most blocks and bytes in use at a time.
const MANY: usize = 300;
const MANY_BYTES: usize = 24 << 20;
/// Above this size a part of every page is checked, not every byte.
const DENSE: usize = 256 << 10;

/// A block in use, with all its usable bytes; `asked` is the size requested.
#[derive(Debug)]
struct Block {
    memory: InHand,
    asked: usize,
    pattern: Pattern,
}

struct Driver<'f, F> {
    family: &'f F,
    blocks: BTreeMap<usize, Block>,
    bytes: usize,
    owners: u64,
    driven: Driven,
}

/// Runs the operations encoded in `bytes` on `family` and on the model; frees all blocks at the
/// end.
///
/// # Panics
/// At the first result that is wrong, or a byte is not as its owner left it.
pub fn drive(family: &impl Family, bytes: &[u8], owner: u64) -> Driven {
    let mut driver = Driver {
        family,
        blocks: BTreeMap::new(),
        bytes: 0,
        owners: owner << 32,
        driven: Driven::default(),
    };
    let mut bytes = Bytes(bytes);
    while !bytes.0.is_empty() {
        driver.step(&mut bytes);
        driver.driven.operations += 1;
    }
    while driver.free(0) {}
    driver.driven
}

/// Sizes at which the code path changes: between classes, at the ends of slabs and of runs of
/// pages.
const EDGES: [usize; 12] = [
    16,
    128,
    160,
    1024,
    1216,
    4096,
    28 << 10,
    32 << 10,
    64 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];

fn size(bytes: &mut Bytes<'_>) -> usize {
    let (kind, more) = (bytes.byte() % 32, bytes.word());
    match kind {
        0..=15 => more % 400,
        16..=22 => more % 6000,
        23..=26 => more,
        27 | 28 => more * 8,
        29 => more * 64,
        _ => EDGES[more % EDGES.len()] + more / 16 % 5 - 2,
    }
}

impl<F: Family> Driver<'_, F> {
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let crowded = self.blocks.len() >= MANY || self.bytes >= MANY_BYTES;
        match bytes.byte() % 32 {
            // Requests that cannot be served.
            0 => self.request_too_much(bytes),
            1 => self.family.trim(),
            2..=12 => {
                self.free(bytes.word());
            }
            13..=20 => {
                let bytes = size(bytes);
                self.resize(bytes.wrapping_mul(31) % 1009, bytes);
            }
            _ if crowded => {
                self.free(bytes.word());
            }
            21..=23 => self.zeroed(bytes),
            24 | 25 => {
                let shift = bytes.byte() % 22;
                if let Ok(layout) = Layout::from_size_align(size(bytes), 1 << shift) {
                    let memory = self.family.aligned(layout);
                    self.got(memory, layout.size(), layout.align());
                    self.driven.aligned += usize::from(layout.align() > ALIGN);
                }
            }
            _ => {
                let bytes = size(bytes);
                let memory = self.family.malloc(bytes);
                self.got(memory, bytes, ALIGN);
            }
        }
    }

    fn request_too_much(&mut self, bytes: &mut Bytes<'_>) {
        let too_much = usize::MAX >> (bytes.byte() % 16);
        assert!(self.family.malloc(too_much).is_null());
        assert!(
            self.family
                .calloc(too_much, 1 + usize::from(bytes.byte()))
                .is_null()
        );
        // A block that cannot be made larger stays as it is.
        if let Some(block) = self.nth(bytes.word()) {
            // SAFETY: the block belongs to this driver; null is returned, so it still does.
            let moved = unsafe { self.family.realloc(block.memory.start().as_ptr(), too_much) };
            assert!(moved.is_null());
            check(block);
        }
        self.driven.refused += 1;
    }

    fn nth(&self, n: usize) -> Option<&Block> {
        self.blocks.values().nth(n.checked_rem(self.blocks.len())?)
    }

    fn zeroed(&mut self, bytes: &mut Bytes<'_>) {
        let count = 1 + usize::from(bytes.byte()) % 16;
        let each = size(bytes) / count;
        let memory = self.family.calloc(count, each);
        if let Some(start) = NonNull::new(memory) {
            // SAFETY: `in-hand`: just allocated; zeroed, so written.
            unsafe { InHand::of(start, count * each) }.check_zero(count * each);
        }
        self.got(memory, count * each, ALIGN);
        self.driven.zeroed += 1;
    }

    /// Takes over memory just allocated: checks that it is aligned, large enough and overlaps no
    /// other block, and fills it.
    fn got(&mut self, memory: *mut u8, asked: usize, align: usize) {
        let Some(start) = NonNull::new(memory) else {
            panic!("no memory for {asked} bytes");
        };
        // Also if a smaller alignment was requested, unless the block is smaller than `ALIGN`.
        let align = align.max(if asked >= ALIGN { ALIGN } else { 1 });
        assert!(
            start.addr().get().is_multiple_of(align),
            "{start:?}: {asked} bytes at {align}"
        );
        // SAFETY: the memory belongs to this driver.
        let usable = unsafe { self.family.usable_size(memory) };
        assert!(usable >= asked, "{usable} bytes for {asked}");
        // SAFETY: `in-hand`: just allocated, and nothing is read before it is written.
        let memory = unsafe { InHand::of(start, usable) };
        self.check_room(&memory);
        self.owners += 1;
        let pattern = Pattern::of(self.owners);
        let mut block = Block {
            memory,
            asked,
            pattern,
        };
        fill(&mut block);
        self.bytes += usable;
        self.driven.served += 1;
        self.driven.large += usize::from(asked > LARGE);
        self.blocks.insert(start.addr().get(), block);
    }

    fn check_room(&self, memory: &InHand) {
        let (start, end) = (memory.address(), memory.address() + memory.bytes().max(1));
        let before = self.blocks.range(..end).next_back();
        if let Some((_, block)) = before {
            let ends = block.memory.address() + block.memory.bytes().max(1);
            assert!(
                ends <= start,
                "{memory:?} is allocated, but {block:?} is in use"
            );
        }
    }

    /// Takes the `n`-th block out of the model, and checks its bytes.
    fn take(&mut self, n: usize) -> Option<Block> {
        let &address = self.blocks.keys().nth(n.checked_rem(self.blocks.len())?)?;
        let block = self.blocks.remove(&address)?;
        check(&block);
        self.bytes -= block.memory.bytes();
        Some(block)
    }

    fn free(&mut self, n: usize) -> bool {
        let Some(block) = self.take(n) else {
            return false;
        };
        // SAFETY: the block belongs to this driver, which uses it no more.
        unsafe { self.family.free(block.memory.start().as_ptr()) };
        self.driven.freed += 1;
        true
    }

    fn resize(&mut self, n: usize, bytes: usize) {
        let bytes = bytes.max(1);
        let Some(block) = self.take(n) else { return };
        let old = block.memory.start();
        // SAFETY: the block belongs to this driver, which uses only the result from now on.
        let new = unsafe { self.family.realloc(old.as_ptr(), bytes) };
        let Some(start) = NonNull::new(new) else {
            panic!("no memory for {bytes} bytes");
        };
        let kept = block.asked.min(bytes);
        // SAFETY: `in-hand`: just allocated; the first `kept` bytes hold what the old block held.
        let memory = unsafe { InHand::of(start, kept) };
        check_part(&memory, block.pattern, block.memory.bytes());
        self.driven.resized += 1;
        self.driven.moved += usize::from(start != old);
        self.got(new, bytes, ALIGN);
    }
}

/// Fills a block with its pattern; a large block only in the first bytes of each page, to be quick.
fn fill(block: &mut Block) {
    if block.memory.bytes() <= DENSE {
        block.memory.fill(block.pattern);
        return;
    }
    for mut piece in pieces(&block.memory, block.memory.bytes()) {
        piece.fill(block.pattern);
    }
}

fn check(block: &Block) {
    check_part(&block.memory, block.pattern, block.memory.bytes());
}

/// Checks memory that was filled as part of `filled` bytes.
fn check_part(memory: &InHand, pattern: Pattern, filled: usize) {
    if filled <= DENSE {
        memory.check_against(pattern);
        return;
    }
    for piece in pieces(memory, memory.bytes()) {
        piece.check_against(pattern);
    }
}

/// Iterates over the first 16 bytes of each page of memory.
fn pieces(memory: &InHand, bytes: usize) -> impl Iterator<Item = InHand> {
    let start = memory.start();
    let last = bytes.saturating_sub(16);
    (0..=last).step_by(4096).map(move |at| {
        // SAFETY: inside the memory, which belongs to the caller; the pieces do not overlap.
        unsafe { InHand::of(start.add(at), bytes.min(16)) }
    })
}
