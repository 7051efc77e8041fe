//! What is made of the cells of a folder: the page, the tables as files, and what the terminal says.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use brickyard_report::{Host, Metric, Results, Row, noise_warning, write_json};
use brickyard_reproduce::data::{Data, Key};
use brickyard_reproduce::directions::{Directions, Judged};
use brickyard_reproduce::document::{Among, Document, Figure, Judged as Judging, Place};
use brickyard_reproduce::judge::Judge;
use brickyard_reproduce::raw::{CellRows, Kind};
use brickyard_reproduce::store::{Folder, write_csv, write_rows};
use brickyard_reproduce::{documents, figures, page};

use super::AGAIN;
use super::plan::Plan;

/// What the report is made of.
pub(super) struct Report<'a> {
    pub(super) folder: &'a Folder,
    pub(super) seed: u64,
    /// The command that made the run.
    pub(super) command: String,
    /// Cells that are lacking, with why.
    pub(super) missing: Vec<page::Missing>,
    /// The experiments that were asked for.
    pub(super) experiments: Vec<&'static str>,
}

impl Report<'_> {
    /// Makes everything, and prints the summary, whose last line is the path of the page.
    pub(super) fn make(&self) -> anyhow::Result<Data> {
        let data = self.data()?;
        let mut documents = documents::all();
        documents.retain(|document| self.experiments.contains(&document.experiment));
        let judge = Judge::new(&documents, &data);
        let file = |name: &str| self.folder.file(name);
        write_rows(&file("rows.parquet"), &data)?;
        write_csv(&file("rows.csv"), &data)?;
        figures::write_csv(&file("figures.csv"), &documents, &judge)?;
        let results = results(&data, |_, _| true)?;
        write_as(&file("results.json"), |out| write_json(&results, out))?;
        let path = file("report.html");
        let judged = |figure: &Figure| judge.judge(figure);
        let cell_command = |cell: &str| Plan::command(cell, self.seed, Path::new(AGAIN));
        let report = page::Report {
            documents: &documents,
            data: &data,
            judged: &judged,
            command: self.command.clone(),
            cell_command: &cell_command,
            warnings: warnings(&documents, &data)?,
            pages: self.pages(&data)?,
            date: today(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            missing: self.missing.clone(),
            winner: Some(documents::winner()),
        };
        write_as(&path, |out| page::write(&report, out))?;
        let winner = documents
            .first()
            .and_then(|first| documents::winner().plain(&judged, first));
        if let Some(winner) = winner {
            println!("{winner}");
        }
        for document in &documents {
            print!("{}", summary(document, &judged));
        }
        println!("{}", path.display());
        Ok(data)
    }

    /// The rows of all cells in the folder.
    fn data(&self) -> anyhow::Result<Data> {
        let names = self.folder.cells().with_context(|| {
            let path = self.folder.path().display();
            format!("cannot look into {path}")
        })?;
        let mut cells: Vec<CellRows> = Vec::new();
        for name in &names {
            let cell = self.folder.read(name)?;
            if cell.seed != self.seed {
                bail!(
                    "{name} was run with seed {}, not {}: give --seed {0}, or another folder by --output",
                    cell.seed,
                    self.seed
                );
            }
            if self.experiments.contains(&cell.experiment()) {
                cells.push(cell);
            }
        }
        if cells.is_empty() {
            let path = self.folder.path().display();
            bail!("no cell of {path} is done, so there is nothing to report");
        }
        Ok(Data::new(cells))
    }

    /// The pages that the cells in `data` made: whoever counts the shots of a machine's films has a page of it.
    fn pages(&self, data: &Data) -> anyhow::Result<Vec<page::Embedded>> {
        let filmed = data.keys().filter(|key| key.metric == "shots");
        let filmed: BTreeSet<_> = filmed.map(|key| (&key.experiment, &key.machine)).collect();
        let read = |(experiment, name): (&String, &String)| {
            let path = self.folder.file("pages").join(format!("{name}.html"));
            let html = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Ok(page::Embedded {
                experiment: experiment.clone(),
                title: format!(
                    "Each page of {name} while huge pages are asked for, by configuration"
                ),
                file: format!("pages/{name}.html"),
                html,
            })
        };
        filmed.into_iter().map(read).collect()
    }
}

/// What a reader has to know before any number.
fn warnings(documents: &[Document], data: &Data) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    let timed = data.cells().iter().filter(|cell| cell.kind == Kind::Timed);
    let mut hosts: Vec<&Host> = Vec::new();
    for cell in timed {
        if !hosts.contains(&&cell.host) {
            hosts.push(&cell.host);
        }
    }
    if hosts.len() > 1 {
        let hosts: Vec<String> = hosts.iter().map(|host| format!("({host})")).collect();
        warnings.push(format!(
            "What is timed was timed on {} hosts, whose figures do not mix: {}. Run these cells on one host.",
            hosts.len(),
            hosts.join(", ")
        ));
    }
    // What is simulated varies with the seed, which is no noise of the host; and of what is timed only rows whose direction is judged.
    let figures = documents.iter().flat_map(Document::figures);
    let judged = figures.filter(|figure| figure.judged == Judging::Yes);
    let keys: BTreeSet<&Key> = judged
        .flat_map(|figure| figure.of.iter().chain(&figure.against))
        .collect();
    let timed = results(data, |key, kind| kind == Kind::Timed && keys.contains(key))?;
    warnings.extend(noise_warning(&timed));
    Ok(warnings)
}

/// The samples of some keys as a document that `brickyard compare` reads.
fn results(data: &Data, wanted: impl Fn(&Key, Kind) -> bool) -> anyhow::Result<Results> {
    let host = data.cells().iter().find(|cell| cell.kind == Kind::Timed);
    let host = host
        .or(data.cells().first())
        .map_or_else(Host::unknown, |cell| cell.host.clone());
    let mut results = Results::new("reproduce", host);
    for key in data.keys() {
        let samples = data.samples(key);
        let Some(samples) = samples.filter(|samples| wanted(key, samples.kind)) else {
            continue;
        };
        let metric = Metric {
            name: &key.metric,
            unit: samples.unit,
            better: samples.better,
        };
        let workload = format!("{} {} {}", key.experiment, key.machine, key.workload);
        results.push(Row::new(&key.config, workload, metric, samples.values)?)?;
    }
    Ok(results)
}

fn write_as(
    path: &PathBuf,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let done = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    done.with_context(|| format!("cannot write {}", path.display()))
}

/// What the terminal says of a document: its directions, and its first findings.
fn summary(document: &Document, judged: Judged<'_>) -> String {
    let mut out = format!("{} ({})\n", document.title, document.experiment);
    let counts = Directions::of(judged, document, Among::All);
    if counts.all() > 0 {
        out += &format!(
            "  of {} published directions {} come out the same, {} opposite, {} within noise\n",
            counts.all(),
            counts.same,
            counts.opposite,
            counts.noise
        );
    }
    let first = document
        .findings
        .iter()
        .filter(|finding| finding.place == Place::Summary);
    for text in first.filter_map(|finding| finding.plain(judged, document)) {
        out += &format!("  {text}\n");
    }
    out
}

/// The date of the host, as `2026-11-21`.
fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split_once('T')
        .map_or_else(|| now.clone(), |(date, _)| date.to_owned())
}
