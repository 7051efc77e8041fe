//! What a reader has to know before any number, a sentence each.

use std::collections::{BTreeMap, BTreeSet};

use brickyard_report::{Host, noise_warning};

use crate::data::{Data, Key};
use crate::document::{Document, Judged};
use crate::raw::{CellRows, Method};

use super::plan::counted;
use super::program;
use super::results::results;

/// Of several hosts, builds or traces, and of noise.
pub fn of(documents: &[Document], data: &Data) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    warnings.extend(several_hosts(data));
    warnings.extend(several_builds(data));
    warnings.extend(several_traces(data));
    // What is simulated varies with the seed, which is no noise of the host; and of what is timed
    // only rows whose direction is judged.
    let figures = documents.iter().flat_map(Document::figures);
    let judged = figures.filter(|figure| figure.judged == Judged::Yes);
    let keys: BTreeSet<&Key> = judged
        .flat_map(|figure| figure.of.iter().chain(&figure.against))
        .collect();
    let timed = results(data, |key, kind| {
        kind == Method::Timed && keys.contains(key)
    })?;
    warnings.extend(noise_warning(&timed));
    Ok(warnings)
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
            "What is timed was timed on {} hosts, whose figures do not mix: {}. Run these cells on one host.",
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
        "The cells were run by several builds of the program, which may differ in what they measure: {builds}. --resume runs those again that are not of the build that resumes."
    ))
}

fn several_traces(data: &Data) -> Option<String> {
    let traces = several(data, |cell| program::parts(&cell.program).1)?;
    Some(format!(
        "The cells were run by several folders of traces, by checksum: {traces}. --resume runs those again that were not run by the traces of --traces."
    ))
}

/// How many cells there are of each, if there is more than one.
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
