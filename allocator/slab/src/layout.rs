//! Sizes and numbers that the whole crate agrees on. They lay out the tables of pages and the rows
//! of CPUs.

use core::ops::RangeInclusive;

/// The number of a cache; 0 is none.
pub type CacheId = u8;

/// The most caches of one system. Their numbers are bytes; 0 is none, and 1 is the cache of
/// sheaves.
pub const MAX_CACHES: usize = 254;

/// The cache that slabs need for themselves.
pub(crate) const BOOT_CACHE: CacheId = 1;

/// The most pages of a source: records link pages by their numbers plus 1, in 32 bits. With pages
/// of 4 KiB that is 16 TiB.
pub const MAX_PAGES: usize = u32::MAX as usize;

/// The shifts of a page's size. The least page holds a sheaf. The largest slab of pages of 64 KiB
/// is the longest for which objects' numbers are worked out exactly.
pub(crate) const PAGE_SHIFTS: RangeInclusive<u32> = 10..=16;

/// The bytes of a word.
pub const WORD_BYTES: usize = size_of::<usize>();
/// The words of a sheaf.
pub const SHEAF_WORDS: usize = 128;
/// The bytes of a sheaf. Its address is a multiple of them.
pub const SHEAF_BYTES: usize = SHEAF_WORDS * WORD_BYTES;
/// The most objects that a sheaf holds: all words except the link, the top and the sentinel.
pub const MAX_CAPACITY: usize = SHEAF_WORDS - 3;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(SHEAF_BYTES == 1024);
