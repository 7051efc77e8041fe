//! No grouping: one list per order, for all requests. The 2.6 kernels up to 2.6.23.

use super::Grouping;
use crate::classics::store::Taken;
use crate::classics::store::buddy::Buddy;
use brickyard::{Frame, MigrateType, Order};

/// All pages on the same lists.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGrouping;

impl Grouping for NoGrouping {
    #[inline]
    fn list_for(&self, _wanted: MigrateType) -> MigrateType {
        MigrateType::Unmovable
    }

    #[inline]
    fn list_on_free(&self, _frame: Frame, _recorded: MigrateType) -> MigrateType {
        MigrateType::Unmovable
    }

    fn fallbacks(&self, _wanted: MigrateType) -> &'static [MigrateType] {
        &[]
    }

    fn fall_back(&self, _buddy: &Buddy<'_, Self>, _: Order, _: MigrateType) -> Option<Taken> {
        None
    }
}
