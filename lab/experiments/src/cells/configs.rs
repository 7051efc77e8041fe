//! The configurations that several experiments compare.

use core::fmt;

use brickyard_bench::masking::Masking;
use brickyard_designs::classics::Configuration;
use brickyard_simulate::Configuration as Simulated;

/// The simulator's configurations have the names of the host's, but a type of their own.
macro_rules! of_2013 {
    ($configuration:ty) => {
        [
            <$configuration>::List2007,
            <$configuration>::Magazine2013,
            <$configuration>::Vanilla,
            <$configuration>::Brickyard,
        ]
    };
}

/// Those that run on this host: the two of 2013, the baseline of that posting first, and two more.
pub(crate) const OF_2013: [Configuration; 4] = of_2013!(Configuration);

/// The same configurations in the simulator.
pub(crate) const SIMULATED_OF_2013: [Simulated; 4] = of_2013!(Simulated);

/// A configuration of this host, and what a mask of interrupts does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaskedConfiguration {
    pub(crate) configuration: Configuration,
    pub(crate) masking: Masking,
}

impl MaskedConfiguration {
    /// Returns these configurations with masks that cost what they cost a kernel, and then the two
    /// that the document compares with masks that cost nothing.
    pub(crate) fn each(configurations: &[Configuration]) -> Vec<Self> {
        let with = |masking| {
            move |&configuration| Self {
                configuration,
                masking,
            }
        };
        let unmasked = [Configuration::List2007, Configuration::Magazine2013];
        let masked = configurations.iter().map(with(Masking::Flags));
        masked
            .chain(unmasked.iter().map(with(Masking::Nothing)))
            .collect()
    }

    /// Returns the name of the workload under it.
    pub(crate) fn workload(self, workload: &str) -> String {
        match self.masking {
            Masking::Flags => workload.to_owned(),
            Masking::Nothing => format!("{workload} unmasked"),
        }
    }
}

impl fmt::Display for MaskedConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.workload(self.configuration.name()))
    }
}
