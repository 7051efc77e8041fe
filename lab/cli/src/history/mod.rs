//! `brickyard history`: what `brickyard serve --history` kept of a host, over time: in the
//! terminal, as a page, or for other programs.

mod page;
mod picture;
mod rows;
mod sparkline;
mod table;
mod time;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use brickyard_serve::history::figures::{FIGURES, HostRow, place_of};
use brickyard_serve::history::{HistoryError, read};
use clap::Args;

use crate::filming::write_file;
use brickyard_measure::command::misuse::Misuse;
use brickyard_measure::command::output::{self, format};
use brickyard_results::{Format, printable};
use brickyard_run::terminal::{print, tell};

/// Samples that are read, at most; of more, one in so many is.
const SAMPLES_MOST: usize = 100_000;

/// What is shown if nothing else is asked for.
const COLUMNS: [&str; 9] = [
    "huge_free",
    "huge_pool_likely",
    "huge_dropped_likely",
    "free_bytes",
    "available_bytes",
    "unusable_huge",
    "blocks_mixed",
    "compaction_stalls",
    "thp_fault_fallbacks",
];

/// Shown by `--help`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  brickyard history
      the last day, of this host
  brickyard history --from 7d --every 1day -o week.html
      a page with plots, and the picture of page blocks over time
  brickyard history --columns huge_free,blocks_mixed --every 10m
      these figures alone
  brickyard history /srv/fleet
      the newest figures of many hosts; --host NAME shows one of them
  brickyard history --from 2026-11-27T05:00:00Z --to 2026-11-27T07:00:00Z --format csv
      every sample of these two hours, for other programs";

/// The options of `brickyard history`.
#[derive(Debug, Args)]
pub(crate) struct History {
    /// The folder that `brickyard serve --history` writes to.
    #[arg(value_name = "DIR", default_value = "/var/lib/brickyard")]
    folder: PathBuf,
    /// The host, if the folder has several.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// From when on: a time such as 2026-11-27T05:00:00Z, or so long ago, such as 2h or 7d.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = time::time)]
    from: SystemTime,
    /// Until when, in the same form. [default: now]
    #[arg(long, value_name = "TIME", value_parser = time::time)]
    to: Option<SystemTime>,
    /// The figures to show, by their names in the files; `all` for all.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Put samples together in spans of this length, such as 10m or 1h. [default: as many as a
    /// screen has lines; csv and json: every sample by itself]
    #[arg(long, value_name = "TIME", value_parser = time::length)]
    every: Option<u64>,
    /// The format of the figures.
    #[arg(long, default_value = "table", value_parser = format())]
    format: Format,
    /// Write a page with plots instead.
    #[arg(long, short, value_name = "FILE.html", conflicts_with = "format")]
    output: Option<PathBuf>,
}

/// The samples of one host.
#[derive(Debug)]
struct Shown<'a> {
    /// In order of time, at least one.
    rows: &'a [HostRow],
    /// The places of the figures in [`FIGURES`].
    places: &'a [usize],
    from: SystemTime,
    /// In milliseconds, if it was given.
    every: Option<u64>,
}

impl Shown<'_> {
    fn last(&self) -> &HostRow {
        &self.rows[self.rows.len() - 1]
    }

    /// Returns the time from the first sample to the last, in milliseconds.
    fn length(&self) -> u64 {
        self.last().time - self.rows[0].time
    }
}

