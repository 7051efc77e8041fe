//! How reclaim works, as an option shared by all subcommands that have a model kernel.

use brickyard_workload::antifrag::Reclaim;
use clap::ValueEnum;

/// How reclaim works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReclaimBy {
    /// The oldest pages, wherever they are.
    Plain,
    /// Lumpy reclaim: the block around the oldest page (2007 to 2012).
    Lumpy,
    /// Compaction first, then reclaim (since 2010).
    Compaction,
}

impl ReclaimBy {
    pub(crate) const fn reclaim(self) -> Reclaim {
        match self {
            Self::Plain => Reclaim::Plain,
            Self::Lumpy => Reclaim::Lumpy,
            Self::Compaction => Reclaim::Compaction,
        }
    }
}
