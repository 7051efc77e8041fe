//! How benchmarks measure on this machine: those of the lab's page allocators, and those of heaps.
//!
//! | file | contents |
//! |---|---|
//! | [`turns`] | the order of turns |
//! | [`clock`], [`ticks`] | wall and CPU time; the time stamp counter |
//! | [`callgrind`] | instructions of a process of this program, by valgrind |
//! | [`resident`] | the memory of a process |
//! | [`flags`] | what a mask of interrupts costs |
//! | [`mobility`], [`amount`] | mobilities and amounts of memory, as options |
//! | [`threads`], `own_number.rs`, [`memory`] | this process as a platform for zones: threads as CPUs, memory as frames |
//! | [`objects`] | loops of objects on a heap |
//! | [`command`] | what commands have in common |

// Allowed, file by file, where memory is accessed, and registers of the processor.
#![deny(unsafe_code)]

pub mod amount;
pub mod callgrind;
pub mod clock;
#[cfg(feature = "command")]
pub mod command;
#[allow(unsafe_code, reason = "it saves the processor's flags")]
pub mod flags;
#[allow(unsafe_code, reason = "it is memory")]
pub mod memory;
pub mod mobility;
pub mod objects;
#[allow(unsafe_code, reason = "a word of the thread's own")]
mod own_number;
pub mod resident;
pub mod threads;
#[allow(unsafe_code, reason = "it reads a register of the processor")]
pub mod ticks;
pub mod turns;
