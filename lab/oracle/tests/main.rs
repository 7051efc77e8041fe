//! The oracles and models at work, as one program: what they instantiate is compiled once.

mod heap_model;
mod invariants;
mod model;
mod slab_model;
mod slab_threads;
mod threads;
