//! The tests of SLQB.

mod checks;
mod model;
mod rules;
mod support;
