//! The configurations that several experiments compare.

use brickyard_classics::Configuration;
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
pub(super) const OF_2013: [Configuration; 4] = of_2013!(Configuration);

/// The same configurations in the simulator.
pub(super) const SIMULATED_OF_2013: [Simulated; 4] = of_2013!(Simulated);
