//! What the history costs on this host: samples it for some minutes, more often than the service
//! does, writes them as if they were a minute apart, and tells bytes and CPU time. As root it has
//! the frames too.
//!
//! ```sh
//! sudo cargo run --profile lab -p brickyard-serve --example history_cost
//! ```

use core::error::Error;
use core::time::Duration;
use std::fs;
use std::thread::sleep;
use std::time::{Instant, SystemTime};

use brickyard_host::Host;
use brickyard_serve::history::{Store, TABLES, read};
use brickyard_serve::sampler::{Fallen, Sampler};
use rustix::time::{ClockId, clock_gettime};

/// Samples: four hours of one a minute.
const SAMPLES: u32 = 240;
/// Every so many there is a new reading of the frames.
const READING: u32 = 10;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let untraced = Fallen::Untraced("this measures the history alone".to_owned());
    let mut sampler = Sampler::new(Host::here().keep_open(), 1.0, untraced);
    let folder = std::env::temp_dir().join(format!("brickyard-history-{}", std::process::id()));
    let mut store = Store::open(&folder, "cost", 1 << 40)?;
    let began = SystemTime::now();
    let (mut adding, mut writing) = (Vec::new(), Vec::new());
    for number in 0..SAMPLES {
        if number % READING == 0 && !sampler.read_all_frames() {
            println!("the frames cannot be read");
        }
        let mut sample = sampler.sample()?;
        sample.look.time = began + Duration::from_secs(60) * number;
        // Every fifth also writes the files.
        let (cpu_before, wall) = (cpu(), Instant::now());
        store.add(&sample, |_, _| {})?;
        let taken = (cpu() - cpu_before, wall.elapsed().as_secs_f64());
        if number % 5 == 0 {
            writing.push(taken);
        } else {
            adding.push(taken);
        }
        sleep(Duration::from_millis(500));
    }
    store.flush()?;
    for (name, mut taken) in [("add", adding), ("add and write", writing)] {
        taken.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median, most) = (taken[taken.len() / 2], taken[taken.len() - 1]);
        println!(
            "{name}: CPU {:.2} ms, at most {:.2} ms; until it is on the disk {:.1} ms",
            median.0 * 1e3,
            most.0 * 1e3,
            median.1 * 1e3
        );
    }
    let days = f64::from(SAMPLES) / 1440.0;
    for table in TABLES {
        let mut bytes = 0;
        for file in fs::read_dir(folder.join(table))? {
            bytes += file?.metadata()?.len();
        }
        println!("{table}: {:.2} MB a day", bytes as f64 / days / 1e6);
    }
    let all = began..began + Duration::from_secs(86_400);
    let (wall, times) = (
        Instant::now(),
        read::map_times(&folder, "cost", all.clone())?,
    );
    println!("{} maps", times.found.len());
    let rows = read::hosts(&folder, None, all, 100_000)?.rows.len();
    println!(
        "{rows} rows and these times read in {:.1} ms",
        wall.elapsed().as_secs_f64() * 1e3
    );
    fs::remove_dir_all(&folder)?;
    Ok(())
}
