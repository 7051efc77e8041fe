//! How many instructions come between two accesses to shared memory.
//!
//! The machine is called for accesses to shared words only, not for what a CPU does with its
//! registers and its stack. So each access is charged for the instructions around it, a cycle each.
//! Their number is counted: the instructions of one page allocated and freed by the library on real
//! hardware (x86-64, release profile, one CPU, the platform's own calls empty), divided by the
//! shared accesses for the same page on the machine. The bursts are those of the storm that one CPU
//! serves, and both count alike. `instructions.csv` has the counts of every design, and this writes
//! it (valgrind counts, so it comes out the same for one build):
//!
//! ```sh
//! cargo run --release -p brickyard-simulate --example instructions > instructions.csv
//! mv instructions.csv lab/simulate/src/
//! ```

use brickyard_designs::classics::Configuration;

/// Of each design and shape: instructions and accesses of a page.
const COUNTED: &str = include_str!("instructions.csv");

/// Returns the instructions to charge for a thousand shared accesses of this configuration.
///
/// # Panics
/// If `instructions.csv` does not have it, which a test excludes.
#[must_use]
pub fn per_thousand(configuration: Configuration) -> u64 {
    let (mut instructions, mut accesses) = (0.0, 0.0);
    for line in COUNTED.lines().skip(1) {
        let mut fields = line.split(',');
        if fields.next() == Some(configuration.name()) {
            let mut number = || {
                fields
                    .next_back()
                    .and_then(|field| field.parse::<f64>().ok())
            };
            accesses += number().unwrap_or_default();
            instructions += number().unwrap_or_default();
        }
    }
    assert!(accesses > 0.0, "nobody counted {configuration}");
    (instructions * 1000.0 / accesses).round() as u64
}
