//! Links inside free objects, so written that one which somebody wrote over is noticed.
//!
//! The word kept is the address of the next object, exclusive-or a secret of the system,
//! exclusive-or the word's own address with its bytes turned around; all of it times an odd number,
//! so that one byte written over changes all bits above it. Whoever writes over a link without
//! knowing the secret leaves a word that stands for no object of the cache, but for one case in
//! many millions; and a word copied from another object does not fit its new place.

use core::ptr::{NonNull, with_exposed_provenance_mut};

use super::queue::Links;
use crate::ground::{Footing, Ground};
use crate::kind::Kind;
use crate::plan::FreePointers;

/// How links are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoding {
    secret: usize,
    /// Which bits of a word's address count: all or none.
    place: usize,
    /// An odd number ...
    spread: usize,
    /// ... and the one that undoes it.
    gather: usize,
}

/// The golden ratio's fraction, and its inverse modulo 2^64.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const GATHER: u64 = 0xf1de_83e1_9937_733d;
const _: () = assert!(SPREAD.wrapping_mul(GATHER) == 1);

impl Encoding {
    pub(super) const fn new(pointers: FreePointers, secret: usize) -> Self {
        match pointers {
            FreePointers::Encoded => Self {
                secret,
                place: usize::MAX,
                spread: SPREAD as usize,
                gather: GATHER as usize,
            },
            FreePointers::Plain => Self {
                secret: 0,
                place: 0,
                spread: 1,
                gather: 1,
            },
        }
    }

    #[inline(always)]
    const fn key(self, at: usize) -> usize {
        self.secret ^ (at.swap_bytes() & self.place)
    }

    /// What the link at an address stands for.
    ///
    /// # Safety
    /// The word there is the link of a free object that is the caller's: invariant `link-is-ours`.
    /// Free objects are nobody's but their list's; they are written when they come into a list, and
    /// so before they are read there.
    #[inline(always)]
    pub(super) unsafe fn read(self, at: usize) -> usize {
        // SAFETY: `link-is-ours`; links are aligned to words, and lie in pages whose addresses were
        // exposed when they were taken.
        let word = unsafe { with_exposed_provenance_mut::<usize>(at).read() };
        word.wrapping_mul(self.gather) ^ self.key(at)
    }

    /// Writes a link.
    ///
    /// # Safety
    /// As [`Encoding::read`].
    #[inline(always)]
    pub(super) unsafe fn write(self, at: usize, next: usize) {
        let word = (next ^ self.key(at)).wrapping_mul(self.spread);
        // SAFETY: as in `read`.
        unsafe { with_exposed_provenance_mut::<usize>(at).write(word) };
    }
}

/// The links of one cache's free objects.
#[derive(Debug)]
pub(super) struct ObjectLinks<'a, 'm, D: Footing> {
    pub(super) ground: &'a Ground<'m, D>,
    pub(super) kind: &'a Kind,
    pub(super) encoding: Encoding,
}

impl<'m, D: Footing> Clone for ObjectLinks<'_, 'm, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'m, D: Footing> Copy for ObjectLinks<'_, 'm, D> {}

impl<'m, D: Footing> Links for ObjectLinks<'_, 'm, D> {
    fn next(&self, object: usize) -> usize {
        // SAFETY: `link-is-ours`: the callers here walk lists that they have to themselves, and go
        // to an address only after `is_object`.
        unsafe { self.encoding.read(object + self.kind.link) }
    }

    fn set_next(&self, object: usize, next: usize) {
        // SAFETY: as above.
        unsafe { self.encoding.write(object + self.kind.link, next) };
    }

    fn is_object(&self, address: usize) -> bool {
        let pointer = NonNull::new(with_exposed_provenance_mut::<u8>(address));
        pointer.is_some_and(|pointer| self.ground.find(self.kind, pointer).is_ok())
    }
}
