//! General sizes: which cache serves a request that names no cache.
//!
//! The steps are sixteen bytes up to 128. Above, there are four steps per doubling, up to 32 KiB.
//! So above 128 bytes at most a fifth of an object is wasted.

use core::alloc::Layout;

/// All general sizes, ascending.
pub const SIZES: [u32; 40] = sizes();

/// The largest general size.
pub const MAX_GENERAL: usize = 32 << 10;

/// The bytes between two entries of [`CLASSES`].
pub const STEP: usize = 16;

/// The number of the size that serves a request. The index is the request's size in steps of
/// [`STEP`], rounded up.
pub static CLASSES: [u8; MAX_GENERAL / STEP + 1] = classes();

const fn sizes() -> [u32; 40] {
    let mut sizes = [0; 40];
    let mut i = 0;
    while i < 8 {
        sizes[i] = 16 * (i as u32 + 1);
        i += 1;
    }
    while i < 40 {
        let doubling = 128 << ((i - 8) / 4);
        sizes[i] = doubling + doubling / 4 * ((i as u32 - 8) % 4 + 1);
        i += 1;
    }
    sizes
}

const fn classes() -> [u8; MAX_GENERAL / STEP + 1] {
    let mut classes = [0; MAX_GENERAL / STEP + 1];
    let mut class = 0;
    let mut steps = 0;
    while steps < classes.len() {
        if steps * STEP > SIZES[class] as usize {
            class += 1;
        }
        classes[steps] = class as u8;
        steps += 1;
    }
    classes
}

/// Returns the number of the smallest size that serves `layout`: large enough, and a multiple of
/// its alignment, as far as slabs are aligned themselves. `None`: take pages instead.
#[inline]
#[must_use]
pub const fn class_of(layout: Layout) -> Option<usize> {
    if layout.size() > MAX_GENERAL || layout.align() > MAX_GENERAL {
        return None;
    }
    let class = CLASSES[layout.size().div_ceil(STEP)] as usize;
    aligned(&SIZES, class, layout.align())
}

/// Returns the number of the first of `sizes`, from `class` on, that is a multiple of `align`.
#[inline]
#[must_use]
pub const fn aligned(sizes: &[u32], mut class: usize, align: usize) -> Option<usize> {
    // A size is aligned to the largest power of two that divides it. Every power of two is a size,
    // so the search ends there.
    while class < sizes.len() {
        if sizes[class] as usize & (align - 1) == 0 {
            return Some(class);
        }
        class += 1;
    }
    None
}

macro_rules! names {
    ($($size:literal)*) => {
        /// Returns the name of a general size's cache. Each has its own, so that rules can name one
        /// alone, and all of them by `general-*`.
        #[must_use]
        pub const fn name_of(size: u32) -> &'static str {
            match size {
                $($size => concat!("general-", $size),)*
                _ => "general",
            }
        }
    };
}

names! {
    16 32 48 64 80 96 112 128 160 192 224 256 320 384 448 512 640 768 896 1024 1280 1536 1792 2048 2560 3072 3584 4096 5120 6144 7168 8192
    10240 12288 14336 16384 20480 24576 28672 32768
}

/// Every general size has a name of its own.
const _: () = {
    let mut i = 0;
    while i < SIZES.len() {
        assert!(name_of(SIZES[i]).len() > "general-".len());
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_gets_the_smallest_size_that_serves() {
        for size in 0..=MAX_GENERAL {
            for align in [1, 8, 16, 64, 4096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let naive = SIZES
                    .iter()
                    .position(|&s| s as usize >= size && (s as usize).is_multiple_of(align));
                assert_eq!(class_of(layout), naive, "{layout:?}");
            }
        }
        let beyond = Layout::from_size_align(MAX_GENERAL + 1, 1).unwrap();
        assert_eq!(class_of(beyond), None);
    }

    #[test]
    fn a_fifth_is_wasted_at_most_above_128() {
        for pair in SIZES.windows(2).filter(|pair| pair[0] >= 128) {
            let waste = pair[1] - (pair[0] + 1);
            assert!(waste * 5 <= pair[1], "{pair:?}");
        }
        assert_eq!(SIZES[39] as usize, MAX_GENERAL);
    }
}
