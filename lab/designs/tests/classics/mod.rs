//! The tests of the zones.

mod bitmap_and_buddy;
mod bulk_policies;
mod grouping;
mod in_transit;
mod limits;
mod linux;
mod linux_compact;
mod magazines;
mod mistakes;
mod nodes;
mod order_0;
mod patience;
mod per_cpu_lists;
mod pressure;
mod ranges;
#[path = "support/stopping.rs"]
mod stopping;
mod support;
