//! Links inside free objects, encoded so that an overwritten link is detected.
//!
//! The stored word is the address of the next object, xored with a secret of the system and with
//! the word's own address, byte-swapped; the result is multiplied by an odd number, so that one
//! overwritten byte changes all bits above it. A link overwritten without knowing the secret
//! decodes to no object of the cache, but for one case in many millions; and a word copied from
//! another object does not decode at its new address.

#![allow(unsafe_code, reason = "links are stored in objects")]

use core::fmt;
use core::marker::PhantomData;
use core::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};

use brickyard_slab::design::{Backend, CacheInfo};
use brickyard_slab::{Local, PageSource};
#[cfg(not(loom))]
use brickyard_sync::AtomicUsize;
use brickyard_sync::Ordering;
// Under loom a word is more than its bytes, and objects are memory: there links are the hardware's.
#[cfg(loom)]
use core::sync::atomic::AtomicUsize;

use super::queue::Links;

/// How links are stored: [`Encoded`] or [`Plain`].
pub trait FreePointers: fmt::Debug + Clone + Copy + Send + Sync + 'static {
    /// Whether links are encoded, which detects an overwritten link at the cost of a few
    /// instructions at each free and each allocation. Plain links detect only an address outside
    /// the cache's slabs.
    const ENCODED: bool;
}

/// Links that cannot be forged without knowing the secret.
#[derive(Debug, Clone, Copy)]
pub enum Encoded {}

impl FreePointers for Encoded {
    const ENCODED: bool = true;
}

/// Links stored as plain addresses.
#[derive(Debug, Clone, Copy)]
pub enum Plain {}

impl FreePointers for Plain {
    const ENCODED: bool = false;
}

/// The golden ratio's fraction, an odd number, and its inverse modulo 2^64.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const GATHER: u64 = 0xf1de_83e1_9937_733d;
const _: () = assert!(SPREAD.wrapping_mul(GATHER) == 1);

/// The encoding of one system's links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoding<F> {
    secret: usize,
    way: PhantomData<F>,
}

impl<F: FreePointers> Encoding<F> {
    /// Returns the encoding of the system whose state is at address `at`.
    pub(super) const fn of(at: usize) -> Self {
        Self {
            secret: at.wrapping_mul(SPREAD as usize).rotate_left(29),
            way: PhantomData,
        }
    }

    #[inline(always)]
    const fn key(self, at: usize) -> usize {
        self.secret ^ at.swap_bytes()
    }

    /// Reads and decodes the link at an address.
    ///
    /// # Safety
    /// Invariant `link-is-ours`: the word there is the link of a free object that belongs to the
    /// caller. A free object belongs to its list alone; its link is written when it is put into a
    /// list, and so before it is read there.
    #[inline(always)]
    pub(super) unsafe fn read(self, at: usize) -> usize {
        // Relaxed, here and below: a free object belongs to one caller. (An atomic word, so that
        // the simulated multiprocessor charges it.) SAFETY: `link-is-ours`; links are aligned to
        // words, and are in pages whose addresses were exposed when they were taken.
        let word = unsafe { &*with_exposed_provenance::<AtomicUsize>(at) }.load(Ordering::Relaxed);
        if F::ENCODED {
            word.wrapping_mul(GATHER as usize) ^ self.key(at)
        } else {
            word
        }
    }

    /// Writes a link.
    ///
    /// # Safety
    /// The conditions of [`Encoding::read`].
    #[inline(always)]
    pub(super) unsafe fn write(self, at: usize, next: usize) {
        let word = if F::ENCODED {
            (next ^ self.key(at)).wrapping_mul(SPREAD as usize)
        } else {
            next
        };
        // SAFETY: as in `read`.
        let link = unsafe { &*with_exposed_provenance::<AtomicUsize>(at) };
        link.store(word, Ordering::Relaxed);
    }
}

/// Returns the offset of the link from the start of an object's place: in the object's first word,
/// or in the tail if there is one.
pub(super) const fn link_of(info: &CacheInfo) -> usize {
    match info.tail {
        0 => info.before,
        _ => info.tail_at(),
    }
}

/// The links of one cache's free objects.
#[derive(Debug)]
pub(super) struct ObjectLinks<'a, 'm, S, L, F> {
    pub(super) backend: &'a Backend<'m, S, L>,
    pub(super) info: &'a CacheInfo,
    /// See [`link_of`].
    pub(super) link: usize,
    pub(super) encoding: Encoding<F>,
}

impl<S, L, F: FreePointers> Clone for ObjectLinks<'_, '_, S, L, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, L, F: FreePointers> Copy for ObjectLinks<'_, '_, S, L, F> {}

impl<S: PageSource, L: Local, F: FreePointers> Links for ObjectLinks<'_, '_, S, L, F> {
    fn next(&self, object: usize) -> usize {
        // SAFETY: `link-is-ours`: callers walk lists that belong to them alone, and follow an
        // address only after `is_object`.
        unsafe { self.encoding.read(object + self.link) }
    }

    fn set_next(&self, object: usize, next: usize) {
        // SAFETY: as above.
        unsafe { self.encoding.write(object + self.link, next) };
    }

    fn is_object(&self, address: usize) -> bool {
        let pointer = NonNull::new(with_exposed_provenance_mut::<u8>(address));
        pointer.is_some_and(|pointer| self.backend.find(self.info, pointer).is_ok())
    }
}
