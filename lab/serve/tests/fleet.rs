//! Queries over the histories of many hosts.
