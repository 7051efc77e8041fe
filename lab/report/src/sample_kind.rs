//! How the samples of a row came about: whether another run would give the same ones again.
//!
//! It decides how two documents are held against each other. Of what is exact any difference is one
//! of the code; of what is timed the host has a part.

use serde::{Deserialize, Serialize};

/// How the samples of a row came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// Simulated, replayed, or counted: the same work gives the same samples on every host. A
    /// sample's run says which work that is.
    Exact,
    /// By the clock of a host, or by its counters: they scatter, and more from run to run than
    /// within one.
    Timed,
}
