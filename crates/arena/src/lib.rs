//! User space as a platform: a thread is a CPU.
//!
//! [`Threads`] gives every thread that allocates a number of its own, the lowest that is free, and takes it back when the thread ends. So
//! each slot has one owner at a time, and a thread never leaves its "CPU": pinning and masking cost nothing.

#![forbid(unsafe_code)]

mod threads;

pub use threads::Threads;
