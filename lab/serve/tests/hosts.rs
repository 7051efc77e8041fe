//! Hosts that are made up, and samples of them.

use core::time::Duration;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::synthetic::{Block, SyntheticHost};
use brickyard_host::Host;
use brickyard_serve::sample::Sample;

/// 2026-11-27 05:00:00 UTC.
pub(crate) const BEGIN: u64 = 1_795_755_600;

pub(crate) fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(BEGIN + second)
}

/// Returns an empty folder of this name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("serve")
        .join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A host of 64 page blocks, of which the first `mixed` are mixed and the rest free.
pub(crate) fn blocks(mixed: usize) -> Vec<Block> {
    let mut blocks = vec![Block::Mixed; mixed];
    blocks.resize(64, Block::Free);
    blocks
}

pub(crate) fn host(name: &str, of: &str, blocks: Vec<Block>, second: u64) -> Host {
    let mut made = SyntheticHost::new(name, blocks);
    made.time = Some(at(second));
    made.write(&folder(&format!("hosts/{of}/{name}"))).unwrap()
}

/// A sample of a host of this name at this second.
pub(crate) fn sample(name: &str, of: &str, mixed: usize, second: u64) -> Sample {
    Sample::of(&host(name, of, blocks(mixed), second)).unwrap()
}
