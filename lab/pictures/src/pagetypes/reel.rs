//! A compressed series of equally long rows of cells.
//!
//! A cell is a number below 16; two share a byte, the first in the low half. A row is kept as a
//! zlib stream: every [`KEY_EVERY`]th as it is (a key), the others as the exclusive or with the row
//! before. Decoding a row takes at most [`KEY_EVERY`] inflates. The player's page embeds the same
//! streams.
//!
//! Invariant `same-cells`: a decoded row has the checksum that its writer embedded
//! (`player/selftest.js` checks it).

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

/// Rows from one key to the next.
pub(super) const KEY_EVERY: usize = 16;

/// How a row is stored: as it is, or as the difference from the row before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Key,
    Delta,
}

#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) coding: Coding,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct Reel {
    cells: usize,
    last: Vec<u8>,
    streams: Vec<Stream>,
}

impl Reel {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            cells,
            last: Vec::new(),
            streams: Vec::new(),
        }
    }

    pub(super) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Adds a row of exactly the reel's number of cells. Cost: one pass and one deflate.
    pub(super) fn push(&mut self, cells: impl ExactSizeIterator<Item = u8>) {
        assert_eq!(
            cells.len(),
            self.cells,
            "a row has as many cells as its reel"
        );
        let packed = pack(cells);
        let key = self.streams.len().is_multiple_of(KEY_EVERY);
        let stream = if key {
            Stream {
                coding: Coding::Key,
                bytes: deflate(&packed),
            }
        } else {
            let delta: Vec<u8> = packed
                .iter()
                .zip(&self.last)
                .map(|(now, before)| now ^ before)
                .collect();
            Stream {
                coding: Coding::Delta,
                bytes: deflate(&delta),
            }
        };
        self.streams.push(stream);
        self.last = packed;
    }

    /// Decodes row `i`. Cost: at most [`KEY_EVERY`] inflates.
    pub(super) fn row(&self, i: usize) -> Option<Vec<u8>> {
        let mut packed = Vec::new();
        for stream in self.streams.get(i - i % KEY_EVERY..=i)? {
            apply(stream, &mut packed);
        }
        Some(unpack(&packed, self.cells))
    }

    /// Decodes all rows, first to last. Cost: one inflate per row.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut packed = Vec::new();
        self.streams.iter().map(move |stream| {
            apply(stream, &mut packed);
            unpack(&packed, self.cells)
        })
    }
}

/// Returns FNV-1a of the packed row, which the player's self-test compares after decoding.
pub(super) fn checksum(cells: &[u8]) -> u32 {
    pack(cells.iter().copied())
        .iter()
        .fold(0x811c_9dc5, |hash, &byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
}

fn pack(mut cells: impl ExactSizeIterator<Item = u8>) -> Vec<u8> {
    let mut packed = Vec::with_capacity(cells.len().div_ceil(2));
    while let Some(low) = cells.next() {
        let high = cells.next().unwrap_or(0);
        debug_assert!(low < 16 && high < 16, "a cell is a number below 16");
        packed.push(low | high << 4);
    }
    packed
}

fn unpack(packed: &[u8], cells: usize) -> Vec<u8> {
    let mut row = Vec::with_capacity(cells + 1);
    for byte in packed {
        row.extend([byte & 15, byte >> 4]);
    }
    row.truncate(cells);
    row
}

fn apply(stream: &Stream, packed: &mut Vec<u8>) {
    let bytes = inflate(&stream.bytes);
    match stream.coding {
        Coding::Key => *packed = bytes,
        Coding::Delta => packed
            .iter_mut()
            .zip(bytes)
            .for_each(|(now, change)| *now ^= change),
    }
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("a Vec takes all that is written to it")
}

fn inflate(stream: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(stream)
        .read_to_end(&mut bytes)
        .expect("the stream was made by deflate above");
    bytes
}
