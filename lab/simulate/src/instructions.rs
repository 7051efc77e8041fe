//! How many instructions stand between two accesses to shared memory.
//!
//! The machine sees shared words alone: what a CPU does with its registers and its stack is not
//! told to it. So each access is charged for the instructions round it, a cycle each. How many
//! those are was measured: what callgrind counts of one page taken and given back by the library on
//! real hardware (x86-64, release profile, one CPU, the platform's own calls empty), divided by the
//! shared accesses of the same page on the machine. The bursts are those of the storm.
//!
//! | configuration | instructions, hot | accesses | each | instructions, deep | accesses | each |
//! |---|---|---|---|---|---|---|
//! | `vanilla` | 282.6 | 33.0 | 8.6 | 856.9 | 106.8 | 8.0 |
//! | `list-2007` | 329.6 | 36.0 | 9.2 | 964.3 | 113.3 | 8.5 |
//! | `magazine-2013` | 366.7 | 45.0 | 8.1 | 611.0 | 76.0 | 8.0 |
//! | `brickyard` | 99.6 | 11.0 | 9.1 | 134.7 | 13.4 | 10.1 |
//!
//! In whole numbers that is 8 to 10. What is not of the four has the figure of the one whose code
//! it shares. To do it again (`bare` is what the loop itself takes, and is to be subtracted; the
//! difference between so many pages and twice as many has no beginning in it):
//!
//! ```sh
//! cargo build --release -p brickyard-simulate --example instructions
//! for function in take_burst give_burst; do for pages in 100000 200000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*$function*" \
//!         target/release/examples/instructions vanilla hot $pages
//! done; done
//! brickyard simulate storm --cpus 1 --shape hot,deep --pages 200000 --config vanilla   # accesses/page
//! ```

use brickyard_classics::Configuration;

/// Instructions for each shared access of this configuration.
#[must_use]
pub const fn per_access(configuration: Configuration) -> u64 {
    match configuration {
        Configuration::Vanilla
        | Configuration::TwoKinds2005
        | Configuration::Zone2007
        | Configuration::Magazine2013 => 8,
        Configuration::List2007 | Configuration::Combined2007 => 9,
        Configuration::Brickyard => 10,
    }
}
