//! `brickyard compare`: compares two result documents, or two configurations; the exit code is for
//! CI.
//!
//! | file | contents |
//! |---|---|
//! | `sides.rs` | reads both sides and matches their rows |
//! | `notes.rs` | warnings: different hosts, rows without a counterpart, scatter |
//! | `text.rs` | the table |
//! | `record.rs` | the same for programs: CSV, JSON |
//!
//! Exit codes: 0 nothing got worse, 1 something did, 2 the two cannot be compared, or with
//! `--complete` not in full.

mod notes;
mod record;
mod sides;
mod text;

use std::fs;
use std::path::PathBuf;

use anyhow::bail;
use brickyard_results::SampleKind;
use brickyard_results::judge::{Chosen, Judgements, Rules, Timed, Verdict};
use brickyard_run::bar;
use clap::Args;

use brickyard_measure::command::misuse::Misuse;
use brickyard_measure::command::output::SheetOutput;
use brickyard_results::{Format, printable as plain};
use brickyard_run::terminal::tell;
use sides::Sides;

/// How many rows a message names; it counts the rest.
const NAMED_MAX: usize = 5;

/// The options of `brickyard compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Documents are what other subcommands write with `--format json -o FILE`; of a folder written by `brickyard reproduce`, results.json is read.

  brickyard compare before.json after.json
  brickyard compare before.json after.json --only order-0 --statistics
  brickyard compare run.json run.json --config-a list-2007 --config-b brickyard
  brickyard compare a1.json b1.json --again-a a2.json --again-a a3.json --again-b b2.json --again-b b3.json

Simulated, replayed and counted rows are the same in every run of a build, so any loss greater than --threshold is found, and the code is its cause. Timed \
rows differ between runs of one build, by more than the scatter of their rounds. With one run per side, a timed row is worse only if the difference is \
significant and beyond --timed-threshold, so a smaller loss is not found. With several runs per side (--again-a, --again-b; run A and B in turn), each run is \
one sample, and --threshold applies to these rows too.

Exit code: 0 nothing got worse, 1 something did (named on standard error), 2 the two cannot be compared, or with --complete not in full.")]
pub(crate) struct Compare {
    /// The baseline: a document, or a folder with a results.json.
    a: PathBuf,
    /// The document or folder that is compared with the baseline.
    b: PathBuf,
    /// A row is worse if its loss is proven and greater than this.
    #[arg(long, default_value = "2", allow_negative_numbers = true, value_parser = percent, value_name = "PERCENT")]
    threshold: f64,
    /// With one run per side, a timed row is worse or better only if one mean exceeds the other by
    /// more than this: 100 means twice as much.
    #[arg(long, default_value = "100", allow_negative_numbers = true, value_parser = percent, value_name = "PERCENT")]
    timed_threshold: f64,
    /// Another run of the baseline's build; may be repeated. A timed row then has one sample per
    /// run.
    #[arg(long, value_name = "FILE", requires = "again_b")]
    again_a: Vec<PathBuf>,
    /// Another run of the other document's build; may be repeated.
    #[arg(long, value_name = "FILE", requires = "again_a")]
    again_b: Vec<PathBuf>,
    /// The probability of calling any row different if none is.
    #[arg(long, default_value = "0.05", allow_negative_numbers = true, value_parser = probability, value_name = "P")]
    alpha: f64,
    /// Only compare rows with this text in their name (CONFIG / WORKLOAD / METRIC); may be
    /// repeated: rows with any of the texts.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Exit with 2 if the other document lacks rows of the baseline. Rows excluded by --only do not
    /// count.
    #[arg(long)]
    complete: bool,
    /// Exit with 1 also if a row changed from 0, or in a metric of which neither direction is
    /// better.
    #[arg(long)]
    fail_on_changed: bool,
    /// Compare only this configuration of the baseline, with the one of --config-b: rows are
    /// matched by workload and metric.
    #[arg(long, value_name = "NAME", requires = "config_b")]
    config_a: Option<String>,
    /// Compare only this configuration of the other document.
    #[arg(long, value_name = "NAME", requires = "config_a")]
    config_b: Option<String>,
    /// Add the 95 % interval of the ratio and p to the table. CSV and JSON always have them.
    #[arg(long)]
    statistics: bool,
    #[command(flatten)]
    output: SheetOutput,
}

