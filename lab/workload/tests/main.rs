//! The tests of replay, as one program: what they instantiate is compiled once.

mod jobs;
mod kernel;
mod replay;
mod script;
mod support;
