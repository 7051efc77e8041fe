//! Loops of objects on a heap.
//!
//! | file | contents |
//! |---|---|
//! | [`heap`], [`object`] | what the loops allocate from, as two traits; objects as the loops have them |
//! | [`in_hand`] | objects whose every byte is checked, for tests of who owns what |
//! | [`crowd`] | threads that do the same work, and the time they take |
//! | [`alternating`] | how much longer one loop takes than another |
//! | [`masked`] | a heap that masks interrupts |
//! | [`socket`], [`tail`] | two loops: a socket's objects; the slowest allocations |
//! | [`taken`] | what a loop has measured |

pub mod alternating;
pub mod crowd;
#[allow(unsafe_code, reason = "its contract is about memory")]
pub mod heap;
#[allow(unsafe_code, reason = "it reads and writes objects")]
pub mod in_hand;
#[allow(unsafe_code, reason = "it is a heap around another")]
pub mod masked;
#[allow(unsafe_code, reason = "it touches and frees objects")]
pub mod object;
#[allow(unsafe_code, reason = "it frees objects")]
pub mod socket;
#[allow(unsafe_code, reason = "it frees objects")]
pub mod tail;
pub mod taken;
