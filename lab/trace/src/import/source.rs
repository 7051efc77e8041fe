//! The bytes of an import: plain or zstd, distinguished by their first bytes.

use core::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use super::ImportError;

/// Bytes that are read to distinguish formats.
const HEAD: usize = 8;

/// An input, decompressed to text.
pub(super) struct Source<'a> {
    text: Box<dyn BufRead + 'a>,
    done: Rc<Cell<u64>>,
}

impl<'a> Source<'a> {
    /// Opens `input`, plain or zstd by its first bytes; refuses known binary formats.
    pub(super) fn open(input: impl Read + 'a) -> Result<Self, ImportError> {
        let done = Rc::new(Cell::new(0));
        let mut input = Counting {
            input,
            done: Rc::clone(&done),
        };
        let mut head = Vec::new();
        input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let binary = |tool, print| Err(ImportError::Binary { tool, print });
        match head.as_slice() {
            [b'P', b'A', b'R', b'1', ..] => return Err(ImportError::Parquet),
            b"PERFILE2" => return binary("perf", "perf script -i FILE"),
            [0x17, 0x08, b'D', b't', b'r', b'a', b'c', ..] => {
                return binary("trace-cmd", "trace-cmd report -i FILE");
            }
            [0x1f, 0x8b, ..] => return binary("gzip", "gzip -dc FILE"),
            _ => {}
        }
        let is_zstd = head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let whole = Cursor::new(head).chain(input);
        let text: Box<dyn BufRead + 'a> = if is_zstd {
            let mut decoder = zstd::Decoder::new(whole)?;
            // 128 MiB, the default limit of the command zstd.
            decoder.window_log_max(27)?;
            Box::new(BufReader::with_capacity(1 << 16, decoder))
        } else {
            Box::new(BufReader::with_capacity(1 << 16, whole))
        };
        Ok(Self { text, done })
    }

    /// Returns the counter of bytes read so far.
    pub(super) fn done(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.done)
    }
}

impl Read for Source<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.text.read(bytes)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.text.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.text.consume(bytes);
    }
}

struct Counting<R> {
    input: R,
    done: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.done.set(self.done.get() + read as u64);
        Ok(read)
    }
}
