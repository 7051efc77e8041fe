//! Any bytes as operations on slabs of any design, at any level of checking, with interrupts and
//! other tasks in between, compared with the naive model.

#![no_main]

use brickyard_oracle::slab::SlabCase;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (case, operations) = SlabCase::read(bytes);
    let _driven = case.drive(operations);
});
