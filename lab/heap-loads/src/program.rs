//! The small program: its arguments, and what it prints.
//!
//! ```text
//! brickyard-heap-loads LOAD [THREADS [SCALE]]
//! brickyard-heap-loads measure PRELOAD PROGRAM [ARGUMENT...]
//! ```
//!
//! A load prints lines of a name and a value: `malloc` and `c-library` (paths of objects),
//! `operations`, `live`. `measure` runs a program with a library preloaded (`-` for none), and
//! prints the line of [`Measured`] after all that the program printed; it exits with the program's
//! code.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic;
use std::process::{Command, ExitCode};

use crate::binding;
use crate::catalog::{CATALOG, Load};
use crate::measure::Measured;
use crate::work::Work;

/// The code for wrong arguments.
const WRONG_USAGE: u8 = 2;

/// Does what the arguments say.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let done = match arguments.next() {
        Some(first) if first == "measure" => measure(arguments),
        Some(first) => load(&first.to_string_lossy(), arguments),
        None => Err(Failure::Usage("no load is named".into())),
    };
    let (why, code) = match done {
        Ok(code) => return ExitCode::from(code),
        Err(Failure::Usage(why)) => (why, WRONG_USAGE),
        Err(Failure::Work(why)) => (why, 1),
    };
    // If standard error is closed, only the exit code reports the failure.
    let _ = writeln!(io::stderr(), "{}: {why}", crate::PROGRAM);
    if code == WRONG_USAGE {
        let loads: Vec<_> = CATALOG.iter().map(|load| load.name).collect();
        let loads = loads.join(", ");
        let _ = writeln!(
            io::stderr(),
            "usage: {0} LOAD [THREADS [SCALE]]\n       {0} measure PRELOAD|- PROGRAM [ARGUMENT...]\nloads: {loads}",
            crate::PROGRAM
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

fn load(name: &str, arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let load =
        Load::named(name).ok_or_else(|| Failure::Usage(format!("no load is called {name:?}")))?;
    let work = work(arguments)?;
    // Where memory is wrong, nothing more is done with it: no unwinding, no destructors.
    panic::set_hook(Box::new(|panic| {
        let _ = writeln!(io::stderr(), "{}: {panic}", crate::PROGRAM);
        // SAFETY: it only ends the process.
        unsafe { libc::_exit(1) }
    }));
    // Where the family is not whole, it is not used.
    let malloc = binding::of_malloc().map_err(Failure::Work)?;
    let mut out = io::stdout().lock();
    writeln!(out, "malloc {malloc}")?;
    writeln!(out, "c-library {}", binding::of_the_c_library())?;
    let done = load.run(&work);
    writeln!(out, "operations {}", done.operations)?;
    if let Some(live) = done.live {
        writeln!(out, "live {live}")?;
    }
    out.flush()?;
    Ok(0)
}

fn work(mut arguments: impl Iterator<Item = OsString>) -> Result<Work, Failure> {
    let mut work = Work {
        threads: 1,
        scale: 1.0,
    };
    let wrong = |what: &str, value: &OsString| Failure::Usage(format!("{value:?} is not {what}"));
    if let Some(threads) = arguments.next() {
        let number = threads.to_str().and_then(|number| number.parse().ok());
        let number = number.filter(|&number| number > 0);
        work.threads = number.ok_or_else(|| wrong("a number of threads", &threads))?;
    }
    if let Some(scale) = arguments.next() {
        let number = scale.to_str().and_then(|number| number.parse().ok());
        let number = number.filter(|&number| 0.0 < number && number <= 1000.0);
        work.scale = number.ok_or_else(|| wrong("a scale", &scale))?;
    }
    match arguments.next() {
        Some(more) => Err(Failure::Usage(format!("{more:?} is one argument too many"))),
        None => Ok(work),
    }
}

fn measure(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let (Some(preload), Some(program)) = (arguments.next(), arguments.next()) else {
        return Err(Failure::Usage("measure needs a program".into()));
    };
    let mut command = Command::new(&program);
    command.args(arguments).env_remove("LD_PRELOAD");
    if preload != "-" {
        command.env("LD_PRELOAD", preload);
    }
    let (measured, code) = Measured::of(&mut command)
        .map_err(|error| Failure::Work(format!("{}: {error}", program.display())))?;
    // On a line of its own, even if the program's last line has no end.
    writeln!(io::stdout(), "\n{measured}")?;
    Ok(code as u8)
}
