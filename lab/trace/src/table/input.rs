//! Where the bytes of a table are: in memory, or in a file, of which only what is asked for is
//! read.
//!
//! A file is read at positions, so that threads can share it. (For `std::fs::File` the Parquet
//! crate moves the file's own position, which all of them have in common.)

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The bytes of a table.
#[derive(Debug, Clone)]
pub enum Input {
    /// In memory.
    Bytes(Bytes),
    /// In a file of this size.
    File(Arc<File>, u64),
}

impl Input {
    /// Takes an open regular file.
    ///
    /// # Errors
    /// If its size cannot be read.
    pub fn of_file(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        Ok(Self::File(Arc::new(file), size))
    }

    /// Returns at most `most` bytes from `at` on: fewer only at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn window(&self, at: u64, most: usize) -> io::Result<Bytes> {
        let left = self.len().saturating_sub(at);
        let length = usize::try_from(left).map_or(most, |left| left.min(most));
        match self {
            Self::Bytes(bytes) => {
                let at = usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
                Ok(bytes.slice(at..at + length))
            }
            Self::File(file, _) => {
                let mut window = vec![0; length];
                file.read_exact_at(&mut window, at)?;
                Ok(window.into())
            }
        }
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, size) => *size,
        }
    }
}

impl ChunkReader for Input {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(match self {
            Self::Bytes(_) => Box::new(self.window(start, usize::MAX)?.reader()),
            Self::File(file, _) => {
                let rest = FileFrom {
                    file: Arc::clone(file),
                    at: start,
                };
                // A page's header is read by it, and few have more bytes.
                Box::new(BufReader::with_capacity(1 << 10, rest))
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.window(start, length)?;
        if bytes.len() < length {
            let why = "a page extends past the end of the file";
            return Err(ParquetError::EOF(why.to_owned()));
        }
        Ok(bytes)
    }
}

/// A file from a position on.
struct FileFrom {
    file: Arc<File>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_and_its_bytes_are_read_alike() {
        let text: Vec<u8> = (0..=255).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        let inputs = [
            Input::Bytes(Bytes::from(text.clone())),
            Input::of_file(file).unwrap(),
        ];
        for input in inputs {
            assert_eq!(input.len(), 256);
            assert_eq!(input.window(250, 100).unwrap(), &text[250..]);
            assert!(input.window(256, 1).unwrap().is_empty());
            assert!(input.window(1000, 1).unwrap().is_empty());
            assert_eq!(input.get_bytes(3, 4).unwrap(), &text[3..7]);
            assert!(input.get_bytes(254, 3).is_err());
            let mut rest = Vec::new();
            let mut other = [0; 2];
            let mut one = input.get_read(200).unwrap();
            // Readers do not share a position.
            input.get_read(7).unwrap().read_exact(&mut other).unwrap();
            one.read_to_end(&mut rest).unwrap();
            assert_eq!((other, rest.as_slice()), ([7, 8], &text[200..]));
        }
    }
}
