//! Reduces a trace to its command's own events, so that it is small enough to keep:
//! `trim IN.parquet OUT.parquet`.
//!
//! The result suffices for the simulated multiprocessor, which runs the command as a task. A replay
//! needs the whole recording.

use std::path::PathBuf;

use brickyard_trace::file::{read, write};
use brickyard_workload::jobs::own_events;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, to] = &paths[..] else {
        return Err("usage: trim IN.parquet OUT.parquet".into());
    };
    let all = read(from)?;
    let own = own_events(&all)?;
    write(to, &own)?;
    println!("{} of {} events kept", own.events.len(), all.events.len());
    Ok(())
}
