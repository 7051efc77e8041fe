//! The choice of the machine that the words live on. No other code in the allocator asks for it.

#[cfg(not(loom))]
mod hardware;
#[cfg(loom)]
mod modelled;

#[cfg(not(loom))]
pub use hardware::*;
#[cfg(loom)]
pub use modelled::*;
