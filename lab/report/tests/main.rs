//! The tests of tables, statistics, plots and pictures, as one program: it links once.

mod golden;
mod pagetypes;
mod player;
mod plot;
mod properties;
mod scipy;
