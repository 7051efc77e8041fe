//! Brickyard behind the interfaces that Rust kernels already have: `no_std`, no heap of its own, no
//! global state.
//!
//! | feature | type | implements |
//! |---|---|---|
//! | `heap` | [`KernelHeap`] | [`GlobalAlloc`](core::alloc::GlobalAlloc), for `#[global_allocator]`: slabs for what is small, pages for the rest |
//! | `x86_64` | [`PhysFrames`] | `FrameAllocator` and `FrameDeallocator` of the crate [`x86_64`], for 4 KiB, 2 MiB and 1 GiB |
//! | `arceos` | [`AxPages`], [`AxBytes`] | `PageAllocator` and `ByteAllocator` of ArceOS's crate [`ax_allocator`] |
//! | `lock_api` | | any `lock_api::RawMutex` as the lock of a [`KernelHeap`], by [`sync::LockApi`](brickyard::sync::LockApi) |
//!
//! No feature is on by default, and each foreign crate is optional. The adapter for OSTD
//! (Asterinas) is a crate beside this one, `kernels/ostd`, since OSTD needs an unstable compiler.
//!
//! All of them take frames from something that implements [`Frames`]: a [`Zone`](brickyard::Zone),
//! or the zones of a node with all that stand behind them ([`OnNode`]).

#![no_std]

#[cfg(feature = "arceos")]
mod arceos;
mod frames;
#[cfg(feature = "heap")]
mod heap;
#[cfg(feature = "x86_64")]
mod physical;

#[cfg(feature = "arceos")]
pub use arceos::{AxBytes, AxPages};
pub use frames::{Frames, OnNode};
#[cfg(feature = "heap")]
pub use heap::{HeapError, HeapNumbers, HeapPages, HeapPlan, HeapSlabs, KernelHeap, Map, OwnZone};
#[cfg(feature = "x86_64")]
pub use physical::PhysFrames;
