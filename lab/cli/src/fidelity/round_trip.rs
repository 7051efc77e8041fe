//! What a trace cannot tell: the error of a replay of a configuration's own replay.
//!
//! A replay is recorded as the host was, and replayed with the same configuration. The rules are
//! the same then, so what is left of the error is due to what such a trace does not show.

use std::collections::HashMap;

use anyhow::Context;
use brickyard_designs::classics::Configuration;
use brickyard_experiments::filming::Camera;
use brickyard_run::bar;
use brickyard_trace::Trace;
use brickyard_workload::fidelity::{self, Distance};
use brickyard_workload::{Machine, Options, Script, replay, round_trip};

/// The errors of the replays of one configuration's own replay, by draw.
pub(super) struct RoundTrip {
    pub(super) config: Configuration,
    pub(super) distances: Vec<Distance>,
}

/// Replays the trace with every configuration, and each of these replays as often as is drawn.
/// Those that were not finished are left out.
pub(super) fn measure(
    trace: &Trace,
    machine: &Machine,
    script: &Script,
    options: &Options,
    configs: &[Configuration],
    draws: usize,
    jobs: Option<usize>,
) -> anyhow::Result<Vec<RoundTrip>> {
    let units = (configs.len() * (draws + 1) * script.len()) as u64;
    let measured = bar::runs(configs.len(), jobs, units, |place, follow| {
        let config = configs[place];
        let camera = Camera::new(follow.another(), None);
        let (recorded, first) = round_trip::record(config, machine, trace, script, options, camera)
            .with_context(|| format!("{config} cannot be replayed"))?;
        let mut distances = Vec::new();
        let mut interrupted = first.interrupted;
        let end = fidelity::of_replay(&first.zones);
        for draw in 0..draws as u64 {
            if interrupted {
                return Ok(None);
            }
            // Seed 0 is that of the replay that was recorded.
            let drawn = Script::drawn(&recorded, draw + 1, &HashMap::new())?;
            let script = drawn.with_reports(script.reports_free());
            let camera = Camera::new(follow.another(), None);
            let outcome = replay(config, machine, &script, options, camera)
                .with_context(|| format!("{config} cannot be replayed"))?;
            interrupted = outcome.interrupted;
            let own = fidelity::of_replay(&outcome.zones);
            distances.push(fidelity::distance(&own, &end));
        }
        Ok((!interrupted).then_some(RoundTrip { config, distances }))
    });
    let measured: anyhow::Result<Vec<Option<RoundTrip>>> = measured.into_iter().collect();
    Ok(measured?.into_iter().flatten().collect())
}
