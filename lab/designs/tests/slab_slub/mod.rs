//! The tests of SLAB and SLUB.

mod rules;
mod shared_and_reaped;
