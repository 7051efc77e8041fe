//! After cfrac, which factors numbers by continued fractions: arithmetic with numbers of any
//! length, each in a block of its own, that lives for one operation. One sequence is computed, x² +
//! c modulo 2^128, and compared now and then with the same by the processor's arithmetic.

use core::ptr::NonNull;
use core::slice;

use crate::loads::block::wrong;
use crate::loads::work::{LoadResult, LoadTask};

const STEPS: u64 = 8_000_000;

/// The digits of a result, in base 2^32.
const DIGITS: usize = 4;

/// What is added in each step.
const ADDED: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// How often the result is compared.
const COMPARED: u64 = 1024;

/// How many numbers are kept, as cfrac keeps its base of primes.
const KEPT: usize = 64;

/// A natural number, the lowest digit first. Invariant `own-digits`: `start` has room for `length`
/// digits, all written, that nobody else owns.
#[derive(Debug)]
struct Number {
    start: NonNull<u32>,
    length: usize,
    operations: u64,
}

impl Number {
    /// Makes a number of so many digits, each computed from its place and those below.
    fn new(length: usize, operations: u64) -> Self {
        let bytes = length * size_of::<u32>();
        // SAFETY: any size may be asked for.
        let start = NonNull::new(unsafe { libc::malloc(bytes) }.cast::<u32>());
        let Some(start) = start else {
            wrong(format_args!("an allocation of {bytes} bytes failed"));
        };
        // SAFETY: `malloc` has just returned room for so many digits.
        unsafe { start.as_ptr().write_bytes(0, length) };
        Self {
            start,
            length,
            operations: operations + 1,
        }
    }

    fn from(mut value: u128) -> Self {
        let length = (128 - value.leading_zeros()).div_ceil(32) as usize;
        let mut number = Self::new(length, 0);
        for digit in number.digits_mut() {
            *digit = value as u32;
            value >>= 32;
        }
        number
    }

    const fn digits(&self) -> &[u32] {
        // SAFETY: `own-digits`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    const fn digits_mut(&mut self) -> &mut [u32] {
        // SAFETY: `own-digits`.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    fn value(&self) -> u128 {
        let digits = self.digits().iter().rev();
        digits.fold(0, |value, &digit| value << 32 | u128::from(digit))
    }

    fn square(&self) -> Self {
        let digits = self.digits();
        let mut square = Self::new(2 * self.length, self.operations);
        for (place, &left) in digits.iter().enumerate() {
            let mut carry = 0;
            for (&right, sum) in digits.iter().zip(&mut square.digits_mut()[place..]) {
                carry += u64::from(left) * u64::from(right) + u64::from(*sum);
                *sum = carry as u32;
                carry >>= 32;
            }
            square.digits_mut()[place + self.length] = carry as u32;
        }
        square
    }

    fn plus(&self, other: &Self) -> Self {
        let length = self.length.max(other.length) + 1;
        let mut sum = Self::new(length, self.operations);
        let digit = |of: &Self, place| of.digits().get(place).copied().map_or(0, u64::from);
        let mut carry = 0;
        for (place, to) in sum.digits_mut().iter_mut().enumerate() {
            carry += digit(self, place) + digit(other, place);
            *to = carry as u32;
            carry >>= 32;
        }
        sum
    }

    /// Modulo 2^128, without zeros above the highest digit.
    fn remainder(&self) -> Self {
        let digits = &self.digits()[..self.length.min(DIGITS)];
        let length = digits.iter().rposition(|&digit| digit != 0);
        let length = length.map_or(0, |highest| highest + 1);
        let mut remainder = Self::new(length, self.operations);
        remainder.digits_mut().copy_from_slice(&digits[..length]);
        remainder
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: `own-digits`.
        unsafe { libc::free(self.start.as_ptr().cast()) };
    }
}

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let added = Number::from(ADDED);
    let mut kept: Vec<Option<Number>> = core::iter::repeat_with(|| None).take(KEPT).collect();
    let (mut number, mut expected) = (Number::from(3), 3_u128);
    for step in 0..work.part(STEPS) {
        let next = number.square().plus(&added).remainder();
        expected = expected.wrapping_mul(expected).wrapping_add(ADDED);
        if step % COMPARED == 0 && next.value() != expected {
            wrong(format_args!(
                "step {step} has the result {:x} instead of {expected:x}",
                next.value()
            ));
        }
        let place = next
            .digits()
            .first()
            .map_or(0, |&digit| digit as usize % KEPT);
        kept[place] = Some(core::mem::replace(&mut number, next));
    }
    LoadResult::of(number.operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_that_of_the_processor() {
        for value in [0, 1, 0xffff_ffff, 1 << 32, u128::MAX, ADDED] {
            let number = Number::from(value);
            assert_eq!(number.value(), value);
            assert_eq!(
                number.square().remainder().value(),
                value.wrapping_mul(value)
            );
            let sum = number.plus(&Number::from(ADDED)).remainder();
            assert_eq!(sum.value(), value.wrapping_add(ADDED));
        }
    }
}
