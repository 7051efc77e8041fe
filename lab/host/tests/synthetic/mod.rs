//! Small hosts that are made up: the files that [`Host::at`] reads, of memory whose page blocks are
//! given one by one. The tests of the service and of the command use them too.

#![allow(dead_code, reason = "each program of tests uses a part")]

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use brickyard_host::Host;

/// Flags of `/proc/kpageflags`.
pub(crate) mod flag {
    /// On a list of reclaim, as memory of processes and files is.
    pub(crate) const LRU: u64 = 1 << 5;
    /// Modified.
    pub(crate) const DIRTY: u64 = 1 << 4;
    /// Free.
    pub(crate) const BUDDY: u64 = 1 << 10;
    /// Anonymous memory.
    pub(crate) const ANON: u64 = 1 << 12 | LRU;
    /// Kernel objects.
    pub(crate) const SLAB: u64 = 1 << 7;
    /// The first frame of a large page.
    pub(crate) const HEAD: u64 = 1 << 15;
    /// Its other frames.
    pub(crate) const TAIL: u64 = 1 << 16;
}

/// Frames of a page block.
pub(crate) const BLOCK: usize = 512;

/// What is in a page block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// Nothing.
    Free,
    /// One anonymous page, the rest free.
    Single,
    /// One anonymous page in two frames.
    EveryOther,
    /// A large page of a modified file, the rest free.
    Modified,
    /// Clean pages of files.
    Cached,
    /// Anonymous memory.
    Anonymous,
    /// One page of a slab among anonymous memory.
    Mixed,
    /// Slabs.
    Slab,
    /// Nothing has a flag.
    Untold,
}

impl Block {
    /// Returns the flags of its frames.
    #[must_use]
    pub(crate) fn flags(self) -> Vec<u64> {
        use flag::{ANON, BUDDY, DIRTY, HEAD, LRU, SLAB, TAIL};
        let mut flags = vec![BUDDY; BLOCK];
        match self {
            Self::Free => {}
            Self::Single => flags[100] = ANON,
            Self::EveryOther => flags.iter_mut().step_by(2).for_each(|word| *word = ANON),
            Self::Modified => {
                flags[8] = LRU | DIRTY | HEAD;
                flags[9..16].fill(LRU | DIRTY | TAIL);
            }
            Self::Cached => flags.fill(LRU),
            Self::Anonymous => flags.fill(ANON),
            Self::Mixed => {
                flags.fill(ANON);
                flags[200] = SLAB;
            }
            Self::Slab => flags.fill(SLAB),
            Self::Untold => flags.fill(0),
        }
        flags
    }
}

/// A host of one zone that begins at frame 0.
#[derive(Debug, Clone)]
pub(crate) struct SyntheticHost {
    /// Its name.
    pub(crate) name: String,
    /// Its page blocks.
    pub(crate) blocks: Vec<Block>,
    /// How many of them the kernel does not manage yet.
    pub(crate) unmanaged: usize,
    /// How many pages the per-CPU list can hold; it is empty.
    pub(crate) list_high: u64,
    /// `/proc/vmstat`.
    pub(crate) vmstat: String,
    /// When its files were copied; `None` for now.
    pub(crate) time: Option<SystemTime>,
}

impl SyntheticHost {
    /// Makes a host of these blocks.
    #[must_use]
    pub(crate) fn new(name: &str, blocks: Vec<Block>) -> Self {
        Self {
            name: name.to_owned(),
            blocks,
            unmanaged: 0,
            list_high: 0,
            vmstat: "compact_stall 3\nthp_fault_fallback 1\nallocstall_normal 2\n".to_owned(),
            time: None,
        }
    }

    /// Writes its files below `root`.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn write(&self, root: &Path) -> io::Result<Host> {
        let put = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(path, bytes)
        };
        let flags: Vec<u64> = self.blocks.iter().flat_map(|block| block.flags()).collect();
        let by_order = free_blocks(&flags);
        let free: usize = by_order
            .iter()
            .enumerate()
            .map(|(order, blocks)| blocks << order)
            .sum();
        let high = self.list_high;
        let (present, managed) = (flags.len(), flags.len() - self.unmanaged * BLOCK);
        put("proc/zoneinfo", format!("Node 0, zone   Normal\n  pages free     {free}\n        min      20\n        low      30\n        high     40\n        spanned  {present}\n        present  {present}\n        managed  {managed}\n        protection: (0, 0)\n      nr_file_pages 0\n  pagesets\n    cpu: 0\n              count: 0\n              high:  {high}\n              batch: 31\n  start_pfn:           0\n").as_bytes())?;
        let counts = by_order.map(|blocks| blocks.to_string()).join(" ");
        put(
            "proc/buddyinfo",
            format!("Node 0, zone   Normal {counts} \n").as_bytes(),
        )?;
        put("proc/vmstat", self.vmstat.as_bytes())?;
        put("proc/sys/kernel/osrelease", b"6.18.0-made\n")?;
        put(
            "proc/sys/kernel/hostname",
            format!("{}\n", self.name).as_bytes(),
        )?;
        put(
            "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
            b"2097152\n",
        )?;
        put(
            "proc/pagetypeinfo",
            b"Page block order: 9\nPages per block:  512\n",
        )?;
        let bytes: Vec<u8> = flags.iter().flat_map(|word| word.to_ne_bytes()).collect();
        put("proc/kpageflags", &bytes)?;
        if let Some(time) = self.time {
            fs::File::open(root.join("proc/zoneinfo"))?.set_modified(time)?;
        }
        Ok(Host::at(root))
    }
}

/// Returns the free blocks of each order, as large and as aligned as they can be.
fn free_blocks(flags: &[u64]) -> [usize; 11] {
    let mut by_order = [0; 11];
    let mut at = 0;
    while at < flags.len() {
        if flags[at] != flag::BUDDY {
            at += 1;
            continue;
        }
        let aligned = at.trailing_zeros().min(10) as usize;
        let fits = |order: &usize| {
            let end = at + (1 << order);
            end <= flags.len() && flags[at..end].iter().all(|&word| word == flag::BUDDY)
        };
        let order = (0..=aligned).rev().find(fits).unwrap_or(0);
        by_order[order] += 1;
        at += 1 << order;
    }
    by_order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_blocks_are_as_large_as_they_can_be() {
        let of = |blocks: &[Block]| {
            let flags: Vec<u64> = blocks.iter().flat_map(|block| block.flags()).collect();
            free_blocks(&flags)
        };
        assert_eq!(
            of(&[Block::Free, Block::Free, Block::Free]),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
        );
        assert_eq!(of(&[Block::Slab, Block::Free, Block::Free])[9], 2);
        assert_eq!(of(&[Block::EveryOther])[0], 256);
        // 100 = 64 + 32 + 4, and what is behind it up to 512: 1, 2, 8, 16, 128, 256.
        assert_eq!(of(&[Block::Single]), [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    }
}
