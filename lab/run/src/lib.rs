//! What every run of the lab has, whatever it measures.
//!
//! | file | what it holds |
//! |---|---|
//! | [`interrupt`] | Ctrl-C ends long work at its next safe point |
//! | [`progress`], [`bar`] | progress, as reported by the work; as a bar on the terminal |
//! | [`side_by_side`] | runs in parallel, one per core |
//! | `together.rs` | [`together`]: threads that do the same work at the same time |
//! | [`terminal`] | lines and texts written to the terminal |
//! | [`memory`] | the memory that this machine has at hand |
//! | [`mod@named`] | enumerations whose values have names |
//! | `dice.rs`, `random.rs` | [`Dice`], [`Random`]: random numbers from a seed |
//! | `hash.rs` | [`fnv1a`]: a hash that is the same in every build |

#![forbid(unsafe_code)]

pub mod bar;
mod dice;
mod hash;
pub mod interrupt;
pub mod memory;
pub mod named;
pub mod progress;
mod random;
pub mod side_by_side;
pub mod terminal;
mod together;

pub use dice::Dice;
pub use hash::fnv1a;
pub use random::Random;
pub use together::together;