impl Compare {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let chosen = match (&self.config_a, &self.config_b) {
            (Some(a), Some(b)) => Chosen::Configs { a, b },
            _ => Chosen::All,
        };
        let documents = [
            sides::read_all(&self.a, &self.again_a)?,
            sides::read_all(&self.b, &self.again_b)?,
        ];
        let sides = Sides::of(&documents, chosen, &self.only)?;
        self.check_output(&sides)?;
        let rules = Rules {
            alpha: self.alpha,
            threshold_percent: self.threshold,
            timed: self.timed(),
        };
        let pairs = &sides.matched.pairs;
        let bar = bar::bar(pairs.len() as u64, "{wide_bar} {pos}/{len} rows");
        let comparison = rules.compare(pairs, || bar.inc(1));
        bar.finish_and_clear();
        let notes = notes::of(&sides, &comparison);
        self.output.put(&match self.output.format {
            Format::Table => text::table(&sides, &comparison, &notes, self.statistics),
            Format::Csv => {
                notes.iter().for_each(tell);
                record::rows(&comparison).csv()
            }
            Format::Json => {
                let document = record::document(&sides, &comparison, &notes);
                format!("{document:#}\n")
            }
        })?;
        let verdict = self.verdict(&comparison);
        match self.lacking(&sides) {
            Some(lacking) => {
                let worse = verdict.err().map(|worse| format!("; {worse}"));
                bail!(Misuse::new(lacking + &worse.unwrap_or_default()))
            }
            None => verdict,
        }
    }

    /// Returns what a sample of a timed row is: a round or a run.
    fn timed(&self) -> Timed {
        if self.again_a.is_empty() {
            let threshold_percent = self.timed_threshold.max(self.threshold);
            Timed::Rounds { threshold_percent }
        } else {
            Timed::Runs
        }
    }

    /// With `--complete`, returns a message on the rows that the other document lacks, if any.
    fn lacking(&self, sides: &Sides<'_>) -> Option<String> {
        let lacking: Vec<String> = sides.matched.alone[0]
            .iter()
            .map(|name| plain(name))
            .collect();
        (self.complete && !lacking.is_empty()).then(|| {
            format!(
                "--complete: {} lacks rows of the baseline ({}): {}",
                plain(&self.b.display().to_string()),
                lacking.len(),
                notes::some_of(&lacking, NAMED_MAX)
            )
        })
    }

    /// Returns an error if rows got worse, or if rows changed and `--fail-on-changed` is given.
    fn verdict(&self, comparison: &Judgements<'_>) -> anyhow::Result<()> {
        let changed = comparison.count(Verdict::Changed);
        worse(comparison)?;
        if self.fail_on_changed && changed > 0 {
            let rows = comparison.rows.len();
            bail!("{changed} of {rows} rows changed, and --fail-on-changed allows none");
        }
        Ok(())
    }

    /// Fails if the output file cannot be written, or is one of the documents.
    fn check_output(&self, sides: &Sides<'_>) -> anyhow::Result<()> {
        let Some(path) = self.output.path() else {
            return Ok(());
        };
        self.output.check()?;
        let same = |input: &PathBuf| matches!((fs::canonicalize(input), fs::canonicalize(path)), (Ok(a), Ok(b)) if a == b);
        if sides.files().into_iter().flatten().any(same) {
            let path = path.display();
            bail!(Misuse::new(format!(
                "{path} is one of the compared documents: give --output another name"
            )));
        }
        Ok(())
    }
}

/// Returns an error that names the rows that got worse, if there are any.
fn worse(comparison: &Judgements<'_>) -> anyhow::Result<()> {
    let mut worse: Vec<(f64, String)> = comparison
        .rows
        .iter()
        .filter(|row| row.verdict == Verdict::Worse)
        .map(|row| (row.gain_percent.unwrap_or(0.0), plain(&row.pair.name)))
        .collect();
    if worse.is_empty() {
        return Ok(());
    }
    let mut rows = comparison.rows.iter();
    let has_timed = rows.any(|row| row.pair.kind == Some(SampleKind::Timed));
    worse.sort_by(|a, b| a.0.total_cmp(&b.0));
    let named = worse
        .iter()
        .map(|(gain, name)| format!("{name} ({gain:.2} %)"));
    bail!(
        "{} of {} rows got worse by more than {} %{}: {}",
        worse.len(),
        comparison.rows.len(),
        comparison.rules.threshold_percent,
        match comparison.rules.timed {
            Timed::Rounds { threshold_percent } if has_timed => {
                format!(" (timed: {threshold_percent} %)")
            }
            _ => String::new(),
        },
        notes::some_of(&named.collect::<Vec<_>>(), NAMED_MAX)
    )
}

/// Parses a threshold in percent.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok();
    percent
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| "give a percentage of 0 or more, such as 2".into())
}

/// Parses a significance level.
fn probability(text: &str) -> Result<f64, String> {
    let probability = text.parse::<f64>().ok();
    probability
        .filter(|probability| *probability > 0.0 && *probability < 1.0)
        .ok_or_else(|| "give a number between 0 and 1, such as 0.05".into())
}
