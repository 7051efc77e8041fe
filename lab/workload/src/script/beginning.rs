//! The state of memory before the first step of a script.

use brickyard::{MigrateType, Order};
use brickyard_trace::Trace;

use super::InitialBlock;
use crate::pages::{PageId, Role, mark};
use crate::roles;
use crate::start::{self, Idle, Inference, Known, Limit};

/// The state of memory before the first step: as the trace shows it, and the rest as it was drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    pub(super) first: u64,
    pub(super) pages: usize,
    pub(super) initial_blocks: Vec<InitialBlock>,
    pub(super) from_caches: u64,
    pub(super) idle: Vec<Idle>,
    pub(super) types: Vec<(usize, MigrateType)>,
    pub(super) limits: Vec<Limit>,
    pub(super) first_ticks: Vec<u64>,
    pub(super) known: Known,
    pub(super) block_order: u8,
}

impl Beginning {
    /// Puts it together from the page states of `trace` and what was inferred. `free` says of each
    /// page whether it is allocated before it is freed.
    pub(super) fn new(
        trace: &Trace,
        (first, pages): (u64, usize),
        slabs: Role,
        free: Vec<bool>,
        inferred: Inference,
    ) -> Self {
        let cached = with_idle(free, &inferred.idle);
        let (initial_blocks, from_caches) = initial_blocks(trace, first, slabs, &cached);
        Self {
            first,
            pages,
            initial_blocks,
            from_caches,
            idle: inferred.idle,
            types: inferred.types,
            limits: inferred.limits,
            first_ticks: inferred.first_ticks,
            known: inferred.known,
            block_order: trace.header.page_block_order,
        }
    }

    /// The host's frame of page 0, a multiple of the largest block.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The blocks in use.
    #[must_use]
    pub fn initial_blocks(&self) -> &[InitialBlock] {
        &self.initial_blocks
    }

    /// The free blocks in lists of CPUs, in the order in which they are put there.
    #[must_use]
    pub fn idle(&self) -> &[Idle] {
        &self.idle
    }

    /// The page blocks that are not movable: the first page of each, and its type.
    pub fn types(&self) -> impl Iterator<Item = (PageId, MigrateType)> + '_ {
        let first = |block: usize| PageId((block << self.block_order) as u32);
        self.types
            .iter()
            .map(move |&(block, kind)| (first(block), kind))
    }

    /// When the page sets of each of the recorded host's CPUs first shrink with time, in
    /// nanoseconds; they do every second. Where no event shows it, it is drawn.
    pub(crate) fn first_ticks(&self) -> &[u64] {
        &self.first_ticks
    }

    /// How much of it is known.
    #[must_use]
    pub const fn known(&self) -> Known {
        self.known
    }
}

/// Adds to the pages that were free when the trace began those that are known to lie in a CPU's
/// list.
fn with_idle(mut free: Vec<bool>, idle: &[Idle]) -> Vec<bool> {
    for block in idle {
        let from = block.page.0 as usize;
        let end = (from + block.order.frames()).min(free.len());
        free[from..end].fill(true);
    }
    free
}

/// Returns the blocks in use before the first step, and the number of pages that were in a CPU's
/// cache though their recorded use is unknown.
fn initial_blocks(
    trace: &Trace,
    first: u64,
    slabs: Role,
    cached: &[bool],
) -> (Vec<InitialBlock>, u64) {
    let mut blocks = Vec::new();
    let mut from_caches = 0;
    let unmanaged = start::unmanaged(trace);
    for (place, run) in trace.start.iter().enumerate() {
        let role = roles::of_usage(run.state.usage, slabs);
        if role == Role::None || run.frame < first || unmanaged.contains(&place) {
            continue;
        }
        let state = run.state;
        let mut marks = 0;
        for (is, bit) in [
            (state.active, mark::ACTIVE),
            (state.dirty, mark::DIRTY),
            (state.unevictable, mark::LOCKED),
        ] {
            marks |= if is { bit } else { 0 };
        }
        let mut page = run.frame - first;
        let end = (page + run.frames).min(cached.len() as u64);
        while page < end {
            let is_cached = |page: u64| role == Role::Pinned && cached[page as usize];
            if is_cached(page) {
                from_caches += 1;
                page += 1;
                continue;
            }
            // Pages that never move are combined into the largest aligned blocks.
            let most = if role == Role::Pinned {
                let rest = (page..end).take_while(|&page| !is_cached(page)).take(1024);
                let rest = rest.count() as u64;
                (page.trailing_zeros() as u8).min(rest.ilog2() as u8)
            } else {
                run.order
            };
            let order = Order::try_new(most).filter(|order| {
                let frames = order.frames() as u64;
                page.is_multiple_of(frames) && frames <= end - page
            });
            let order = order.unwrap_or_default();
            blocks.push(InitialBlock {
                page: PageId(page as u32),
                order,
                role,
                marks,
            });
            page += order.frames() as u64;
        }
    }
    (blocks, from_caches)
}
