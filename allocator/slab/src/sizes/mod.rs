//! General sizes: which cache serves a request that names no cache.
//!
//! The steps are sixteen bytes up to 128. Above, there are four steps per doubling. So above 128
//! bytes at most a fifth of an object is wasted. A kernel's sizes, these, end at 32 KiB; those of a
//! heap ([`process`]) have more steps, and end at 128.

pub mod process;

use core::alloc::Layout;

/// All general sizes, ascending.
pub const SIZES: [u32; 40] = sizes(NO_EXTRA_STEPS);

/// The largest general size.
pub const MAX_GENERAL: usize = 32 << 10;

/// The bytes between two entries of [`CLASSES`].
pub const STEP: usize = 16;

/// The number of the size that serves a request. The index is the request's size in steps of
/// [`STEP`], rounded up.
pub static CLASSES: [u8; MAX_GENERAL / STEP + 1] = classes(&SIZES);

/// Where there are more steps than four per doubling.
struct ExtraSteps {
    /// A power of two from here on is followed by a size that is an eighth above it.
    eighth_from: u32,
    /// From here on all steps are eighths.
    eighths_from: u32,
}

const NO_EXTRA_STEPS: ExtraSteps = ExtraSteps {
    eighth_from: u32::MAX,
    eighths_from: u32::MAX,
};

/// Returns the first `N` sizes.
const fn sizes<const N: usize>(extra: ExtraSteps) -> [u32; N] {
    let mut sizes = [0; N];
    let mut size: u32 = 0;
    let mut i = 0;
    while i < N {
        size += match size {
            0..128 => 16,
            _ => {
                let doubling = 1 << size.ilog2();
                let before_eighth = size == doubling && size >= extra.eighth_from;
                let is_eighth = size == doubling + doubling / 8;
                let is_half = before_eighth || is_eighth || size >= extra.eighths_from;
                doubling / if is_half { 8 } else { 4 }
            }
        };
        sizes[i] = size;
        i += 1;
    }
    sizes
}

const fn classes<const N: usize>(sizes: &[u32]) -> [u8; N] {
    let mut classes = [0; N];
    let mut class = 0;
    let mut steps = 0;
    while steps < N {
        if steps * STEP > sizes[class] as usize {
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
    class_in(&SIZES, &CLASSES, layout)
}

/// Returns the class of a request ([`class_of`]) by these sizes, and the classes of requests in
/// them.
#[inline]
const fn class_in(sizes: &[u32], classes: &[u8], layout: Layout) -> Option<usize> {
    let most = sizes[sizes.len() - 1] as usize;
    if layout.size() > most || layout.align() > most {
        return None;
    }
    let class = classes[layout.size().div_ceil(STEP)] as usize;
    aligned(sizes, class, layout.align())
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
    16 32 48 64 80 96 112 128 160 192 224 256 320 384 448 512 640 768 896 1024 1280 1536 1792 2048 2560 3072 3584 4096 4608 5120 6144 7168
    8192 9216 10240 12288 14336 16384 18432 20480 24576 28672 32768 36864 40960 45056 49152 53248 57344 61440 65536
    73728 81920 90112 98304 106496 114688 122880 131072
}

/// Every general size has a name of its own.
const _: () = {
    all_have_names(&SIZES);
    all_have_names(&process::SIZES);
};

const fn all_have_names(sizes: &[u32]) {
    let mut i = 0;
    while i < sizes.len() {
        assert!(name_of(sizes[i]).len() > "general-".len());
        i += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table: its sizes, the largest of them, and what it says of a request.
    type Table = (&'static [u32], usize, fn(Layout) -> Option<usize>);

    const TABLES: [Table; 2] = [
        (&SIZES, MAX_GENERAL, class_of),
        (&process::SIZES, process::MAX_GENERAL, process::class_of),
    ];

    #[test]
    fn every_request_gets_the_smallest_size_that_serves() {
        for (sizes, most, class_of) in TABLES {
            for size in 0..=most {
                for align in [1, 8, 16, 64, 512, 4096] {
                    let layout = Layout::from_size_align(size, align).unwrap();
                    let naive = sizes
                        .iter()
                        .position(|&s| s as usize >= size && (s as usize).is_multiple_of(align));
                    assert_eq!(class_of(layout), naive, "{layout:?}");
                }
            }
            let beyond = Layout::from_size_align(most + 1, 1).unwrap();
            assert_eq!(class_of(beyond), None);
            let beyond = Layout::from_size_align(1, 2 * most).unwrap();
            assert_eq!(class_of(beyond), None);
        }
    }

    #[test]
    fn a_fifth_is_wasted_at_most_above_128() {
        for (sizes, most, _) in TABLES {
            for pair in sizes.windows(2).filter(|pair| pair[0] >= 128) {
                let waste = pair[1] - (pair[0] + 1);
                assert!(waste * 5 <= pair[1], "{pair:?}");
            }
            assert_eq!(sizes.last().map(|&size| size as usize), Some(most));
            assert!(sizes.is_sorted());
        }
    }

    #[test]
    fn a_heap_has_the_sizes_of_a_kernel_and_more() {
        let more: std::vec::Vec<_> = process::SIZES
            .into_iter()
            .filter(|size| !SIZES.contains(size) && *size as usize <= MAX_GENERAL)
            .collect();
        assert_eq!(more, [4608, 9216, 18432]);
        assert!(SIZES.iter().all(|size| process::SIZES.contains(size)));
    }
}
