//! The small program: its arguments, and what it prints.
//!
//! ```text
//! brickyard-heap-loads LOAD [THREADS [SCALE [SETTLE]]]
//! brickyard-heap-loads latency THREADS SECONDS
//! brickyard-heap-loads measure PRELOAD PROGRAM [ARGUMENT...]
//! brickyard-heap-loads starts PRELOAD TIMES PROGRAM [ARGUMENT...]
//! ```
//!
//! A load prints lines of a name and a value: `malloc` and `c-library` (paths of objects),
//! `operations`, `live`; with SETTLE, then idles for so many seconds, and prints `settled`, the KiB
//! that are still resident. `latency` prints what `latency/` says. `measure` runs a program with a
//! library preloaded (`-` for none), and prints the line of [`ProgramCost`] after all that the
//! program printed; it exits with the program's code. `starts` does that with the sum of so many
//! runs.

use core::time::Duration;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic;
use std::process::{Command, ExitCode};
use std::thread;

use crate::loads::binding;
use crate::loads::catalog::{CATALOG, Load};
use crate::loads::latency::{self, usage::memory_kib};
use crate::loads::measure::ProgramCost;
use crate::loads::work::LoadTask;

/// The code for wrong arguments.
const WRONG_USAGE: u8 = 2;

/// Does what the arguments say.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let done = match arguments.next() {
        Some(first) if first == "measure" => measure(arguments),
        Some(first) if first == "starts" => starts(arguments),
        Some(first) if first == "latency" => latency(arguments),
        Some(first) => load(&first.to_string_lossy(), arguments),
        None => Err(Failure::Usage("no load is named".into())),
    };
    let (why, code) = match done {
        Ok(code) => return ExitCode::from(code),
        Err(Failure::Usage(why)) => (why, WRONG_USAGE),
        Err(Failure::Work(why)) => (why, 1),
    };
    // If standard error is closed, only the exit code reports the failure.
    let _ = writeln!(io::stderr(), "{}: {why}", crate::loads::PROGRAM);
    if code == WRONG_USAGE {
        let loads: Vec<_> = CATALOG.iter().map(|load| load.name).collect();
        let loads = loads.join(", ");
        let _ = writeln!(
            io::stderr(),
            "usage: {0} LOAD [THREADS [SCALE [SETTLE]]]\n       {0} latency THREADS SECONDS\n       {0} measure PRELOAD|- PROGRAM [ARGUMENT...]\n       {0} starts PRELOAD|- TIMES PROGRAM [ARGUMENT...]\nloads: {loads}",
            crate::loads::PROGRAM
        );
    }
    ExitCode::from(code)
}

#[derive(Debug)]
enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// The work has failed.
    Work(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Work(error.to_string())
    }
}

/// Begins a load: prints what `malloc` belongs to.
fn begin(out: &mut impl Write) -> Result<(), Failure> {
    // Where memory is wrong, nothing more is done with it: no unwinding, no destructors.
    panic::set_hook(Box::new(|panic| {
        let _ = writeln!(io::stderr(), "{}: {panic}", crate::loads::PROGRAM);
        // SAFETY: it only ends the process.
        unsafe { libc::_exit(1) }
    }));
    // Where the family is not whole, it is not used.
    let malloc = binding::of_malloc().map_err(Failure::Work)?;
    writeln!(out, "malloc {malloc}")?;
    writeln!(out, "c-library {}", binding::of_the_c_library())?;
    Ok(())
}

fn load(name: &str, mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let load =
        Load::named(name).ok_or_else(|| Failure::Usage(format!("no load is called {name:?}")))?;
    let threads = threads(arguments.next().unwrap_or_else(|| "1".into()))?;
    let scale = number("a scale", arguments.next(), 1.0, 1000.0)?;
    let work = LoadTask { threads, scale };
    let settle = match arguments.next() {
        None => None,
        given => Some(number("a number of seconds", given, 0.0, MOST_SECONDS)?),
    };
    no_more(arguments)?;
    let mut out = io::stdout().lock();
    begin(&mut out)?;
    let done = load.run(&work);
    writeln!(out, "operations {}", done.operations)?;
    if let Some(live) = done.live {
        writeln!(out, "live {live}")?;
    }
    if let Some(seconds) = settle {
        thread::sleep(Duration::from_secs_f64(seconds));
        writeln!(out, "settled {}", memory_kib("VmRSS").unwrap_or(0))?;
    }
    out.flush()?;
    Ok(0)
}

/// A day.
const MOST_SECONDS: f64 = 86_400.0;

fn latency(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let (Some(given), seconds @ Some(_)) = (arguments.next(), arguments.next()) else {
        return Err(Failure::Usage("latency needs threads and seconds".into()));
    };
    let threads = threads(given)?;
    let seconds = number("a number of seconds", seconds, 0.0, MOST_SECONDS)?;
    no_more(arguments)?;
    let mut out = io::stdout().lock();
    begin(&mut out)?;
    latency::run(threads, Duration::from_secs_f64(seconds), &mut out)?;
    out.flush()?;
    Ok(0)
}

fn wrong(what: &str, value: &OsString) -> Failure {
    Failure::Usage(format!("{value:?} is not {what}"))
}

fn threads(given: OsString) -> Result<usize, Failure> {
    let number = given.to_str().and_then(|number| number.parse().ok());
    let number = number.filter(|&number| number > 0);
    number.ok_or_else(|| wrong("a number of threads", &given))
}

/// Reads a number above 0 and up to `most`.
fn number(what: &str, given: Option<OsString>, usual: f64, most: f64) -> Result<f64, Failure> {
    let Some(given) = given else {
        return Ok(usual);
    };
    let number = given.to_str().and_then(|number| number.parse().ok());
    let number = number.filter(|&number| 0.0 < number && number <= most);
    number.ok_or_else(|| wrong(what, &given))
}

fn no_more(mut arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    match arguments.next() {
        Some(more) => Err(Failure::Usage(format!("{more:?} is one argument too many"))),
        None => Ok(()),
    }
}

/// Returns a program's command with a library preloaded, and with these arguments.
fn preloaded(
    preload: OsString,
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("LD_PRELOAD");
    if preload != "-" {
        command.env("LD_PRELOAD", preload);
    }
    command
}

/// Prints what a program took. Returns its exit code.
fn told(program: &OsString, done: io::Result<(ProgramCost, i32)>) -> Result<u8, Failure> {
    let (measured, code) =
        done.map_err(|error| Failure::Work(format!("{}: {error}", program.display())))?;
    // On a line of its own, even if the program's last line has no end.
    writeln!(io::stdout(), "\n{measured}")?;
    Ok(code as u8)
}

fn measure(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let (Some(preload), Some(program)) = (arguments.next(), arguments.next()) else {
        return Err(Failure::Usage("measure needs a program".into()));
    };
    let mut command = preloaded(preload, &program, arguments);
    told(&program, ProgramCost::of(&mut command))
}

fn starts(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let mut next = || arguments.next();
    let (Some(preload), Some(times), Some(program)) = (next(), next(), next()) else {
        return Err(Failure::Usage("starts needs a number and a program".into()));
    };
    let number = times.to_str().and_then(|number| number.parse().ok());
    let number = number.filter(|&number| number > 0);
    let number = number.ok_or_else(|| wrong("a number of times", &times))?;
    let mut command = preloaded(preload, &program, arguments);
    told(&program, ProgramCost::of_starts(&mut command, number))
}
