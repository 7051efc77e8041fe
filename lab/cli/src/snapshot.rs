//! `brickyard snapshot`: this host's memory at one time: how many blocks a request would get, now
//! and after what could be done for it, what is in mixed page blocks; a picture; and what really
//! comes when it is asked for.

pub(crate) mod figures;
pub(crate) mod forecast;
mod json;
mod picture;
mod rows;
mod table;
mod trial;
pub(crate) mod words;

use std::path::PathBuf;
use std::time::Instant;

use brickyard::Order;
use brickyard_host::Host;
use brickyard_host::forecast::Forecasts;
use brickyard_host::look::{Depth, Look};
use brickyard_host::pinned::Pinned;
use clap::Args;

use brickyard_measure::command::misuse::Misuse;
use brickyard_measure::command::output::format;
use brickyard_results::Format;
use brickyard_run::bar;
use brickyard_run::terminal::print;
use picture::Target;

/// The options of `brickyard snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo brickyard snapshot --count 500
      how many of 500 huge pages would come, by which way, and what would help
  sudo brickyard snapshot --try 500
      asks for them really, and gives them back
  sudo brickyard snapshot -o host.html
      a picture of every page
  brickyard snapshot --order 4 --format json
      for other programs, as far as this user may read")]
pub(crate) struct Snapshot {
    /// Draw a picture of every page: as FILE.png, as FILE.html that can be zoomed, or both in a
    /// folder. Needs root.
    #[arg(long, short, value_name = "DIR|FILE.png|FILE.html")]
    output: Option<PathBuf>,
    /// The format of the figures.
    #[arg(long, default_value = "table", value_parser = format())]
    format: Format,
    /// Say whether a request of this order would succeed, and if not, why. [default: the order of a
    /// huge page]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=18))]
    order: Option<u8>,
    /// Say how many of so many blocks would come.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Ask the kernel for so many huge pages really, say how many came, and give them back. The
    /// kernel may move pages and evict page cache for them.
    #[arg(long = "try", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32), conflicts_with_all = ["root", "output"])]
    attempt: Option<u64>,
    /// How to ask for them: through the pool of huge pages (nr_hugepages), as root; or in memory of
    /// its own, as any user. [default: the pool as root, else memory]
    #[arg(long, value_name = "pool|memory", value_parser = ["pool", "memory"], requires = "attempt")]
    by: Option<String>,
    /// Read another host's files, copied to this folder (DIR/proc/zoneinfo and so on).
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// What is shown.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) look: &'a Look,
    /// The order that explanations and forecasts are for.
    pub(crate) order: Order,
    /// How many blocks are asked for, if that was said.
    pub(crate) count: Option<u64>,
    pub(crate) pinned: Pinned,
    /// `None` if frames were not read, or the kernel has no such blocks.
    pub(crate) forecasts: Option<Forecasts>,
}

impl<'a> View<'a> {
    pub(crate) fn new(host: &Host, look: &'a Look, order: Order, count: Option<u64>) -> Self {
        let pinned = host.pinned();
        let forecasts = Forecasts::new(look, order, &pinned);
        Self {
            look,
            order,
            count,
            pinned,
            forecasts,
        }
    }
}

impl Snapshot {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let target = self.output.as_deref().map(Target::of).transpose()?;
        let host = host(self.root.as_deref());
        let look = look(&host)?;
        let order = chosen_order(&look, self.order)?;
        let view = View::new(&host, &look, order, self.count.or(self.attempt));
        if let Some(count) = self.attempt {
            return trial::run(&view, count, self.by.as_deref(), self.format);
        }
        print(&match self.format {
            Format::Table => table::text(&view, "brickyard snapshot")?,
            Format::Csv => rows::csv(&view),
            Format::Json => format!("{:#}\n", json::document(&view)),
        })?;
        target.map_or(Ok(()), |target| target.draw(&look))
    }
}

/// Returns this host, or the one whose files are below `root`.
pub(crate) fn host(root: Option<&std::path::Path>) -> Host {
    root.map_or_else(Host::here, Host::at)
}

/// Returns the requested order, or that of a huge page; fails if this kernel has no blocks of it.
pub(crate) fn chosen_order(look: &Look, asked: Option<u8>) -> anyhow::Result<Order> {
    let highest = look.zones.iter().map(|zone| zone.max_order).max();
    let highest = highest.unwrap_or(Order::DEFAULT_MAX);
    let Some(asked) = asked else {
        return Ok(look.huge_order.min(highest));
    };
    let order = Order::try_new(asked).filter(|&order| order <= highest);
    let wrong = || {
        Misuse::new(format!(
            "--order {asked}: this host has blocks up to order {highest}"
        ))
    };
    Ok(order.ok_or_else(wrong)?)
}

/// Reads everything that this user may read, with a progress bar.
fn look(host: &Host) -> anyhow::Result<Look> {
    let began = Instant::now();
    let now = || began.elapsed().as_nanos() as u64;
    let bar = bar::bar(0, "{msg} {bar:30} {percent} %");
    bar.set_message("reading page states");
    let look = Look::at(host, Depth::Everything, now, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(look?)
}
