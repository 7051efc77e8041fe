//! The malloc libraries that are compared by `programs` and `latency`, those that the user gives or
//! all that are found, and the small program that runs their loads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::programs;
use crate::programs::library::{C_LIBRARY, Library};
use crate::slab::preload::{KNOWN, find};
use brickyard_results::Results;

use brickyard_measure::command::misuse::Misuse;

/// What is compared, and why some are skipped.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) libraries: Vec<Library>,
    pub(crate) skipped: Vec<String>,
}

/// Returns the libraries that the user gives, or all that are found. One that is given by its name
/// and not found is wrong usage.
pub(super) fn choose(given: &[String]) -> Result<Chosen, Misuse> {
    let mut chosen = Chosen::default();
    if given.is_empty() {
        for known in KNOWN {
            match find(known) {
                Ok(path) => chosen.libraries.push(library(known, Some(path))),
                Err(reason) => chosen.skipped.push(format!("{known} is skipped: {reason}")),
            }
        }
        // After ours, which is the baseline if it is there.
        let ours = chosen
            .libraries
            .iter()
            .filter(|one| one.name == KNOWN[0])
            .count();
        chosen.libraries.insert(ours, library(C_LIBRARY, None));
    }
    for text in given {
        let library = parse(text)?;
        if chosen.libraries.iter().any(|one| one.name == library.name) {
            return Err(Misuse::new(format!(
                "--library: {} is given twice; give the second another name: NAME=PATH",
                library.name
            )));
        }
        chosen.libraries.push(library);
    }
    for library in &chosen.libraries {
        loadable(library)?;
    }
    Ok(chosen)
}

fn library(name: &str, path: Option<PathBuf>) -> Library {
    Library {
        name: name.into(),
        path,
    }
}

/// Reads a value of `--library`: `NAME=PATH`, a path (of which the name is made), or a known name.
fn parse(text: &str) -> Result<Library, Misuse> {
    let wrong = |what: String| Misuse::new(format!("--library {text}: {what}"));
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name, path),
        None if text.contains('/') => (stem(text), text),
        None if text == C_LIBRARY => return Ok(library(C_LIBRARY, None)),
        None if KNOWN.contains(&text) => {
            let path = find(text)
                .map_err(|reason| wrong(format!("{reason}, or give its path: {text}=PATH")))?;
            return Ok(library(text, Some(path)));
        }
        None => {
            return Err(wrong(format!(
                "write NAME=PATH, a path with a slash, or one of {C_LIBRARY}, {}",
                KNOWN.join(", ")
            )));
        }
    };
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == ',') {
        return Err(wrong(format!(
            "{name:?} cannot be the name of a column; write NAME=PATH"
        )));
    }
    let path = fs::canonicalize(path).map_err(|error| {
        wrong(format!(
            "{path}: {error}; give the path of a shared library"
        ))
    })?;
    Ok(library(name, Some(path)))
}

/// Returns the name of a library by its file: `jemalloc` of `/usr/lib/libjemalloc.so.2`.
fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or_default();
    let name = file.split(".so").next().unwrap_or_default();
    name.strip_prefix("lib").unwrap_or(name)
}

/// Fails if the loader would split the path.
fn loadable(library: &Library) -> Result<(), Misuse> {
    let split = |path: &Path| {
        let path = path.to_string_lossy();
        path.contains(|c: char| c.is_whitespace() || c == ':')
    };
    match &library.path {
        Some(path) if split(path) => Err(Misuse::new(format!(
            "{}: the loader splits LD_PRELOAD at blanks and colons; copy the library to a path without",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Returns the path of the small program with the loads: the given one, or the one beside this
/// program.
pub(super) fn loads_program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let Some(loads) = given else {
        return programs::loads_program();
    };
    let found = fs::canonicalize(loads).map_err(|error| {
        let loads = loads.display();
        Misuse::new(format!(
            "--loads {loads}: {error}; give the path of brickyard-heap-loads, which is built with this program"
        ))
    });
    Ok(found?)
}

/// Adds what the figures are of: the files of the libraries.
pub(super) fn describe(results: &mut Results, libraries: &[Library]) {
    for library in libraries {
        let name = &library.name;
        let file = library.path.as_deref().and_then(|path| path.file_name());
        if let Some(file) = file {
            results.about_line(format!("{name}: {}", file.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(given: &[&str]) -> String {
        let given: Vec<String> = given.iter().map(|&text| text.into()).collect();
        choose(&given).map_or_else(|why| why.to_string(), |_| String::new())
    }

    #[test]
    fn a_library_has_a_name() {
        assert_eq!(stem("/usr/lib/libjemalloc.so.2"), "jemalloc");
        assert_eq!(stem("./libtcmalloc_minimal.so.4"), "tcmalloc_minimal");
        assert_eq!(stem("./own"), "own");
        let chosen = choose(&["glibc".into(), "mine=/bin/sh".into()]).unwrap();
        let names: Vec<_> = chosen
            .libraries
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["glibc", "mine"]);
    }

    #[test]
    fn wrong_libraries_are_refused_with_the_fix() {
        assert!(why(&["nonesuch"]).contains("write NAME=PATH"));
        assert!(why(&["/no/such.so"]).contains("give the path of a shared library"));
        assert!(why(&["=/bin/sh"]).contains("cannot be the name of a column"));
        assert!(why(&["glibc", "glibc"]).contains("given twice"));
        assert!(why(&["a=/bin/sh", "a=/bin/sh"]).contains("another name"));
    }

    #[test]
    fn a_path_that_the_loader_splits_is_refused() {
        let of = |path: &str| loadable(&library("mine", Some(path.into())));
        assert!(of("/a b/m.so").is_err() && of("/a:b/m.so").is_err());
        assert!(of("/a-b/m.so").is_ok());
    }
}
