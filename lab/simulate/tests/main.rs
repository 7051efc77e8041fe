//! The tests of the simulations, as one program: what they instantiate is compiled once.

mod explored;
mod kernbench;
mod locks;
mod pft;
mod planted;
mod storm;
