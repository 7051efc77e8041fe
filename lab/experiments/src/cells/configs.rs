//! Who is compared, where several experiments compare the same.

use brickyard_classics::Configuration;
use brickyard_simulate::Configuration as Simulated;

/// A configuration of the simulator has another type than one of this host, and the same names.
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

/// With the two of 2013, the baseline of that posting first: on this host.
pub(super) const OF_2013: [Configuration; 4] = of_2013!(Configuration);

/// The same, simulated.
pub(super) const SIMULATED_OF_2013: [Simulated; 4] = of_2013!(Simulated);
