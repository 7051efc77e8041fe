//! Which machine the words live on. The only place in the allocator that asks.

#[cfg(not(loom))]
mod hardware;
#[cfg(loom)]
mod modelled;

#[cfg(not(loom))]
pub use hardware::*;
#[cfg(loom)]
pub use modelled::*;
