//! `brickyard heap`: what a program that uses the heap has allocated.
//!
//! | file | contents |
//! |---|---|
//! | `process` | a running process: its memory, and where its heap is |
//! | `holdings` | what its heap holds, as a table, CSV or JSON |
//! | `profile`, `sites` | `brickyard heap profile`: a heap profile, as a table, CSV or JSON |

mod holdings;
mod process;
mod profile;
mod sites;

use brickyard_run::interrupt;
use core::time::Duration;
use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::Instant;

use clap::{Args, Subcommand};

use crate::misuse::Misuse;
use holdings::Holdings;
use process::Process;

/// Clears a terminal's screen and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The longest delay in handling Ctrl-C.
const TICK: Duration = Duration::from_millis(50);

/// The options of `brickyard heap`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    after_help = "\
The process is not stopped and does nothing for it: its memory is read from outside, which needs the same user or root.

Examples:
  brickyard heap 4321
  brickyard heap $(pidof server) --every 2
  brickyard heap 4321 --format json | jq .held
  brickyard heap profile server.heap"
)]
pub(crate) struct Heap {
    #[command(subcommand)]
    command: Option<Command>,
    /// The process whose heap is shown: it has libbrickyard_malloc.so preloaded or linked, or the
    /// heap as its global allocator.
    #[arg(value_name = "PID", required = true, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Show it again after so many seconds, until Ctrl-C or its end.
    #[arg(long, value_name = "SECONDS")]
    every: Option<f64>,
    /// The format. JSON is a line each time, as the process' own `brickyard_stats` writes it.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"])]
    format: String,
}

/// The commands of `brickyard heap`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Shows a heap profile: who allocated most, as a table, a flame graph, or for `go tool pprof`.
    Profile(profile::Profile),
}

impl Heap {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if let Some(Command::Profile(profile)) = &self.command {
            return profile.run();
        }
        let Some(pid) = self.pid else {
            return Err(Misuse::new("give the number of a process, or `profile FILE`").into());
        };
        let every = self.every()?;
        let process = Process::open(pid)?;
        if every.is_some() {
            interrupt::watch()?;
        }
        let begun = Instant::now();
        for round in 0.. {
            let holdings = Holdings {
                process: &process,
                seconds: begun.elapsed().as_secs_f64(),
                statistics: process.statistics()?,
            };
            self.print(&holdings, round)?;
            let Some(every) = every else { break };
            // Of the beginning, so that rounds do not drift.
            let next = begun + every * (round + 1);
            while !interrupt::asked() && Instant::now() < next {
                thread::sleep(TICK.min(next.saturating_duration_since(Instant::now())));
            }
            if interrupt::asked() {
                break;
            }
        }
        Ok(())
    }

    fn every(&self) -> Result<Option<Duration>, Misuse> {
        let Some(seconds) = self.every else {
            return Ok(None);
        };
        if !(0.1..=86_400.0).contains(&seconds) {
            return Err(Misuse::new(format!(
                "--every {seconds}: give 0.1 to 86400 seconds"
            )));
        }
        Ok(Some(Duration::from_secs_f64(seconds)))
    }

    fn print(&self, holdings: &Holdings<'_>, round: u32) -> io::Result<()> {
        let stdout = io::stdout().lock();
        let clears = self.every.is_some() && stdout.is_terminal();
        let mut text = Vec::new();
        match self.format.as_str() {
            "csv" => holdings.csv(round == 0, &mut text)?,
            "json" => holdings.json(&mut text)?,
            _ if clears => {
                text.extend(CLEAR.bytes());
                holdings.table(&mut text)?;
            }
            _ => {
                if round > 0 {
                    text.push(b'\n');
                }
                holdings.table(&mut text)?;
            }
        }
        let mut out = stdout;
        out.write_all(&text)?;
        out.flush()
    }
}
