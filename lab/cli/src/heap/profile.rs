//! `brickyard heap profile`: a sampled heap profile, named and shown.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brickyard_heap_profile::{Named, Order, Profile as Read, Space, flame, folded, pprof, sites};
use clap::{Args, ValueEnum};

use super::sites::{Form, Shown};
use crate::misuse::Misuse;
use crate::output::{SheetOutput, check};
use brickyard_run::terminal::tell;

/// The largest file that is read.
const BYTES_MOST: u64 = 1 << 30;

/// The options of `brickyard heap profile`.
#[derive(Debug, Args)]
#[command(after_help = "\
Numbers are estimates: a profile has one sample in so many bytes. Functions of allocators are left out.

Examples:
  brickyard heap profile server.heap
  brickyard heap profile server.heap --flame server.html
  brickyard heap profile server.heap --pprof server.pb.gz && go tool pprof -top server.pb.gz")]
pub(crate) struct Profile {
    /// The profile: of this heap, gperftools or another that writes `heap_v2`.
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// Which objects count.
    #[arg(long, value_enum, default_value_t = Counted::Live)]
    space: Counted,
    /// List functions by what they and all that they call allocated, instead of the lines that
    /// allocate with their callers.
    #[arg(long)]
    cumulative: bool,
    /// How many are listed.
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Write a flame graph, as a page for a browser, to this file.
    #[arg(long, value_name = "FILE.html")]
    flame: Option<PathBuf>,
    /// Write the profile with its names in pprof's own format to this file.
    #[arg(long, value_name = "FILE.pb.gz")]
    pprof: Option<PathBuf>,
    /// Write a line per stack, with its bytes, to this file.
    #[arg(long, value_name = "FILE.txt")]
    folded: Option<PathBuf>,
    #[command(flatten)]
    output: SheetOutput,
}

/// Which objects count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Counted {
    /// Those that are not freed.
    Live,
    /// All that there ever were.
    All,
}

impl Profile {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.output.check()?;
        let files = [&self.flame, &self.pprof, &self.folded];
        files
            .into_iter()
            .flatten()
            .try_for_each(|path| check(path))?;
        let name = self.profile.display();
        let text = read(&self.profile).with_context(|| format!("cannot read {name}"))?;
        let profile = Read::read(&text).with_context(|| format!("{name}"))?;
        let space = self.space(&profile)?;
        let mut named = Named::of(&profile);
        named.notes.extend(self.changed(&named));
        let order = match self.cumulative {
            true => Order::Cumulative,
            false => Order::Own,
        };
        let samples = profile.samples.iter().map(|sample| sample.of(space));
        let shown = Shown {
            space,
            order,
            period: profile.period,
            samples: samples.fold(0, |sum, amount| sum.saturating_add(amount.objects)),
            total: named.total(space),
            sites: sites(&named, space, order),
            top: self.top,
            notes: &named.notes,
        };
        let form = match self.output.format.as_str() {
            "csv" => Form::Csv,
            "json" => Form::Json,
            _ => Form::Table,
        };
        let failed = self.output.put(&|out| shown.write(form, out))?;
        self.draw(&named, space)?;
        failed.map_or(Ok(()), Err)
    }

    fn space(&self, profile: &Read) -> Result<Space, Misuse> {
        match self.space {
            Counted::Live => Ok(Space::Live),
            Counted::All if profile.has_all() || profile.samples.is_empty() => Ok(Space::All),
            Counted::All => Err(Misuse::new(
                "this profile tells only of live objects; leave out --space all",
            )),
        }
    }

    /// Writes the files that were asked for.
    fn draw(&self, named: &Named, space: Space) -> anyhow::Result<()> {
        let title = self.profile.file_name().unwrap_or(self.profile.as_os_str());
        let title = title.to_string_lossy();
        let page = |out: &mut BufWriter<File>| flame(named, space, &title, out);
        written(self.flame.as_deref(), "flame graph", page)?;
        written(self.pprof.as_deref(), "profile", |out| pprof(named, out))?;
        let lines = |out: &mut BufWriter<File>| folded(named, space, out);
        written(self.folded.as_deref(), "stacks", lines)
    }

    /// Returns a note for each file of code that is newer than the profile.
    fn changed(&self, named: &Named) -> Vec<String> {
        let time = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        let Some(profiled) = time(&self.profile) else {
            return Vec::new();
        };
        let newer = |path: &&Path| time(path).is_some_and(|changed| changed > profiled);
        let mut newer: Vec<&Path> = named.files().filter(newer).collect();
        newer.dedup();
        let note = |path: &&Path| {
            format!(
                "{} is newer than the profile: its names may be wrong",
                path.display()
            )
        };
        newer.iter().map(note).collect()
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let _ = File::open(path)?
        .take(BYTES_MOST + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MOST {
        bail!("it is larger than 1 GiB, so it is no heap profile");
    }
    Ok(text)
}

/// Writes a file, if one was asked for, and says so.
fn written(
    path: Option<&Path>,
    what: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let create = || {
        let mut out = BufWriter::new(File::create(path)?);
        write(&mut out)?;
        out.flush()
    };
    create().with_context(|| format!("cannot write {}", path.display()))?;
    tell(format_args!("{what} written to {}", path.display()));
    Ok(())
}
