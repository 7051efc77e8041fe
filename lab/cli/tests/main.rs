//! The tests of the command, as one program: it links once.

mod cli;
mod compare;
mod compare_kinds;
mod documents;
mod host;
mod live;
mod locks;
mod pft;
mod published;
mod record;
mod replay;
mod reproduce;
mod reproduce_cells;
mod simulate;
mod simulate_locks;
mod slab;
mod trace;
