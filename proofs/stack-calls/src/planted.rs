//! Calls that break the rules on purpose, one each: `proofs/stack --self-test` must find them.

use core::hint::black_box;

/// Takes more stack than any call may.
#[inline(never)]
fn deep(number: usize) -> usize {
    let large = black_box([number; 1000]);
    large[number % 1000]
}

calls! {
    Planted {
        deep(number: usize) -> usize = super::deep(number) + 1;
    }
}

#[cfg(feature = "recursive")]
mod recursive {
    use core::hint::black_box;

    /// Calls itself, and nobody has said how often.
    #[inline(never)]
    fn again(number: usize) -> usize {
        match black_box(number) {
            0 => 0,
            _ => black_box(again(number - 1)) + 1,
        }
    }

    calls! {
        Planted {
            again(number: usize) -> usize = super::again(number) + 1;
        }
    }
}

#[cfg(feature = "indirect")]
mod indirect {
    use core::hint::black_box;

    calls! {
        Planted {
            through(work: fn(usize) -> usize) -> usize = black_box(work)(1) + 1;
        }
    }
}
