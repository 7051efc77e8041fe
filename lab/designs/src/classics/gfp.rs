//! What the flags of a Linux request (`gfp_t`) say of how it goes about it when memory is short,
//! beyond a [`Request`].

use brickyard::{Context, Request};

/// How hard a request tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Retry {
    /// By its order: up to order 3 until nothing helps, above a few times.
    #[default]
    Usual,
    /// Once (`__GFP_NORETRY`).
    Never,
    /// Until nothing helps any more (`__GFP_RETRY_MAYFAIL`).
    UntilUseless,
    /// For ever, as far as that is bounded here (`__GFP_NOFAIL`).
    Always,
}

/// What the flags of a request say beyond its size, mobility and zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GfpFlags {
    /// Others wait for it: it may go below the min mark (`__GFP_HIGH`).
    pub high: bool,
    /// It wakes background reclaim (`__GFP_KSWAPD_RECLAIM`).
    pub wakes: bool,
    /// It may reclaim and compact (`__GFP_DIRECT_RECLAIM`).
    pub reclaims: bool,
    /// How hard it tries.
    pub retry: Retry,
}

impl GfpFlags {
    /// Returns what is usual in the context of `request`: what can sleep reclaims, what cannot may
    /// use reserves.
    #[must_use]
    pub const fn of(request: &Request) -> Self {
        let sleeps = matches!(request.context, Context::MaySleep);
        Self {
            high: !sleeps,
            wakes: true,
            reclaims: sleeps,
            retry: Retry::Usual,
        }
    }
}
