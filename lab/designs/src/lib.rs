//! The designs that the Brickyard page allocator and its slabs are compared with.
//!
//! They are complete and tested, but not meant to be embedded.
//!
//! | module | what it holds |
//! |---|---|
//! | [`classics`] | the designs of the source documents and Linux's of today, as zones |
//! | [`slqb`] | SLQB of 2008, as a design for slabs |
//! | [`slab_slub`] | SLAB and SLUB of Linux 2.6.28, as such designs too |

#![no_std]
#![deny(unsafe_code)]

pub mod classics;
mod slab_designs;
pub mod slab_slub;
pub mod slqb;