impl History {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let to = self.to.unwrap_or_else(time::now);
        if self.from >= to {
            return Err(Misuse::new("--from is not before --to").into());
        }
        let places = self.places()?;
        if let Some(output) = &self.output {
            let is_page = output.extension().is_some_and(|end| end == "html");
            if !is_page {
                return Err(Misuse::new("-o: give a file that ends in .html").into());
            }
            output::check(output)?;
        }
        let host = self.host.as_deref();
        self.check_host(host)?;
        let found = read::hosts(&self.folder, host, self.from..to, SAMPLES_MOST)?;
        tell_faults(&found.faults);
        if found.one_in > 1 {
            tell(format!("one sample in {} is shown", found.one_in));
        }
        if found.rows.is_empty() {
            return Err(self.nothing(host, to, found.faults));
        }
        let by_host: Vec<&[HostRow]> = found
            .rows
            .chunk_by(|one, other| one.host == other.host)
            .collect();
        let shown = |rows| Shown {
            rows,
            places: &places,
            from: self.from,
            every: self.every,
        };
        let hosts: Vec<Shown<'_>> = by_host.iter().copied().map(shown).collect();
        let text = match (self.format, &self.output, hosts.as_slice()) {
            (Format::Csv, ..) => rows::csv(&hosts),
            (Format::Json, ..) => {
                format!("{:#}\n", rows::json(&hosts, found.one_in, &found.faults))
            }
            (_, Some(output), [host]) => return self.write_page(output, host),
            (_, Some(_), _) => {
                let why = format!("-o shows one host; {}", some(&names(&by_host)));
                return Err(Misuse::new(why).into());
            }
            (_, None, [host]) => table::of_host(host, width()),
            (_, None, _) => table::of_hosts(&by_host, &places, width()),
        };
        Ok(print(&text)?)
    }

    fn places(&self) -> anyhow::Result<Vec<usize>> {
        if self.columns.iter().any(|name| name == "all") {
            return Ok((0..FIGURES.len()).collect());
        }
        let mut names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        if names.is_empty() {
            names.extend(COLUMNS);
        }
        let place = |name: &str| {
            place_of(name).ok_or_else(|| {
                let all = FIGURES.map(|figure| figure.name).join(", ");
                Misuse::new(format!("--columns {name}: there are {all}"))
            })
        };
        let places: Result<Vec<usize>, Misuse> = names.into_iter().map(place).collect();
        Ok(places?)
    }

    /// Fails if the folder has no history, or none of this host.
    fn check_host(&self, host: Option<&str>) -> anyhow::Result<()> {
        if !self.folder.is_dir() {
            let (folder, why) = (self.folder.display(), "there is no such folder");
            anyhow::bail!("{folder}: {why}; `brickyard serve --history {folder}` writes one");
        }
        let names = read::names(&self.folder)?;
        if names.is_empty() {
            let folder = self.folder.clone();
            return Err(HistoryError::Empty { folder }.into());
        }
        let Some(host) = host else { return Ok(()) };
        if read::span(&self.folder, host).is_none() {
            return Err(Misuse::new(format!("--host {host}: {}", some(&names))).into());
        }
        Ok(())
    }

    /// Returns why there is nothing to show.
    fn nothing(
        &self,
        host: Option<&str>,
        to: SystemTime,
        mut faults: Vec<HistoryError>,
    ) -> anyhow::Error {
        if let Some(fault) = faults.pop() {
            return anyhow::Error::new(fault).context("no sample can be read");
        }
        let names = read::names(&self.folder).unwrap_or_default();
        let hosts = names
            .iter()
            .filter(|name| host.is_none_or(|host| host == *name));
        let spans = hosts.filter_map(|host| read::span(&self.folder, host));
        let all = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let mut why = format!(
            "no samples from {} to {}",
            time::text(self.from),
            time::text(to)
        );
        if let Some((first, last)) = all {
            let (first, last) = (time::text(first), time::text(last));
            why += &format!("; the files begin at {first}, the last one at {last}");
        }
        anyhow::Error::msg(why)
    }

    fn write_page(&self, output: &Path, shown: &Shown<'_>) -> anyhow::Result<()> {
        let picture = picture::of(&self.folder, shown)?;
        tell_faults(&picture.faults);
        write_file(output, |out| {
            page::write(shown, &self.columns, &picture, out)
        })
    }
}

fn tell_faults(faults: &[HistoryError]) {
    for fault in faults {
        // A file's name may hold anything, such as commands for the terminal.
        tell(format!("left out: {}", printable(&fault.to_string())));
    }
}

fn names(by_host: &[&[HostRow]]) -> Vec<String> {
    by_host.iter().map(|rows| rows[0].host.clone()).collect()
}

/// Returns a text that names some hosts.
fn some(names: &[String]) -> String {
    let few = names.iter().take(10).map(|name| printable(name));
    let few = few.collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(10);
    if more == 0 {
        format!("the folder has {few}")
    } else {
        format!("the folder has {few} and {more} more")
    }
}

/// Returns the width of the terminal; `None` if the output is not one.
fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = ratatui::crossterm::terminal::size();
    Some(size.map_or(80, |(columns, _)| usize::from(columns).max(40)))
}
