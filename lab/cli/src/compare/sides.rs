//! Both sides of a comparison: the documents, and which row of one is compared with which row of
//! the other.

use core::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use brickyard_results::judge::{Chosen, Matched, Pair, as_samples, row_name};
use brickyard_results::{Host, Metric, Results, Row, printable as plain, read_json};

use super::NAMED_MAX;
use super::notes::some_of;
use brickyard_measure::command::misuse::Misuse;

/// A document and the files it was read from.
#[derive(Debug)]
pub(super) struct Document {
    /// The files: the first names the document, the others are more runs of the same build.
    paths: Vec<PathBuf>,
    results: Results,
}

/// Reads a document, and the documents of more runs of the same build.
pub(super) fn read_all(path: &Path, more: &[PathBuf]) -> anyhow::Result<Document> {
    let mut document = read(path)?;
    let mut others = Vec::new();
    for path in more {
        let other = read(path)?;
        let is_same = |one: &PathBuf| other.paths.iter().any(|path| is_one_file(one, path));
        if document.paths.iter().any(is_same) {
            bail!(Misuse::new(format!(
                "{} is given twice for one side: give another run of the same build",
                path.display()
            )));
        }
        document.paths.extend(other.paths);
        others.push(other.results);
    }
    if !others.is_empty() {
        document.results = as_samples(&document.results, &others)?;
    }
    Ok(document)
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

/// Reads a document; for a folder, its results.json.
fn read(path: &Path) -> anyhow::Result<Document> {
    let path = if path.is_dir() {
        path.join("results.json")
    } else {
        path.to_owned()
    };
    match read_json(&path) {
        Ok(results) => {
            if results.is_interrupted() {
                eprintln!(
                    "{} is of a run that was interrupted: its figures are of what was done until then",
                    path.display()
                );
            }
            Ok(Document {
                paths: vec![path],
                results,
            })
        }
        Err(error) => {
            let error = plain(&format!("{:#}", anyhow::Error::new(error)));
            bail!(Misuse::new(format!(
                "{error}; give a file that a subcommand wrote with --format json -o FILE"
            )))
        }
    }
}

/// Both sides, matched.
#[derive(Debug)]
pub(super) struct Sides<'a> {
    documents: &'a [Document; 2],
    chosen: Chosen<'a>,
    pub(super) matched: Matched,
}

impl<'a> Sides<'a> {
    /// Matches the rows whose name has one of the texts `only`; all rows if there are none.
    pub(super) fn of(
        documents: &'a [Document; 2],
        chosen: Chosen<'a>,
        only: &[String],
    ) -> anyhow::Result<Self> {
        let configs = match chosen {
            Chosen::All => [None, None],
            Chosen::Configs { a, b } => [Some(a), Some(b)],
        };
        let [a, b] = documents;
        let a = rows(a, configs[0], "--config-a")?;
        let b = rows(b, configs[1], "--config-b")?;
        let wanted = |name: &str| only.is_empty() || only.iter().any(|text| name.contains(text));
        let sides = Self {
            documents,
            chosen,
            matched: Matched::new([&a, &b], chosen, wanted)?,
        };
        sides.check(only)?;
        Ok(sides)
    }

    /// Returns the first file of each side.
    pub(super) fn paths(&self) -> [&PathBuf; 2] {
        self.files().map(|paths| &paths[0])
    }

    /// Returns all files of each side, at least one.
    pub(super) fn files(&self) -> [&[PathBuf]; 2] {
        let documents = self.documents.each_ref();
        documents.map(|document| document.paths.as_slice())
    }

    /// Returns the names of the experiments.
    pub(super) fn experiments(&self) -> [&str; 2] {
        let documents = self.documents.each_ref();
        documents.map(|document| document.results.experiment())
    }

    /// Returns the machines.
    pub(super) fn hosts(&self) -> [&Host; 2] {
        let documents = self.documents.each_ref();
        documents.map(|document| document.results.host())
    }

    /// Returns the configurations, where one of each side is compared.
    pub(super) fn configs(&self) -> [Option<&str>; 2] {
        match self.chosen {
            Chosen::All => [None, None],
            Chosen::Configs { a, b } => [Some(a), Some(b)],
        }
    }

    /// Fails if there is nothing to compare, or if a metric has different units on the two sides.
    fn check(&self, only: &[String]) -> anyhow::Result<()> {
        for Pair { name, a, b, .. } in &self.matched.pairs {
            if a.metric() != b.metric() {
                let yardstick = |metric: Metric<'_>| {
                    let (unit, better) = (plain(metric.unit), metric.better);
                    format!("{unit}, {better} is better")
                };
                let [path_a, path_b] = self.paths().map(|path| path.display());
                bail!(Misuse::new(format!(
                    "{}: {path_a} has it in {}, {path_b} in {}; measure both with the same version of the lab, or exclude such rows with --only",
                    plain(name),
                    yardstick(a.metric()),
                    yardstick(b.metric()),
                )));
            }
        }
        if self.matched.pairs.is_empty() {
            bail!(Misuse::new(self.nothing_in_common(only)));
        }
        Ok(())
    }

    /// Returns why there is nothing to compare, and what to do.
    fn nothing_in_common(&self, only: &[String]) -> String {
        let [path_a, path_b] = self.paths().map(|path| path.display());
        let mut why = format!("{path_a} and {path_b} have no row in common");
        if !only.is_empty() {
            let only: Vec<String> = only.iter().map(|text| plain(text)).collect();
            let _ = write!(why, " whose name contains: {}", only.join(", "));
        }
        let names = |document: &Document| {
            let rows = document.results.rows().iter();
            let names: Vec<String> = rows.map(|row| plain(&row_name(row, self.chosen))).collect();
            some_of(&names, 2)
        };
        let [a, b] = self.documents.each_ref().map(names);
        let _ = write!(why, "; the first has {a}, the second {b}");
        why += match (only.is_empty(), self.chosen) {
            (false, _) => ": give another text to --only",
            (true, Chosen::All) => {
                ": compare two runs of one experiment, or two configurations with --config-a and --config-b"
            }
            (true, Chosen::Configs { .. }) => ": compare two runs of one experiment",
        };
        why
    }
}

/// Returns the rows of a document, or those of the configuration that was given with `option`.
fn rows<'a>(
    document: &'a Document,
    config: Option<&str>,
    option: &str,
) -> anyhow::Result<Vec<&'a Row>> {
    let rows = document.results.rows().iter();
    let rows: Vec<&Row> = rows
        .filter(|row| config.is_none_or(|config| row.config() == config))
        .collect();
    if let (Some(config), true) = (config, rows.is_empty()) {
        let configs = document.results.configs();
        let configs: Vec<String> = configs.into_iter().map(plain).collect();
        let (path, config) = (document.paths[0].display(), plain(config));
        bail!(Misuse::new(format!(
            "{option}: {path} has no configuration `{config}`; it has {}",
            some_of(&configs, 4 * NAMED_MAX)
        )));
    }
    Ok(rows)
}
