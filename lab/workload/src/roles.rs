//! The purpose of a recorded allocation, from the recorded data: its migrate type, its flags, and,
//! for pages still in use at the end, the page's state.
//!
//! Flags do not determine the purpose, so there are rules. A movable request with `__GFP_ZERO` is
//! memory of a process. One with `__GFP_WRITE`, with `__GFP_NORETRY` (read-ahead), or without
//! `__GFP_FS` (from a file system) is a page of a file. Any other movable request is a copy of a
//! process's page or a small file's first page, and counts as memory of a process. An unmovable
//! single page with `__GFP_ZERO` and `__GFP_ACCOUNT` is a page table. The state at the end, where
//! it is more specific, takes precedence.

use brickyard::{Context, MigrateType, Mobility, Order, Request, ZoneKind};
use brickyard_trace::{Flags, PageUse};

use crate::pages::{Role, mark};

/// The bits of the relevant flags, on the kernel of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    zero: u64,
    fs: u64,
    write: u64,
    no_retry: u64,
    account: u64,
    compound: u64,
    direct_reclaim: u64,
    dma: u64,
    dma32: u64,
    high_memory: u64,
    movable: u64,
    known: bool,
}

impl Reader {
    /// Makes a reader for traces with these flags.
    #[must_use]
    pub fn new(flags: &Flags) -> Self {
        let either = |new: &str, old: &str| match flags.mask(new) {
            0 => flags.mask(old),
            mask => mask,
        };
        Self {
            zero: flags.mask("__GFP_ZERO"),
            fs: flags.mask("__GFP_FS"),
            write: flags.mask("__GFP_WRITE"),
            no_retry: flags.mask("__GFP_NORETRY"),
            account: flags.mask("__GFP_ACCOUNT"),
            compound: flags.mask("__GFP_COMP"),
            // Before Linux 4.4 `__GFP_WAIT` was the flag for direct reclaim.
            direct_reclaim: either("__GFP_DIRECT_RECLAIM", "__GFP_WAIT"),
            dma: flags.mask("__GFP_DMA"),
            dma32: flags.mask("__GFP_DMA32"),
            high_memory: flags.mask("__GFP_HIGHMEM"),
            movable: flags.mask("__GFP_MOVABLE"),
            known: !flags.0.is_empty(),
        }
    }

    /// Converts a recorded request to one of this library.
    #[must_use]
    pub const fn request(&self, order: Order, kind: MigrateType, flags: u64) -> Request {
        let mobility = match kind {
            MigrateType::Movable => Mobility::Movable,
            MigrateType::Reclaimable => Mobility::Reclaimable,
            MigrateType::Unmovable | MigrateType::HighAtomic | MigrateType::Isolate => {
                Mobility::Unmovable
            }
        };
        let request = Request::new(order, mobility);
        if !self.known {
            return request;
        }
        let request = if flags & self.direct_reclaim == 0 {
            request.in_context(Context::Atomic)
        } else {
            request
        };
        request.from_zones_up_to(self.highest(flags))
    }

    const fn highest(&self, flags: u64) -> ZoneKind {
        if flags & self.dma != 0 {
            ZoneKind::Dma
        } else if flags & self.dma32 != 0 {
            ZoneKind::Dma32
        } else if flags & self.high_memory == 0 {
            ZoneKind::Normal
        } else if flags & self.movable != 0 {
            ZoneKind::Movable
        } else {
            ZoneKind::HighMem
        }
    }

    /// Returns the role of a recorded request, and the initial marks of its page.
    #[must_use]
    pub const fn role(&self, order: Order, kind: MigrateType, flags: u64) -> (Role, u8) {
        match kind {
            MigrateType::Movable if !self.known || flags & self.zero != 0 => (Role::Anonymous, 0),
            MigrateType::Movable if flags & self.write != 0 => (Role::File, mark::DIRTY),
            MigrateType::Movable if flags & self.no_retry != 0 || flags & self.fs == 0 => {
                (Role::File, 0)
            }
            MigrateType::Movable => (Role::Anonymous, 0),
            MigrateType::Reclaimable => (Role::SlabReclaimable, 0),
            _ if order.get() == 0 && flags & self.zero != 0 && flags & self.account != 0 => {
                (Role::PageTable, 0)
            }
            _ if flags & self.compound != 0 => (Role::Slab, 0),
            _ => (Role::Kernel, 0),
        }
    }
}

/// Returns the role of a page with a recorded state. `slabs` is the role of slabs on this host: the
/// state does not show which of them are reclaimable.
#[must_use]
pub const fn of_usage(usage: PageUse, slabs: Role) -> Role {
    match usage {
        PageUse::Hole | PageUse::Reserved | PageUse::Free => Role::None,
        PageUse::Untold | PageUse::Huge => Role::Pinned,
        PageUse::Anonymous => Role::Anonymous,
        PageUse::File => Role::File,
        PageUse::Slab => slabs,
        PageUse::PageTable => Role::PageTable,
    }
}

/// Returns the role of slabs: the kind of which zoneinfo or vmstat counts more pages.
#[must_use]
pub fn slabs_by(text: &str) -> Role {
    let sum = |name: &str| -> u64 {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix(name)?.trim().parse::<u64>().ok())
            .fold(0, u64::saturating_add)
    };
    let (given_back, kept) = (sum("nr_slab_reclaimable "), sum("nr_slab_unreclaimable "));
    if given_back > kept {
        Role::SlabReclaimable
    } else {
        Role::Slab
    }
}
