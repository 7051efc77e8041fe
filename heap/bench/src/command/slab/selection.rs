//! Chooses what is compared by the options: heaps by name, and libraries that are loaded before the
//! system's.

use std::fs;
use std::path::PathBuf;

use crate::slab::contestant::{Contestant, heaps};
use crate::slab::preload::{KNOWN, find};
use crate::slab::turn::HeapPeer;

use brickyard_measure::command::misuse::Misuse;

/// What is compared, and why some are skipped.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) skipped: Vec<String>,
}

/// Returns the contestants that the user names, or all there are, followed by the libraries that
/// the user gives.
pub(super) fn choose(
    names: &[String],
    preload: &[String],
    peers: &[&'static dyn HeapPeer],
) -> Result<Chosen, Misuse> {
    let mut chosen = Chosen::default();
    let given: Vec<NamedLibrary> = preload
        .iter()
        .map(|text| given(text))
        .collect::<Result<_, _>>()?;
    let all = heaps(peers);
    if names.is_empty() {
        for heap in &all {
            chosen.contestants.push(Contestant::heap(heap.name()));
        }
        for known in KNOWN {
            let is_given = given.iter().any(|given| given.name == known);
            if !is_given {
                chosen.add(known, find(known));
            }
        }
    }
    for name in names {
        let library = name.strip_suffix(".so");
        if let Some(heap) = all.iter().find(|heap| heap.name() == name) {
            chosen.contestants.push(Contestant::heap(heap.name()));
        } else if let Some(known) = library.filter(|name| KNOWN.contains(name)) {
            chosen.add(known, find(known));
        } else {
            let mut known: Vec<String> = all.iter().map(|heap| heap.name().into()).collect();
            known.extend(KNOWN.iter().map(|name| format!("{name}.so")));
            return Err(Misuse::new(format!(
                "--config: unknown name {name:?}; known are {}",
                known.join(", ")
            )));
        }
    }
    for known in given {
        chosen.add(&known.name, known.library);
    }
    let mut names: Vec<_> = chosen.contestants.iter().map(|one| &one.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Misuse::new(format!(
            "{} is given twice; name it once in --config or --preload",
            pair[0]
        )));
    }
    Ok(chosen)
}

impl Chosen {
    fn add(&mut self, name: &str, library: Result<PathBuf, String>) {
        match library {
            Ok(library) => self.contestants.push(Contestant::preloaded(name, library)),
            Err(reason) => self.skipped.push(format!("{name}.so is skipped: {reason}")),
        }
    }
}

/// A library that the user gives: its name, and its path or why it cannot be found.
#[derive(Debug)]
pub(crate) struct NamedLibrary {
    pub(crate) name: String,
    pub(crate) library: Result<PathBuf, String>,
}

/// Parses a value of `--preload`: `NAME=PATH`, or a known name. A path that does not exist is wrong
/// usage; a known library that is not installed is not.
fn given(text: &str) -> Result<NamedLibrary, Misuse> {
    if let Some((name, path)) = text.split_once('=') {
        let usable = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == ',');
        if !usable {
            return Err(Misuse::new(format!(
                "--preload {text}: {name:?} cannot be the name of a column; write NAME=PATH"
            )));
        }
        let library = fs::canonicalize(path).map_err(|error| {
            Misuse::new(format!(
                "--preload {text}: {path}: {error}; give the path of a shared library"
            ))
        })?;
        return Ok(NamedLibrary {
            name: name.into(),
            library: Ok(library),
        });
    }
    if !KNOWN.contains(&text) {
        return Err(Misuse::new(format!(
            "--preload {text:?}: write NAME=PATH, or one of {}",
            KNOWN.join(", ")
        )));
    }
    Ok(NamedLibrary {
        name: text.into(),
        library: find(text),
    })
}
