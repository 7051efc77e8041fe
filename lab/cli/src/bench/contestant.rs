//! Who can be compared, by name: our configurations, the yardsticks, and the peers that whoever runs the lab has brought.

use core::fmt;

use brickyard::Configuration;

use super::peer::Peer;
use super::yardstick::Yardstick;
use crate::misuse::Misuse;

/// One column of the table.
#[derive(Clone, Copy)]
pub(crate) enum Contestant {
    Configuration(Configuration),
    Yardstick(Yardstick),
    Peer(&'static dyn Peer),
}

impl Contestant {
    /// All of them.
    fn all(peers: &[&'static dyn Peer]) -> impl Iterator<Item = Self> {
        let configurations = Configuration::ALL.into_iter().map(Self::Configuration);
        let yardsticks = Yardstick::ALL.into_iter().map(Self::Yardstick);
        let peers = peers.iter().copied().map(Self::Peer);
        configurations.chain(yardsticks).chain(peers)
    }

    /// Those with these names.
    pub(crate) fn named(
        names: &[String],
        peers: &[&'static dyn Peer],
    ) -> Result<Vec<Self>, Misuse> {
        let one = |name: &String| {
            let mut all = Self::all(peers);
            all.find(|contestant| contestant.name() == name)
                .ok_or_else(|| {
                    let known: Vec<_> = Self::all(peers).map(|known| known.name()).collect();
                    let known = known.join(", ");
                    Misuse::new(format!(
                        "--config: nothing is called {name:?}; there are {known}"
                    ))
                })
        };
        names.iter().map(one).collect()
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Configuration(configuration) => configuration.name(),
            Self::Yardstick(yardstick) => yardstick.name(),
            Self::Peer(peer) => peer.name(),
        }
    }
}

impl fmt::Debug for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
