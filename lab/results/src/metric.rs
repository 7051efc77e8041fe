//! A metric: what is measured, in which unit, and which direction is better.
//!
//! The three form one value, usually a constant of the experiment: a gain has no sign without the
//! direction, and no meaning without the unit.

use brickyard_run::named;
use serde::{Deserialize, Serialize};

named! {
    /// Which direction of a metric is better.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Better {
        /// More is better: rates, percent of success.
        Higher => "higher",
        /// Less is better: times, cycles, misses, deviations.
        Lower => "lower",
        /// Neither: the metric describes a run, such as the size of a batch. It is shown and never
        /// judged: no gain, and no part in a geometric mean.
        Neither => "neither",
    }
}

impl Better {
    /// Returns the opposite direction; that of `Neither` is `Neither`.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Higher => Self::Lower,
            Self::Lower => Self::Higher,
            Self::Neither => Self::Neither,
        }
    }
}

/// What a row measures.
///
/// ```
/// use brickyard_results::{Better, Metric};
/// const FAULTS: Metric = Metric { name: "faults/sec", unit: "faults/s", better: Better::Higher };
/// assert_eq!(FAULTS.better.to_string(), "higher");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric<'a> {
    /// Its name, such as `alloc`.
    pub name: &'a str,
    /// The unit of every sample, such as `cycles`.
    pub unit: &'a str,
    /// Which direction is better.
    pub better: Better,
}

impl<'a> Metric<'a> {
    /// A metric of which the direction `better` is better.
    pub const fn new(name: &'a str, unit: &'a str, better: Better) -> Self {
        Self { name, unit, better }
    }

    /// A metric of which less is better.
    pub const fn lower(name: &'a str, unit: &'a str) -> Self {
        Self::new(name, unit, Better::Lower)
    }

    /// A metric of which more is better.
    pub const fn higher(name: &'a str, unit: &'a str) -> Self {
        Self::new(name, unit, Better::Higher)
    }
}
