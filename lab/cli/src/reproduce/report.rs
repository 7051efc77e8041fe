//! The output made from the cells of a folder: the page, and the tables as files.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{anyhow, bail};

use brickyard_experiments::cell::Scale;
use brickyard_experiments::data::Data;
use brickyard_experiments::document::Figure;
use brickyard_experiments::judge::Judge;
use brickyard_experiments::plan::Scope;
use brickyard_experiments::raw::{CellRows, experiment_of};
use brickyard_experiments::record::Behind;
use brickyard_experiments::results::results;
use brickyard_experiments::store::{Folder, appear, write_csv, write_rows};
use brickyard_experiments::winner::winner;
use brickyard_experiments::{documents, figures, page, pages, summary, warnings};
use brickyard_results::{Format, TableOptions};

use super::command::{Commands, Start};
use brickyard_run::terminal::{print, tell};

/// The inputs of the report other than the rows.
pub(super) struct Report<'a> {
    pub(super) folder: &'a Folder,
    pub(super) commands: Commands<'a>,
    /// What it covers: the experiments, and how much of each.
    pub(super) scope: &'a Scope,
    /// The missing cells of the scope, with the reason.
    pub(super) missing: Vec<page::Missing>,
    /// Warnings about the folder, one sentence each.
    pub(super) warnings: Vec<String>,
}

impl Report<'_> {
    /// Writes all files from the rows of these cells, and prints the summary, whose last line is
    /// the path of the page. The rows of a quick run are judged together with those that the
    /// record adds. Returns those of the run.
    pub(super) fn make(&self, cells: Vec<CellRows>) -> anyhow::Result<Data> {
        if cells.is_empty() {
            let path = self.folder.path().display();
            bail!("{path} has no finished cell, so there is nothing to report");
        }
        let quick: Vec<&str> = self.scope.at(Scale::Quick).map(|one| one.name).collect();
        let planned = self.scope.cells().into_iter();
        let planned = planned.filter(|cell| cell.kind.is_exact());
        let planned = planned.filter(|cell| quick.contains(&experiment_of(&cell.name)));
        let planned: Vec<String> = planned.map(|cell| cell.name).collect();
        let behind = Behind::of(&cells, &planned)
            .map_err(|why| anyhow!("the record of this build is damaged: {why}"))?;
        let own = Data::new(cells)?;
        let all = own.cells().iter().chain(&behind.cells);
        let data = Data::new(all.cloned().collect())?;
        let mut documents = documents::all();
        let experiments: Vec<&str> = self.scope.experiments().map(|one| one.name).collect();
        documents.retain(|document| experiments.contains(&document.experiment));
        let judge = Judge::new(&documents, &data);
        let file = |name: &str| self.folder.file(name);
        write_rows(&file("rows.parquet"), &own)?;
        write_csv(&file("rows.csv"), &own)?;
        figures::write_csv(&file("figures.csv"), &documents, &judge)?;
        let results = results(&own, |_, _| true)?;
        appear(&file("results.json"), |out| {
            let text = results.text(Format::Json, &TableOptions::default());
            out.write_all(text.as_bytes())
        })?;
        let (pages, lacking) = pages::of(self.folder, &own);
        let mut warnings = self.warnings.clone();
        warnings.extend(warnings::of(&documents, &own)?);
        warnings.extend(lacking);
        warnings.iter().for_each(tell);
        let path = file("report.html");
        let judged = |figure: &Figure| judge.judge(figure);
        let cell_command = |cell: &str| self.cell_command(cell);
        let report = page::Report {
            documents: &documents,
            data: &data,
            behind: &behind,
            judged: &judged,
            command: self.commands.run(self.scope, Start::New, &self.again("")),
            cell_command: &cell_command,
            warnings,
            pages,
            date: today(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            missing: self.missing.clone(),
            winner: Some(winner()),
        };
        appear(&path, |mut out| page::write(&report, &mut out))?;
        let path = path.display();
        let mut said = summary::of(&documents, &judged);
        let behind = behind.to_string();
        if !behind.is_empty() {
            said += &format!("{behind}\n");
        }
        print(&format!("{said}{path}\n"))?;
        Ok(own)
    }

    /// Returns the command of a cell. A missing cell is run into the folder of the report, to
    /// complete it. One that exists is repeated in another folder, so that its rows are kept.
    fn cell_command(&self, cell: &str) -> String {
        if self.missing.iter().any(|missing| missing.cell == cell) {
            self.commands.cell(cell, self.folder.path())
        } else {
            self.commands.cell(cell, &self.again("-cells"))
        }
    }

    /// Returns the folder for commands that repeat something. All cells of a folder have one seed,
    /// and a whole run starts with an empty folder.
    fn again(&self, what: &str) -> PathBuf {
        PathBuf::from(format!("again-seed-{}{what}", self.commands.seed))
    }
}

/// Returns the date of the host, as `2026-11-21`.
fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split_once('T')
        .map_or_else(|| now.clone(), |(date, _)| date.to_owned())
}
