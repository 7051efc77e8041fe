//! The list of the experiments: the only file that names all of them.

use crate::cell::Cell;
use crate::experiment::Experiment;
use crate::raw::experiment_of;
use crate::refusal::Refusal;
use crate::{
    forecast, fragmentation, gigabytes, kernbench, locks, mobility, pagealloc, pft, scarce, slab,
    storm, two_kinds,
};

/// Those of the documents, in the order of the report.
pub const REPRODUCED: [Experiment; 7] = [
    locks::EXPERIMENT,
    pagealloc::EXPERIMENT,
    pft::EXPERIMENT,
    kernbench::EXPERIMENT,
    two_kinds::EXPERIMENT,
    slab::EXPERIMENT,
    mobility::EXPERIMENT,
];

/// Returns all of them.
pub fn all() -> impl Iterator<Item = Experiment> {
    let others = [
        storm::EXPERIMENT,
        scarce::EXPERIMENT,
        fragmentation::EXPERIMENT,
        gigabytes::EXPERIMENT,
        forecast::EXPERIMENT,
    ];
    REPRODUCED.into_iter().chain(others)
}

/// Returns the experiment of this name.
///
/// # Errors
/// [`Refusal::NoExperiment`].
pub fn by_name(name: &str) -> Result<Experiment, Refusal> {
    let found = all().find(|one| one.name == name);
    found.ok_or_else(|| Refusal::NoExperiment(name.to_owned()))
}

/// Returns true if this cell uses traces. One that does not is given none, so that an error in
/// this function is noticed.
pub(crate) fn uses_traces(cell: &Cell) -> bool {
    let experiment = by_name(experiment_of(&cell.name));
    cell.kind.is_exact() && experiment.is_ok_and(|one| one.uses_traces)
}

#[cfg(test)]
mod tests {
    use crate::antifrag::Settings as Protocol;
    use crate::antifrag::parameters::protocol_of;
    use crate::settings::Settings;

    use super::*;

    #[test]
    fn the_default_settings_are_those_of_the_documents() {
        for experiment in [two_kinds::EXPERIMENT, mobility::EXPERIMENT] {
            let settings = Settings::new(&experiment, None, None, &[]).unwrap();
            assert_eq!(protocol_of(&settings).unwrap(), Protocol::DEFAULT);
        }
    }
}
