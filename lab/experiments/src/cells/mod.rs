//! What the cells of several experiments share.
//!
//! | file | what it holds |
//! |---|---|
//! | `timed.rs`, `order.rs` | timed cells, each a round; the order of turns in it |
//! | `rows.rs` | making the rows of a cell |
//! | `configs.rs` | the configurations that several compare |
//! | `simulated.rs` | parameters and memory of simulated machines, and whether a run counts |
//! | `protocol.rs` | the protocol of 2005 and 2007 |

pub(crate) mod configs;
pub(crate) mod order;
pub(crate) mod protocol;
pub(crate) mod rows;
pub(crate) mod simulated;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod timed;
