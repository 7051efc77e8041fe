//! Typed slices out of memory that the caller supplies: the allocator has no heap for its records.

#[cfg(not(loom))]
use core::mem::ManuallyDrop;
use core::mem::{MaybeUninit, align_of, size_of};
use core::ptr;
use core::slice;

/// Makes `count` values with `make` at the start of `memory`, aligned as they need it.
///
/// Returns the values and the memory after them, or `None` if `memory` is too small (then nothing
/// is written). The values are never dropped, including those made before a `make` that panics. The
/// cost is one call of `make` for each value.
///
/// Both parts are borrowed for as long as the memory was, and do not overlap. So one value cannot
/// get two owners.
///
/// ```
/// use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 64];
/// let (words, rest) = brickyard_sync::place(&mut memory, 4, || 7_u32).unwrap();
/// assert_eq!(words, [7; 4]);
/// assert!(rest.len() >= 64 - 4 * 4 - 3);
/// assert!(brickyard_sync::place(rest, 1000, || 0_u64).is_none());
/// ```
pub fn place<T>(
    memory: &mut [MaybeUninit<u8>],
    count: usize,
    mut make: impl FnMut() -> T,
) -> Option<(&mut [T], &mut [MaybeUninit<u8>])> {
    // SAFETY: the place is written.
    unsafe { place_by(memory, count, |place: *mut T| place.write(make())) }
}

/// A slice that was placed, and the memory after it.
type Split<'a, T> = (&'a mut [T], &'a mut [MaybeUninit<u8>]);

/// Places a slice ([`place()`]) of values that `write` makes where they are to be.
///
/// # Safety
/// `write` makes a value at the place that it is given, which is aligned for it and holds none.
pub(crate) unsafe fn place_by<T>(
    memory: &mut [MaybeUninit<u8>],
    count: usize,
    mut write: impl FnMut(*mut T),
) -> Option<Split<'_, T>> {
    let (room, rest) = room_for::<T>(memory, count)?;
    for place in &mut *room {
        write(place.as_mut_ptr());
    }
    // SAFETY: all values of the room have been written.
    Some((unsafe { &mut *(ptr::from_mut(room) as *mut [T]) }, rest))
}

/// Returns room for `count` values at the start of `memory`, and the memory after it.
fn room_for<T>(memory: &mut [MaybeUninit<u8>], count: usize) -> Option<Split<'_, MaybeUninit<T>>> {
    let skip = memory.as_ptr().align_offset(align_of::<T>());
    let bytes = size_of::<T>().checked_mul(count)?;
    if skip.checked_add(bytes)? > memory.len() {
        return None;
    }
    let (ours, rest) = memory.split_at_mut(skip + bytes);
    let first = ours.get_mut(skip..)?.as_mut_ptr().cast();
    // Invariant `place-in-bounds`: `first` is aligned for T, and `count` values fit between it and
    // the end of `ours`, as computed above.
    // SAFETY: by `place-in-bounds`. The memory is borrowed mutably for as long as the slice lives,
    // and `rest` does not overlap it.
    Some((unsafe { slice::from_raw_parts_mut(first, count) }, rest))
}

/// Values of which one is all zeros, so that it can be made where it is to be, without a copy on
/// the stack first: see [`Slot::place`](crate::Slot::place). The compiler checks that it is.
pub trait Blank: Sized {
    /// The value that is all zeros. It has no padding.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "a pattern to make values from, never used in place"
    )]
    const BLANK: Self;
}

/// Returns true if all bytes of [`Blank::BLANK`] are 0. For constants: the compiler then refuses a
/// value with padding.
#[cfg(not(loom))]
pub(crate) const fn is_all_zeros<T: Blank>() -> bool {
    let value = ManuallyDrop::new(T::BLANK);
    let first = (&raw const value).cast::<u8>();
    let mut at = 0;
    while at < size_of::<T>() {
        // SAFETY: a byte of `value`. In a constant, one that is not there or is a part of a pointer
        // is a compile error.
        if unsafe { *first.add(at) } != 0 {
            return false;
        }
        at += 1;
    }
    true
}

