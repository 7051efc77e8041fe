//! Reads this host's page states (as root), and prints the frames of each use and the rate.

use std::collections::BTreeMap;
use std::time::Instant;

use brickyard_host::{Host, HostError};

fn main() -> Result<(), HostError> {
    let began = Instant::now();
    let now = || began.elapsed().as_nanos() as u64;
    let runs = Host::here().page_states(now, |_, _| {})?.runs;
    let seconds = began.elapsed().as_secs_f64();
    let mut by_use = BTreeMap::new();
    for run in &runs {
        *by_use.entry(run.state.usage).or_insert(0) += run.frames;
    }
    for (usage, frames) in &by_use {
        println!("{:>12} {frames:>12}", usage.name());
    }
    let frames: u64 = by_use.values().sum();
    let rate = frames as f64 / seconds / 1e6;
    println!(
        "{frames} frames in {} runs, {rate:.1} million frames a second",
        runs.len()
    );
    Ok(())
}
