//! Any bytes as operations on any configuration, compared with the naive model. Uses the generator
//! and the model of the property tests.

#![no_main]

use brickyard_oracle::Case;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (case, operations) = Case::read(bytes);
    let _driven = case.drive(operations);
});
