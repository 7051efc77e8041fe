//! What can be compared, by name: our configurations, the yardsticks, and the peers that the caller
//! of the lab adds.

use core::fmt;

use brickyard_designs::classics::Configuration;

use super::peer::Peer;
use super::yardstick::Yardstick;

/// One column of the table.
#[derive(Clone, Copy)]
pub enum Contestant {
    /// One of ours.
    Configuration(Configuration),
    /// A yardstick: the cost of the machine itself.
    Yardstick(Yardstick),
    /// Another project's allocator.
    Peer(&'static dyn Peer),
}

impl Contestant {
    /// Returns all of them.
    fn all(peers: &[&'static dyn Peer]) -> impl Iterator<Item = Self> {
        let configurations = Configuration::ALL.into_iter().map(Self::Configuration);
        let yardsticks = Yardstick::ALL.into_iter().map(Self::Yardstick);
        let peers = peers.iter().copied().map(Self::Peer);
        configurations.chain(yardsticks).chain(peers)
    }

    /// Returns the contestants with these names.
    ///
    /// # Errors
    /// No contestant has one of the names.
    pub fn named(
        names: &[String],
        peers: &[&'static dyn Peer],
    ) -> Result<Vec<Self>, UnknownContestant> {
        let one = |name: &String| {
            let mut all = Self::all(peers);
            let found = all.find(|contestant| contestant.name() == name);
            found.ok_or_else(|| UnknownContestant {
                name: name.clone(),
                known: Self::all(peers).map(|known| known.name()).collect(),
            })
        };
        names.iter().map(one).collect()
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Configuration(configuration) => configuration.name(),
            Self::Yardstick(yardstick) => yardstick.name(),
            Self::Peer(peer) => peer.name(),
        }
    }
}

impl PartialEq for Contestant {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Prints its name.
impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a name that no contestant has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown name {name:?}; known are {}", known.join(", "))]
pub struct UnknownContestant {
    name: String,
    known: Vec<&'static str>,
}