/// Values that are valid when all their bytes are 0.
///
/// # Safety
/// Such values are valid, and then equal [`Zeroable::ZERO`]. (Under loom, words are more than their
/// bytes; nothing there relies on this.)
pub unsafe trait Zeroable: Sized {
    /// The value whose bytes are 0.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "a pattern to make values from, never used in place"
    )]
    const ZERO: Self;
}

macro_rules! zeroable {
    ($($word:ident)*) => {$(
        // SAFETY: an integer.
        unsafe impl Zeroable for crate::$word {
            const ZERO: Self = Self::new(0);
        }
    )*};
}

zeroable!(AtomicU8 AtomicU32 AtomicU64 AtomicUsize GuardedU32 GuardedU64);

/// Takes `count` values at the start of `memory`, which is zero, without touching it. For tables as
/// long as the address space that they describe.
///
/// Returns the values and the memory after them, or `None` if `memory` is too small.
///
/// # Safety
/// Every byte of `memory` is 0.
pub unsafe fn place_zeroed<T: Zeroable>(
    memory: &mut [MaybeUninit<u8>],
    count: usize,
) -> Option<(&mut [T], &mut [MaybeUninit<u8>])> {
    if cfg!(loom) {
        return place(memory, count, || T::ZERO);
    }
    let (room, rest) = room_for::<T>(memory, count)?;
    // SAFETY: by the contracts of this function and of `Zeroable`, the zeros there are values.
    Some((unsafe { &mut *(ptr::from_mut(room) as *mut [T]) }, rest))
}

/// Memory that is zero, in which tables are made without touching it: see [`place_zeroed`].
///
/// ```
/// use brickyard_sync::{AtomicU64, Ordering, Zeros};
/// use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::new(0); 64];
/// // SAFETY: it is.
/// let zeros = unsafe { Zeros::new(&mut memory) };
/// let (words, rest) = zeros.place::<AtomicU64>(4).unwrap();
/// assert_eq!(words[3].load(Ordering::Relaxed), 0);
/// assert!(rest.place::<AtomicU64>(5).is_none());
/// ```
#[derive(Debug)]
pub struct Zeros<'m>(&'m mut [MaybeUninit<u8>]);

impl<'m> Zeros<'m> {
    /// Wraps memory that is zero.
    ///
    /// # Safety
    /// Every byte of it is 0. (Nobody else can change that any more: it is borrowed for good.)
    #[must_use]
    pub const unsafe fn new(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self(memory)
    }

    /// Returns its length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns the bytes from its start to the next multiple of `align`, a power of two.
    #[must_use]
    pub fn bytes_to(&self, align: usize) -> usize {
        self.0.as_ptr().align_offset(align)
    }

    /// Returns its first `bytes` bytes and the rest, or `None` if it is shorter.
    #[must_use]
    pub fn split(self, bytes: usize) -> Option<(Self, Self)> {
        let (first, rest) = self.0.split_at_mut_checked(bytes)?;
        Some((Self(first), Self(rest)))
    }

    /// Returns the memory, for any use.
    #[must_use]
    pub const fn into_memory(self) -> &'m mut [MaybeUninit<u8>] {
        self.0
    }

    /// Takes `count` values at its start. Returns them and the rest, or `None` if it is too short.
    #[must_use]
    pub fn place<T: Zeroable>(self, count: usize) -> Option<(&'m mut [T], Self)> {
        // SAFETY: the caller of `new` promised that it is zero, and nothing here has written to it.
        let (values, rest) = unsafe { place_zeroed(self.0, count) }?;
        Some((values, Self(rest)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn aligns_and_leaves_the_rest() {
        #[repr(align(16))]
        struct Memory([MaybeUninit<u8>; 96]);
        let mut memory = Memory([MaybeUninit::uninit(); 96]);
        let (_, odd) = memory.0.split_at_mut(1);
        let (words, rest) = place(odd, 3, || 5_u64).unwrap();
        assert_eq!(words, [5, 5, 5]);
        assert_eq!(words.as_ptr() as usize % 8, 0);
        assert_eq!(rest.len(), 96 - 8 - 24);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let mut memory = [MaybeUninit::uninit(); 16];
        assert!(place(&mut memory, 5, || 0_u32).is_none());
        assert!(place(&mut memory, usize::MAX, || 0_u32).is_none());
        assert!(place(&mut memory, 0, || 0_u32).is_some());
    }
}
