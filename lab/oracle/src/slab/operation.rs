//! Every call of slabs, read from bytes.

use core::alloc::Layout;

use crate::Bytes;

/// The CPUs that the operations run on; the last one has no queues of its own.
pub(super) const CPUS: usize = 4;

/// The driver's places for caches.
pub(super) const SLOTS: usize = 6;

/// A cache to be made, mostly with small objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Make {
    pub(super) size: usize,
    pub(super) align: usize,
    /// One of the constructors, which has a size of its own.
    pub(super) constructor: Option<usize>,
    pub(super) reclaimable: bool,
    pub(super) everywhere: bool,
    pub(super) checked: bool,
}

/// A free that must be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bad {
    /// The object freed just before.
    Again,
    /// An address outside the span.
    Outside,
    /// A page of the span that is no slab's.
    NoSlab,
    /// An address this many bytes after an object's start.
    Inside(usize),
    /// An object of another cache.
    Foreign,
}

/// One call of slabs, or event of the machine. Numbers choose an object or a slot, modulo their
/// count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    SwitchTo(usize),
    Interrupt(bool),
    Make(Make),
    Alloc(usize),
    /// From a slot, of a node's memory.
    AllocOn(usize, usize),
    AllocZeroed(usize),
    AllocBulk(usize, usize),
    Free(usize),
    /// From which slot, how many, and whether a bad one follows.
    FreeBulk(usize, usize, bool),
    FreeBad(usize, Bad),
    AllocGeneral(Layout),
    /// Sets objects aside, and uses this many.
    Reserve(usize, usize),
    ShrinkCache(usize),
    Trim,
    Drain,
    Shrink,
    Destroy(usize),
    /// Frees all objects of a slot.
    FreeAll(usize),
    /// Limits how many more pages can be taken.
    Allow(Option<usize>),
    /// Checks every byte of every object.
    Check,
}

impl Operation {
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Self {
        match bytes.byte() % 64 {
            0..=3 => Self::SwitchTo(bytes.below(CPUS)),
            4 => Self::Interrupt(true),
            5..=7 => Self::Interrupt(false),
            8..=10 => Self::Make(Make::read(bytes)),
            11..=18 => Self::Alloc(bytes.below(SLOTS)),
            19 => Self::AllocOn(bytes.below(SLOTS), usize::from(bytes.byte())),
            20 | 21 => Self::AllocZeroed(bytes.below(SLOTS)),
            22..=24 => Self::AllocBulk(bytes.below(SLOTS), 1 + bytes.below(150)),
            25..=36 => Self::Free(bytes.word()),
            37..=39 => {
                let (slot, many) = (bytes.below(SLOTS), bytes.below(150));
                Self::FreeBulk(slot, many, bytes.byte().is_multiple_of(2))
            }
            40..=42 => Self::FreeBad(bytes.word(), Bad::read(bytes)),
            43..=50 => Self::AllocGeneral(layout(bytes)),
            51 => Self::Reserve(bytes.below(SLOTS), bytes.below(12)),
            52 => Self::ShrinkCache(bytes.below(SLOTS)),
            53 => Self::Trim,
            54 => Self::Drain,
            55 => Self::Shrink,
            56..=58 => Self::Destroy(bytes.below(SLOTS)),
            59 => Self::FreeAll(bytes.below(SLOTS)),
            60 => Self::Allow(Some(bytes.below(12))),
            61 | 62 => Self::Allow(None),
            _ => Self::Check,
        }
    }
}

impl Bad {
    fn read(bytes: &mut Bytes<'_>) -> Self {
        match bytes.byte() % 8 {
            0..=3 => Self::Again,
            4 => Self::Outside,
            5 => Self::NoSlab,
            6 => Self::Inside(1 + bytes.word()),
            _ => Self::Foreign,
        }
    }
}

/// Reads a size: mostly below 300 bytes, now and then up to `most`.
fn size(bytes: &mut Bytes<'_>, most: usize) -> usize {
    let (kind, size) = (bytes.byte() % 8, bytes.word());
    match kind {
        0..=4 => 1 + size % 300,
        5 | 6 => 1 + size % 5000,
        _ => 1 + size % most,
    }
}

impl Make {
    fn read(bytes: &mut Bytes<'_>) -> Self {
        let (flags, align) = (bytes.byte(), bytes.byte() % 16);
        Self {
            size: size(bytes, 64 << 10),
            // Mostly a word, up to a page.
            align: 1 << align.saturating_sub(3),
            constructor: (flags & 3 == 0).then(|| usize::from(bytes.byte())),
            reclaimable: flags & 4 != 0,
            everywhere: flags & 8 != 0,
            checked: flags & 16 != 0,
        }
    }
}

/// Reads a layout: mostly one that a general size serves, rarely one that is too large.
fn layout(bytes: &mut Bytes<'_>) -> Layout {
    let size = size(bytes, 48 << 10) - 1;
    let size = match bytes.byte() % 16 {
        // More than a heap's largest size too.
        0 => size + (128 << 10) + 1,
        1..=5 => size * 4,
        _ => size,
    };
    let align = 1 << (bytes.byte() % 26).saturating_sub(13);
    Layout::from_size_align(size, align).unwrap_or(Layout::new::<u64>())
}
