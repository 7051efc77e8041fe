//! No front: every request goes straight to the zone lock. The baseline for what the others save.

use super::{Front, Returned};
use crate::classics::bulk::Backing;
use crate::classics::lock::LabLock;
use crate::classics::store::grouping::Grouping;
use brickyard::check::Violation;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::{Frame, Order, Platform, Request};

/// No front: straight to the store.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

impl<G: Grouping, L: LabLock, P: Platform> Front<G, L, P> for Direct {
    fn take(&self, backing: &Backing<'_, G, L, P>, request: &Request) -> Option<Frame> {
        backing.lock().take(request).map(|taken| taken.frame)
    }

    fn give(&self, _: &Backing<'_, G, L, P>, _: Frame, _: Order) -> Returned {
        Returned::ToStore
    }

    fn serves_here(&self, _backing: &Backing<'_, G, L, P>) -> bool {
        false
    }

    fn drain(&self, _: &Backing<'_, G, L, P>, _: Reach, _: &Patience) -> Drained {
        Drained::default()
    }

    fn arrivals(&self) -> usize {
        0
    }

    fn cached(&self, _backing: &Backing<'_, G, L, P>) -> usize {
        0
    }

    fn check(&self, _backing: &Backing<'_, G, L, P>) -> Result<usize, Violation> {
        Ok(0)
    }
}
