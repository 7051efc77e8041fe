//! `--instructions`: how many instructions a hit is, counted by valgrind's callgrind.
//!
//! Each contestant does a number of hits in a process of its own, and then twice as many. The difference is what that number of hits costs, with neither the start of
//! the process nor any miss in it. Only what runs inside one of the two functions of `hits.rs` is counted, so an allocation and a free are told apart; what such a
//! function is by itself is counted with a heap that does nothing, and subtracted. Calls and returns on the way are in it.
//!
//! valgrind runs a program without restartable sequences: a heap that uses them shows here what it does where there are none.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use brickyard_report::{Host, Results, Row};

use super::contestant::{Contestant, NOTHING};
use super::crowd::Clock;
use super::hits::{SIDES, SIZES};
use super::process::command;
use super::work::{Work, Workload};
use crate::progress::Progress;
use crate::stop;

/// Hits of the shorter run.
const HITS: usize = 20_000;

/// Counts every contestant's hits. None where there is no valgrind, and it is said why.
///
/// # Errors
/// Where nothing could be counted.
pub fn count(
    contestants: &[Contestant],
    progress: &dyn Progress,
) -> anyhow::Result<Option<Results>> {
    if let Err(error) = Command::new("valgrind").arg("--version").output() {
        progress.warn(&format!(
            "skipped: --instructions needs valgrind, which does not start ({error}); install it"
        ));
        return Ok(None);
    }
    let nothing = Contestant {
        name: NOTHING.into(),
        heap: NOTHING.into(),
        library: None,
    };
    let all: Vec<_> = [&nothing].into_iter().chain(contestants).collect();
    let units = all.len() * SIZES.len() * SIDES.len();
    progress.begin(units as u64);
    let mut results = Results::new("slab", Host::read());
    let mut failed = 0;
    'all: for size in SIZES {
        let work = |batch| Work {
            workload: Workload::Hits,
            threads: 1,
            batch,
            size,
            live: 0,
            sample_us: 0,
            clock: Clock::Wall,
        };
        for ((_, function), metric) in SIDES.into_iter().zip(Workload::Hits.metrics()) {
            let mut by_itself = 0.0;
            for &contestant in &all {
                progress.at(&contestant.name);
                let hits = |batch| instructions(contestant, &work(batch), function);
                let counted = hits(HITS).and_then(|once| Ok((once, hits(2 * HITS)?)));
                if stop::asked() {
                    break 'all;
                }
                progress.advance(1);
                match counted {
                    Ok((once, twice)) => {
                        let each = twice.saturating_sub(once) as f64 / HITS as f64;
                        if contestant.name == NOTHING {
                            by_itself = each;
                            continue;
                        }
                        let name = work(HITS).to_string();
                        let value = vec![each - by_itself];
                        let row = Row::new(&contestant.name, name, *metric, value)?;
                        results.push(row.exact())?;
                    }
                    Err(error) => {
                        failed += 1;
                        progress.warn(&format!("{}: {error:#}", contestant.name));
                    }
                }
            }
        }
    }
    progress.end();
    if results.rows().is_empty() {
        bail!("nothing could be counted ({failed} runs failed)");
    }
    Ok(Some(results))
}

/// The instructions that a run spends in the functions with this in their name.
fn instructions(contestant: &Contestant, work: &Work, function: &str) -> anyhow::Result<u64> {
    let valgrind = [
        "valgrind".to_owned(),
        "--tool=callgrind".into(),
        "--callgrind-out-file=/dev/null".into(),
        format!("--toggle-collect=*{function}*"),
    ];
    let mut command = command(&valgrind, contestant, work)?;
    let out = command.stdin(Stdio::null()).output();
    let out = out.context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("valgrind ended with {}: {}", out.status, last_line(&said));
    }
    collected(&said).with_context(|| format!("valgrind said {:?}", last_line(&said)))
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or("")
}

/// The number of instructions that callgrind says it has collected.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit("Collected : ").next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_what_callgrind_says() {
        let said = "==7== \n==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("==7== nothing"), None);
        assert_eq!(last_line(said), "==7==");
    }
}
