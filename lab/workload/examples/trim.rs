//! Leaves in a trace only what its command did, so that it stays small and can be kept:
//! `trim IN.parquet OUT.parquet`.
//!
//! What is left is enough for the simulated multiprocessor, which runs the command as a task. A
//! replay wants the whole recording.

use std::path::PathBuf;

use brickyard_trace::file::{read, write};
use brickyard_workload::jobs::own_events;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, to] = &words[..] else {
        return Err("usage: trim IN.parquet OUT.parquet".into());
    };
    let all = read(from)?;
    let own = own_events(&all)?;
    write(to, &own)?;
    println!("{} of {} events kept", own.events.len(), all.events.len());
    Ok(())
}
