//! How many instructions come between two accesses to shared memory.
//!
//! The machine is called for accesses to shared words only, not for what a CPU does with its
//! registers and its stack. So each access is charged for the instructions around it, a cycle each.
//! Their number is counted: the instructions of one page allocated and freed by the library on real
//! hardware (x86-64, release profile, one CPU, the platform's own calls empty), divided by the
//! shared accesses for the same page on the machine. On the machine the lock is Linux's, of one
//! word; what is counted has the library's of two, a few instructions more each time it is taken.
//! The bursts are those of the storm that one CPU serves, and both count alike. `instructions.csv`
//! has the counts of every design, and this writes it (valgrind counts, so it comes out the same
//! for one build):
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
    for [name, _, of_page, accesses_of_page] in counted() {
        if name == configuration.name() {
            instructions += number(of_page);
            accesses += number(accesses_of_page);
        }
    }
    assert!(accesses > 0.0, "nobody counted {configuration}");
    (instructions * 1000.0 / accesses).round() as u64
}

/// Returns the lines of the table.
fn counted() -> impl Iterator<Item = [&'static str; 4]> {
    COUNTED.lines().skip(1).map(|line| {
        let mut fields = line.split(',');
        core::array::from_fn(|_| fields.next().unwrap_or_default())
    })
}

fn number(text: &str) -> f64 {
    text.parse().expect("instructions.csv has numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storm::Shape;

    #[test]
    fn every_design_was_counted_in_both_shapes() {
        let there: Vec<[&str; 2]> = counted().map(|[name, shape, ..]| [name, shape]).collect();
        let both =
            |one: Configuration| [Shape::Hot, Shape::Deep].map(|shape| [one.name(), shape.name()]);
        let all: Vec<[&str; 2]> = Configuration::ALL.into_iter().flat_map(both).collect();
        assert_eq!(there, all);
        for one in Configuration::ALL {
            let each = per_thousand(one);
            assert!((5_000..15_000).contains(&each), "{one}: {each}");
        }
    }
}
