//! What `pft` runs on this host: how many page faults per second the page allocator would allow, by the number of
//! threads (the page fault test of mmtests).
//!
//! Real threads allocate single movable pages and clear each of them, as a page fault does, until
//! together they have 3/4 of the memory; then they free all. The memory is real, and is mapped and
//! touched before anything is timed, so the host's own page faults are not measured; nor are traps
//! and page tables, which are no part of the allocator. `faults/cpu` is per second of CPU time, of
//! all threads together; `faults/sec` per second of time; `frees/cpu` is the pages freed per second
//! of CPU time. Base pages only, one by one. What a mask of interrupts costs can be chosen
//! ([`Masking`]).

use core::fmt;
use core::str::FromStr;

use anyhow::Context;
use brickyard::sync::{Exclusive, TicketLock};
use brickyard_designs::classics::{Configuration, MachinePlan};

use super::faults::{Faults, Spent};
use super::machine::{CANNOT_BUILD, metadata};
use super::masking::{Masking, MaskingPlatform, MemoryPlatform};

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// A configuration.
    Configuration(Configuration),
    /// A bare stack of pages for each thread, which shows the cost of clearing alone.
    ArrayStack,
}

/// Prints its name.
impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of the yardstick.
const ARRAY_STACK: &str = "array-stack";

impl Column {
    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration(configuration) => configuration.name(),
            Self::ArrayStack => ARRAY_STACK,
        }
    }
}

/// The error of a name that no column has.
#[derive(Debug, Clone, thiserror::Error)]
#[error("known are {}, {ARRAY_STACK}", Configuration::ALL.map(Configuration::name).join(", "))]
pub struct UnknownColumn;

impl FromStr for Column {
    type Err = UnknownColumn;

    fn from_str(name: &str) -> Result<Self, UnknownColumn> {
        if name == ARRAY_STACK {
            return Ok(Self::ArrayStack);
        }
        let configuration = name.parse().map_err(|_| UnknownColumn)?;
        Ok(Self::Configuration(configuration))
    }
}

/// Runs one turn of a column.
///
/// # Errors
/// Those of [`turn`].
pub fn once(column: Column, masking: Masking, faults: Faults<'_>) -> anyhow::Result<Spent> {
    match column {
        Column::Configuration(configuration) => turn(configuration, masking, faults),
        Column::ArrayStack => Ok(faults.on_stacks()?),
    }
    .with_context(|| format!("{}; give more --memory", column.name()))
}

/// Runs one turn of a configuration, as a new allocator over the same memory, with such masks of
/// interrupts.
///
/// # Errors
/// The memory is too small for it, or has too few pages for the faults.
pub fn turn(
    configuration: Configuration,
    masking: Masking,
    faults: Faults<'_>,
) -> anyhow::Result<Spent> {
    // The calling thread has a number too, and threads of the turn before may not have returned
    // theirs yet.
    let cpus = 2 * faults.threads + 1;
    let (memory, plan) = (
        faults.memory,
        MachinePlan::new(faults.memory.frames(), cpus),
    );
    let platform = MaskingPlatform::new(memory, masking);
    let bytes = configuration.checked_bytes::<Exclusive, TicketLock, MemoryPlatform<'_>>(&plan);
    let mut metadata = metadata(bytes.context(CANNOT_BUILD)?)?;
    let spent = configuration
        .run::<Exclusive, TicketLock, _, _>(&plan, platform, &mut metadata, faults)
        .context(CANNOT_BUILD)??;
    Ok(spent)
}
