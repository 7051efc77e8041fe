//! User space as a platform: memory comes from `mmap`, and a thread is a CPU. And what an allocator
//! cannot ask of the standard library, which would ask it for memory.
//!
//! | item | what it is |
//! |---|---|
//! | [`MapPlan`] | how memory is to be mapped: length, alignment, huge pages |
//! | [`Mapped`] | memory that can be used at once: for a zone's metadata, or for an arena |
//! | [`Reserved`] | address space that gets its memory part by part |
//! | [`Arena`] | either of them as page frames, and the [`Platform`](brickyard::Platform) to build zones on |
//! | [`Threads`] | the platform without memory: for experiments that only count frames |
//! | [`Region`] | a piece of address space, below all of these |
//! | [`rows`] | a row of words for each CPU, or for each thread |
//! | [`environment`], [`messages`] | variables; lines on standard error: both without allocating |
//! | [`address_table`] | what is known of addresses, in mapped memory of its own |
//!
//! Everything but [`Threads`] exists on Linux only, since giving memory back means something else
//! on every system.
//!
//! # A zone in a process
//!
//! ```
//! # #[cfg(target_os = "linux")] fn main() -> Result<(), Box<dyn core::error::Error>> {
//! use brickyard::zone::{Zone, ZonePlan};
//! use brickyard::{Mobility, Order, Platform, Request, ZoneKind};
//! use brickyard_arena::{Arena, Huge, MapPlan, Mapped};
//!
//! // 16 MiB to hand out. The metadata for it lies beside it.
//! let arena = Arena::new(MapPlan::new(16 << 20).huge(Huge::Transparent).map()?);
//! let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 4); // four threads with lists of their own
//! let mut metadata = Mapped::new(Zone::<&Arena>::checked_bytes(&plan)?)?;
//! let zone = Zone::<&Arena>::new(&plan, &arena, metadata.as_uninit())?;
//! zone.add(arena.frames())?;
//!
//! let frame = zone.alloc(&Request::page(Mobility::Movable))?;
//! let page = arena.address(frame).ok_or("a frame of this arena has an address")?;
//! // SAFETY: only this code uses the frame and its page; all of the arena can be written.
//! unsafe { page.write_bytes(0x5a, arena.page_bytes()) };
//! zone.free(frame, Order::ZERO)?;
//! # Ok(()) }
//! # #[cfg(not(target_os = "linux"))] fn main() {}
//! ```

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "mapped bytes are entries")]
pub mod address_table;
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "giving frames back is a promise of the caller's"
)]
mod arena;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the C library's strings")]
pub mod environment;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the error number is the thread's own word")]
mod errno;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "hands out the mapped bytes as a slice")]
mod memory;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "descriptors that others have opened")]
pub mod messages;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "calls of the system that change mappings")]
mod region;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[allow(unsafe_code, reason = "restartable sequences")]
pub mod rows;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[allow(unsafe_code, reason = "memory of the thread's own")]
mod thread_local;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "portable.rs"]
mod thread_local;
#[allow(
    unsafe_code,
    reason = "what follows a fork is a promise of the caller's"
)]
mod threads;

#[cfg(target_os = "linux")]
pub use arena::Arena;
#[cfg(target_os = "linux")]
pub use error::{MapError, PartError};
#[cfg(target_os = "linux")]
pub use memory::{HUGE_BYTES, Huge, MapPlan, Mapped, Release, Reserved, page_bytes};
#[cfg(target_os = "linux")]
pub use region::Region;
pub use threads::Threads;
