//! Kill and refill, after the workloads by which Rumble, Kejariwal and Ousterhout compared
//! allocators: memory is filled with blocks of some sizes, most of them are freed at random, and
//! memory is filled again with blocks of other sizes. An allocator that cannot use the gaps needs
//! more memory than is live. Here three quarters are freed, and that three times; the live bytes
//! are the same after each filling.

use brickyard_run::Dice;

use crate::loads::block::Block;
use crate::loads::sizes::logarithmic;
use crate::loads::work::{LoadResult, LoadTask};

/// The live bytes after each filling.
const LIVE: u64 = 192 << 20;

/// The sizes of each filling.
const SIZES: [(usize, usize); 4] = [(16, 512), (512, 8192), (24, 1024), (2048, 32768)];

/// Less than the mean size of any filling.
const MEAN_LEAST: usize = 100;

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let most = work.part(LIVE) as usize;
    let mut dice = Dice::new(1);
    // So that it never moves: no more blocks than this fit into the live bytes.
    let mut blocks: Vec<Block> = Vec::with_capacity(most / MEAN_LEAST + 1);
    let (mut live, mut operations, mut most_live) = (0, 0, 0);
    for (least, most_bytes) in SIZES {
        let before = blocks.len();
        while live < most {
            let block = Block::new(logarithmic(&mut dice, least, most_bytes), &mut dice);
            live += block.bytes();
            blocks.push(block);
        }
        operations += (blocks.len() - before) as u64;
        // The table is memory too.
        most_live = most_live.max(live + blocks.len() * size_of::<Block>());
        kill(&mut blocks, &mut live, &mut dice);
    }
    LoadResult {
        operations,
        live: Some(most_live as u64),
    }
}

/// Frees three quarters of the blocks at random.
fn kill(blocks: &mut Vec<Block>, live: &mut usize, dice: &mut Dice) {
    blocks.retain(|block| {
        let stays = dice.chance(4);
        if !stays {
            *live -= block.bytes();
        }
        stays
    });
}
