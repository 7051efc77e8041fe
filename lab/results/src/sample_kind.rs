//! Whether another run would give the same samples again.
//!
//! It decides how two documents are compared. Any difference of exact rows is one of the code;
//! differences of timed rows are in part the host's.

use serde::{Deserialize, Serialize};

/// How the samples of a row were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// Simulated, replayed, or counted: the same work gives the same samples on every host. A
    /// sample's run identifies the work.
    Exact,
    /// Measured with a host's clock or counters: the samples scatter, and more from run to run than
    /// within a run.
    Timed,
}
