//! The quarantine: freed memory waits there before it is used again.
//!
//! Each CPU has places for each size. A free draws one of them, puts its object there, and frees
//! what lay there for good. So an object waits for a random number of frees of its size, and nobody
//! who frees and allocates gets the same object again at once.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use brickyard_slab::sizes::process::SIZES;

use crate::instance::HeapError;

use super::guard_pages::guarded;

/// The most places of a size.
const PLACES: usize = 32;

/// Large objects have fewer places: so many bytes wait at most, or two objects.
const BYTES: usize = 64 << 10;

/// One more than sizes of objects: runs have places too.
const CLASSES: usize = SIZES.len() + 1;

/// The class of runs.
pub(super) const RUNS: usize = SIZES.len();

/// The places of runs.
const RUN_PLACES: usize = 8;

/// A CPU's own.
#[repr(align(128))]
struct CpuRow {
    random: AtomicU64,
    places: [[AtomicPtr<u8>; PLACES]; CLASSES],
}

/// See the [module](self).
pub(super) struct Waiting {
    rows: &'static [CpuRow],
}

/// The places of each class, less one: powers of two, so that a mask draws one.
static MASKS: [u8; CLASSES] = masks();

const fn masks() -> [u8; CLASSES] {
    let mut masks = [(RUN_PLACES - 1) as u8; CLASSES];
    let mut class = 0;
    while class < SIZES.len() {
        let mut places = PLACES;
        while places > 2 && places * SIZES[class] as usize > BYTES {
            places /= 2;
        }
        masks[class] = (places - 1) as u8;
        class += 1;
    }
    masks
}

impl Waiting {
    pub(super) fn new(cpus: usize, secret: u64) -> Result<Self, HeapError> {
        let memory = guarded(cpus * size_of::<CpuRow>())?;
        // SAFETY: the mapping is zero, which is a valid row (no memory, no random number yet),
        // begins with a page, is there for ever, and is this value's.
        let rows: &[CpuRow] = unsafe { core::slice::from_raw_parts(memory.as_ptr().cast(), cpus) };
        for (cpu, row) in rows.iter().enumerate() {
            // Relaxed, here and below: each row's numbers are its own, and any number serves.
            let seed = secret.wrapping_mul(2 * cpu as u64 + 1);
            row.random.store(seed | 1, Ordering::Relaxed);
        }
        Ok(Self { rows })
    }

    /// Puts freed memory into a random place of its class, and returns what lay there. A thread
    /// without a row of its own, such as one that ends, uses the first.
    #[inline(always)]
    pub(super) fn exchange(
        &self,
        cpu: usize,
        class: usize,
        memory: NonNull<u8>,
    ) -> Option<NonNull<u8>> {
        let row = self.rows.get(cpu).unwrap_or(&self.rows[0]);
        let place = &row.places[class][(row.draw() & MASKS[class]) as usize % PLACES];
        // Release and acquire: who takes it out sees what was written to it, by a free on another
        // CPU that used this row.
        NonNull::new(place.swap(memory.as_ptr(), Ordering::AcqRel))
    }

    /// Takes out what waits on all CPUs in a class, one by one; `None` if nothing does.
    pub(super) fn take_any(&self, class: usize) -> Option<NonNull<u8>> {
        let mut places = self.rows.iter().flat_map(|row| &row.places[class]);
        // Acquire: as above.
        places.find_map(|place| NonNull::new(place.swap(null_mut(), Ordering::Acquire)))
    }
}

impl CpuRow {
    /// A linear congruential generator (Knuth's MMIX), of which the uppermost bits are drawn. Two
    /// threads that draw at once may draw the same.
    #[inline(always)]
    fn draw(&self) -> u8 {
        let state = self.random.load(Ordering::Relaxed);
        let next = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random.store(next, Ordering::Relaxed);
        (state >> 56) as u8
    }
}
