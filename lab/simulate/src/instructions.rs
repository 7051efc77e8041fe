//! How many instructions come between two accesses to shared memory.
//!
//! The machine is called for accesses to shared words only, not for what a CPU does with its
//! registers and its stack. So each access is charged for the instructions around it, a cycle each.
//! Their number was measured: the instructions that callgrind counts for one page allocated and
//! freed by the library on real hardware (x86-64, release profile, one CPU, the platform's own
//! calls empty), divided by the shared accesses for the same page on the machine. The bursts are
//! those of the storm.
//!
//! | configuration | instructions, hot | accesses | each | instructions, deep | accesses | each |
//! |---|---|---|---|---|---|---|
//! | `vanilla` | 282.6 | 33.0 | 8.6 | 856.9 | 106.8 | 8.0 |
//! | `list-2007` | 329.6 | 36.0 | 9.2 | 964.3 | 113.3 | 8.5 |
//! | `magazine-2013` | 366.7 | 45.0 | 8.1 | 611.0 | 76.0 | 8.0 |
//! | `brickyard` | 73.5 | 9.0 | 8.2 | 111.8 | 11.4 | 9.8 |
//! | `linux-6.12`, `linux-6.18` | 593.6 | 57.0 | 10.4 | 591.0 | 57.0 | 10.4 |
//!
//! Rounded to whole numbers that is 8 to 10. (Measured with the last row, `list-2007` had 8.4 and
//! 7.9, `brickyard` 7.0 and 8.7; what they are charged stays, so that recorded results can be
//! compared.) A configuration that is not listed has the figure of the one whose code it shares. To
//! repeat the measurement (subtract `bare`, which is the cost of the loop itself; the difference
//! between two numbers of pages has no startup cost in it):
//!
//! ```sh
//! cargo build --release -p brickyard-simulate --example instructions
//! for function in take_burst give_burst; do for pages in 100000 200000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*$function*" \
//!         target/release/examples/instructions vanilla hot $pages
//! done; done
//! brickyard run storm --set cpus=1 --set shape=hot,deep --set pages=200000 --set config=vanilla   # accesses/page
//! ```

use brickyard_designs::classics::Configuration;

/// Returns the instructions to charge for each shared access of this configuration.
#[must_use]
pub const fn per_access(configuration: Configuration) -> u64 {
    match configuration {
        Configuration::Vanilla
        | Configuration::TwoKinds2005
        | Configuration::Zone2007
        | Configuration::Magazine2013 => 8,
        Configuration::List2007 | Configuration::Combined2007 => 9,
        Configuration::Brickyard | Configuration::Linux612 | Configuration::Linux618 => 10,
    }
}
