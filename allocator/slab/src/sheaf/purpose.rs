//! For whom slabs are: a kernel, or the heap of a process. What differs is fixed at compile time.
//!
//! | | a kernel | a process |
//! |---|---|---|
//! | general sizes end at | 32 KiB | 128 KiB |
//! | a sheaf holds | two objects at least | four |
//! | a slab of one object above 32 KiB has | a block of pages | just its pages |
//! | a barn holds of those | a megabyte, or four sheaves | half of that |
//! | a barn is emptied | down to four sheaves | wholly, and sooner |
//!
//! A kernel has little memory in slabs beside what its processes have, and many CPUs whose frees
//! meet in a barn. With barns as a process has them, frees on another CPU would take 3 % more time
//! and 7 % more cache lines, and deferred ones 2 % more time. The memory of a process is mostly
//! slabs.

use core::alloc::Layout;

use crate::geometry::{Geometry, ShapeError};
use crate::sizes;

mod sealed {
    pub trait Sealed {}
}

/// How much a barn may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarnLimits {
    /// So many full sheaves in any case.
    pub sheaves: u32,
    /// And more, as long as their objects have at most so many bytes.
    pub bytes: u64,
}

/// For whom slabs are: [`Kernel`] or [`Process`]. (Nobody else implements this: general sizes must
/// serve the layouts that are of their class.)
pub trait Purpose: sealed::Sealed + 'static {
    /// The general sizes, ascending.
    const SIZES: &'static [u32];

    /// A barn that is emptied keeps so many full sheaves.
    const KEPT: u32;

    /// Returns how much a barn of objects in such slabs may hold.
    #[must_use]
    fn barn(_shape: &Geometry) -> BarnLimits {
        BarnLimits {
            sheaves: 4,
            bytes: 1 << 20,
        }
    }

    /// Returns the number of the smallest general size that serves `layout`.
    #[must_use]
    fn class_of(layout: Layout) -> Option<usize>;

    /// Returns the shape of slabs, as [`Geometry::new`].
    ///
    /// # Errors
    /// [`ShapeError`].
    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError>;

    /// Returns true if slabs are sparse: of `all` objects that they have room for, with `stride`
    /// bytes each, `out` are not in the slabs, and `in_use` neither there nor in the barn: in use,
    /// or in sheaves of CPUs.
    #[must_use]
    fn is_sparse(all: u64, out: u64, in_use: u64, stride: u64) -> bool;
}

/// Slabs of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Kernel {}

/// Slabs of the heap of a process.
#[derive(Debug, Clone, Copy)]
pub enum Process {}

impl sealed::Sealed for Kernel {}
impl sealed::Sealed for Process {}

impl Purpose for Kernel {
    const SIZES: &'static [u32] = &sizes::SIZES;
    const KEPT: u32 = 4;

    #[inline]
    fn class_of(layout: Layout) -> Option<usize> {
        sizes::class_of(layout)
    }

    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        Geometry::new(size, align, page_bytes)
    }

    /// What is not in use, the barn included, is more than what is, by two megabytes.
    fn is_sparse(all: u64, _out: u64, in_use: u64, stride: u64) -> bool {
        all.saturating_sub(in_use) > in_use + (2 << 20) / stride
    }
}

impl Purpose for Process {
    const SIZES: &'static [u32] = &sizes::process::SIZES;
    const KEPT: u32 = 0;

    /// Large objects that have slabs of their own go back one by one. So there need not be as many
    /// of them at hand.
    fn barn(shape: &Geometry) -> BarnLimits {
        match shape.objects {
            1 => BarnLimits {
                sheaves: 2,
                bytes: 512 << 10,
            },
            _ => Kernel::barn(shape),
        }
    }

    #[inline]
    fn class_of(layout: Layout) -> Option<usize> {
        sizes::process::class_of(layout)
    }

    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        Geometry::of_heap(size, align, page_bytes)
    }

    /// What is free in slabs is more than what is in use or at hand for CPUs, by half a megabyte.
    fn is_sparse(all: u64, out: u64, in_use: u64, stride: u64) -> bool {
        all.saturating_sub(out) > in_use + (512 << 10) / stride
    }
}
