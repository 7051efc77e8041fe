//! Sheaves in and out of a CPU's row, each by one store.

use brickyard_sync::RawLock;

use super::super::design::SlabDesign;
use super::super::ground::Ground;
use super::super::kind::Kind;
use super::super::local::{Caller, Local};
use super::words::Sheaf;
use super::{SPARE, Sheaves, closed};

impl<'m, K: RawLock> Sheaves<'m, K> {
    /// Takes what `column` of this CPU's row holds, if that is `expected`, for itself.
    pub(super) fn detach<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool {
        ground
            .local
            .replace::<C>(self.rows, cpu, column, expected, new)
    }

    /// The spare sheaf of this CPU, taken out of the row.
    pub(super) fn take_spare<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
    ) -> Option<Sheaf> {
        let column = self.column(kind.id, SPARE);
        let (cpu, spare) = ground.local.read::<C>(self.rows, column);
        if spare == 0 || !self.detach::<C, D>(ground, cpu, column, spare, 0) {
            return None;
        }
        // SAFETY: `sheaf-in-one-place`: it was in the row, and this caller took it out.
        Some(unsafe { Sheaf::at(spare) })
    }

    /// Puts a sheaf where this CPU's spare was, or else into the barn.
    pub(super) fn keep_as_spare<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        sheaf: Sheaf,
    ) {
        let column = self.column(kind.id, SPARE);
        let (cpu, spare) = ground.local.read::<C>(self.rows, column);
        if spare == 0 && self.detach::<C, D>(ground, cpu, column, 0, sheaf.address()) {
            return;
        }
        self.to_barn::<C, D>(ground, kind, sheaf);
    }

    /// Takes the sheaf out of `column` of this CPU's row and leaves it closed.
    pub(super) fn close<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        column: usize,
    ) -> Option<Sheaf> {
        loop {
            let (cpu, top) = ground.local.read::<C>(self.rows, column);
            if top == 0 || top == closed() {
                return None;
            }
            if self.detach::<C, D>(ground, cpu, column, top, closed()) {
                return Sheaf::of_row(top);
            }
        }
    }
}
