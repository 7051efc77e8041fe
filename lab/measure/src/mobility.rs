//! The mobilities, as values of options.

use brickyard::Mobility;
use brickyard_run::named::Names;

/// The mobilities, each with its name.
pub const MOBILITIES: &Names<Mobility> = &[
    (Mobility::Unmovable, "unmovable", ""),
    (Mobility::Movable, "movable", ""),
    (Mobility::Reclaimable, "reclaimable", ""),
];
