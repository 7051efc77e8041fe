//! What a reader must know before any number, one sentence each.

use std::collections::{BTreeMap, BTreeSet};

use brickyard_results::{Host, noise_warning};

use crate::apart::{DISTURBED, OTHERS};
use crate::data::{Data, Key};
use crate::document::{Document, Judged};
use crate::raw::{CellRows, Method};

use super::plan::counted;
use super::program;
use super::results::results;

/// Returns the warnings on several hosts, builds or traces, and on noise.
pub fn of(documents: &[Document], data: &Data) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    warnings.extend(several_hosts(data));
    warnings.extend(several_builds(data));
    warnings.extend(several_traces(data));
    // Only timed rows, as simulated ones vary with the seed, which is not noise of the host; and
    // only those whose direction is judged.
    let figures = documents.iter().flat_map(Document::figures);
    let judged = figures.filter(|figure| figure.judged == Judged::Yes);
    let keys: BTreeSet<&Key> = judged
        .flat_map(|figure| figure.of.iter().chain(&figure.against))
        .collect();
    let timed = results(data, |key, kind| {
        kind == Method::Timed && keys.contains(key)
    })?;
    warnings.extend(noise_warning(&timed));
    warnings.extend(disturbed(data));
    Ok(warnings)
}

/// Returns a sentence on the timed cells that others disturbed, however often they were timed.
fn disturbed(data: &Data) -> Option<String> {
    let taken: Vec<f64> = taken_by_others(data.cells()).collect();
    let disturbed = taken.iter().filter(|&&taken| taken > DISTURBED);
    let most = taken.iter().copied().fold(0.0, f64::max);
    (most > DISTURBED).then(|| {
        format!(
            "{} of {} were timed while others took more than {DISTURBED:.0} % of a CPU, at most {most:.0} %, also the third time. Run the timed cells again on a quiet host.",
            disturbed.count(),
            counted(taken.len())
        )
    })
}

/// Returns what others took of the CPUs during each timed cell of these, in percent of one.
pub(crate) fn taken_by_others<'c>(
    cells: impl IntoIterator<Item = &'c CellRows>,
) -> impl Iterator<Item = f64> {
    let rows = cells.into_iter().flat_map(|cell| &cell.rows);
    rows.filter(|row| row.metric == OTHERS.name)
        .map(|row| row.value)
}

fn several_hosts(data: &Data) -> Option<String> {
    let timed = data
        .cells()
        .iter()
        .filter(|cell| cell.kind == Method::Timed);
    let mut hosts: Vec<&Host> = Vec::new();
    for cell in timed {
        if !hosts.contains(&&cell.host) {
            hosts.push(&cell.host);
        }
    }
    (hosts.len() > 1).then(|| {
        let named: Vec<String> = hosts.iter().map(|host| format!("({host})")).collect();
        format!(
            "Cells were timed on {} different hosts, whose figures cannot be compared: {}. Run the timed cells on one host.",
            hosts.len(),
            named.join(", ")
        )
    })
}

fn several_builds(data: &Data) -> Option<String> {
    let builds = several(data, |cell| {
        let (build, _) = program::parts(&cell.program);
        Some(if build.is_empty() { "unknown" } else { build })
    })?;
    Some(format!(
        "The cells were run by several builds of the program, which may measure differently: {builds}. --resume runs again those that another build ran."
    ))
}

fn several_traces(data: &Data) -> Option<String> {
    let traces = several(data, |cell| program::parts(&cell.program).1)?;
    Some(format!(
        "The cells were run with several sets of traces, by checksum: {traces}. --resume runs again those that were not run with the traces of --traces."
    ))
}

/// Returns how many cells there are of each, if there is more than one.
fn several<'d>(data: &'d Data, of: impl Fn(&'d CellRows) -> Option<&'d str>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in data.cells().iter().filter_map(of) {
        *counts.entry(one).or_default() += 1;
    }
    (counts.len() > 1).then(|| {
        let named = |(name, count): (&&str, &usize)| format!("{} of {name}", counted(*count));
        let named: Vec<String> = counts.iter().map(named).collect();
        named.join(", ")
    })
}
