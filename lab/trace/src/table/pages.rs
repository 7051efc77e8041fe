//! Looks at the heads of all pages before anything is unpacked: how large does each claim to be?
//! The Parquet crate takes memory for what a page claims, and a page of some kilobytes can claim
//! gigabytes.
//!
//! It also looks whether a page that uses a dictionary comes after one, since the crate panics
//! where it does not.
//!
//! A page's head is a struct in Thrift's compact form: fields as (distance, type, value), ended by
//! a zero byte. Few of its numbers are wanted, all else is passed over.

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use super::Fault;

/// No page of ours is larger, unpacked: the crate ends one at 1 MiB.
const PAGE_BYTES: u64 = 4 << 20;

/// Structs in structs, at most: real heads have three.
const DEPTH: u32 = 8;

/// What a page's head says.
#[derive(Debug, Default)]
struct Head {
    unpacked: u64,
    packed: u64,
    /// Of a dictionary page.
    dictionary_values: Option<u64>,
    /// Of a data page.
    encoding: Option<u64>,
}

/// The encodings whose values are places in the dictionary.
const DICTIONARY: [u64; 2] = [2, 8];

/// Are the claims of all pages of a Parquet file such that they can be unpacked: no page above 4
/// MiB, none past the end of its column, no dictionary that is not there? `bytes` are the whole
/// file. Before this, no page of a file that may come from anywhere should be read.
///
/// # Errors
///
/// [`Fault::Damaged`]: what is wrong, in a few words.
pub fn check_claims<R: ChunkReader + 'static>(
    file: &SerializedFileReader<R>,
    bytes: &[u8],
) -> Result<(), Fault> {
    for index in 0..file.num_row_groups() {
        for chunk in file.metadata().row_group(index).columns() {
            let chunk = bytes_of(chunk, bytes).ok_or("a column lies outside of the file");
            let checked = chunk.and_then(check_pages);
            checked.map_err(|why| Fault::Damaged(why.to_owned()))?;
        }
    }
    Ok(())
}

/// The bytes of a column, if it has some. (`ColumnChunkMetaData::byte_range` panics where they are
/// before the file.)
fn bytes_of<'a>(chunk: &ColumnChunkMetaData, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    let start = usize::try_from(start).ok()?;
    let length = usize::try_from(chunk.compressed_size()).ok()?;
    bytes.get(start..start.checked_add(length)?)
}

/// Are the claims of all pages in `chunk`, a column of a row group, such that they can be unpacked?
fn check_pages(mut chunk: &[u8]) -> Result<(), &'static str> {
    let mut dictionary = false;
    while !chunk.is_empty() {
        let mut thrift = Thrift { bytes: chunk };
        let head = thrift.page_head().ok_or("the head of a page is broken")?;
        if head.unpacked > PAGE_BYTES {
            return Err("a page claims to be larger than any page of ours is");
        }
        // Each value of a dictionary takes four bytes or more.
        if head
            .dictionary_values
            .is_some_and(|values| values > head.unpacked / 4)
        {
            return Err("a dictionary claims to have more values than fit in it");
        }
        dictionary |= head.dictionary_values.is_some();
        let uses = head
            .encoding
            .is_some_and(|encoding| DICTIONARY.contains(&encoding));
        if uses && !dictionary {
            return Err("a page uses a dictionary that is not there");
        }
        let packed = usize::try_from(head.packed).ok();
        chunk = packed
            .and_then(|packed| thrift.bytes.get(packed..))
            .ok_or("a page claims to go on past the end of its column")?;
    }
    Ok(())
}

/// The rest of the bytes. Every reading method gives `None` where they end too early or make no
/// sense.
struct Thrift<'a> {
    bytes: &'a [u8],
}

impl Thrift<'_> {
    fn page_head(&mut self) -> Option<Head> {
        let mut head = Head::default();
        let mut field = 0;
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (2, 5) => head.unpacked = self.unsigned()?,
                (3, 5) => head.packed = self.unsigned()?,
                (5, 12) => head.encoding = Some(self.number_in_struct(2)?),
                (7, 12) => head.dictionary_values = Some(self.number_in_struct(1)?),
                (8, 12) => head.encoding = Some(self.number_in_struct(4)?),
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Some(head)
    }

    /// Reads a struct to its end; the number in its field `wanted`, 0 where it has none.
    fn number_in_struct(&mut self, wanted: i64) -> Option<u64> {
        let mut number = 0;
        let mut field = 0;
        while let Some(kind) = self.field(&mut field)? {
            if field == wanted && kind == 5 {
                number = self.unsigned()?;
            } else {
                self.skip(kind, DEPTH)?;
            }
        }
        Some(number)
    }

    /// The type of the next field, whose number goes to `field`; the inner `None` at the end of the
    /// struct.
    fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *field = match byte >> 4 {
            0 => self.signed()?,
            distance => field.checked_add(i64::from(distance))?,
        };
        Some(Some(byte & 0x0f))
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    #[allow(
        clippy::cast_possible_wrap,
        reason = "the zigzag form: the lowest bit is the sign"
    )]
    fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn unsigned(&mut self) -> Option<u64> {
        u64::try_from(self.signed()?).ok()
    }

    fn jump(&mut self, bytes: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Passes over a value of type `kind`.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()), // a boolean is its type
            3 => self.jump(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.jump(8),
            8 => {
                let bytes = self.varint()?;
                self.jump(bytes)
            }
            9 | 10 => self.skip_list(depth),
            12 => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            _ => None, // maps: no head has one
        }
    }

    fn skip_list(&mut self, depth: u32) -> Option<()> {
        let head = self.byte()?;
        let items = match head >> 4 {
            15 => self.varint()?,
            items => u64::from(items),
        };
        for _ in 0..items {
            match head & 0x0f {
                1 | 2 => self.jump(1)?, // a boolean in a list is a byte
                kind => self.skip(kind, depth)?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with the sizes `unpacked` and `packed`, both below 64.
    fn head(unpacked: u8, packed: u8) -> Vec<u8> {
        // type = 0, uncompressed_page_size, compressed_page_size, data_page_header { num_values = 1
        // }.
        vec![
            0x15,
            0,
            0x15,
            unpacked << 1,
            0x15,
            packed << 1,
            0x2c,
            0x15,
            2,
            0,
            0,
        ]
    }

    #[test]
    fn pages_within_their_column_pass() {
        let mut chunk = head(5, 2);
        chunk.extend([1, 2]);
        chunk.extend(head(0, 0));
        assert_eq!(check_pages(&chunk), Ok(()));
        chunk.pop();
        assert!(check_pages(&chunk).is_err(), "the last head has no end");
    }

    #[test]
    fn a_page_past_its_column_is_refused() {
        let mut chunk = head(5, 3);
        chunk.extend([1, 2]);
        assert_eq!(
            check_pages(&chunk),
            Err("a page claims to go on past the end of its column")
        );
    }

    #[test]
    fn a_gigantic_page_is_refused() {
        let chunk = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0, 0];
        assert_eq!(
            check_pages(&chunk),
            Err("a page claims to be larger than any page of ours is")
        );
    }

    #[test]
    fn a_gigantic_dictionary_is_refused() {
        let chunk = [
            0x15, 4, 0x15, 16, 0x15, 0, 0x4c, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0,
        ];
        assert_eq!(
            check_pages(&chunk),
            Err("a dictionary claims to have more values than fit in it")
        );
    }

    #[test]
    fn a_page_that_uses_a_dictionary_needs_one() {
        // data_page_header { num_values = 1, encoding = RLE_DICTIONARY }.
        let uses = [0x15, 0, 0x15, 8, 0x15, 0, 0x2c, 0x15, 2, 0x15, 16, 0, 0];
        assert_eq!(
            check_pages(&uses),
            Err("a page uses a dictionary that is not there")
        );
        let mut chunk = vec![0x15, 4, 0x15, 8, 0x15, 0, 0x4c, 0x15, 2, 0, 0];
        chunk.extend(uses);
        assert_eq!(check_pages(&chunk), Ok(()));
    }

    #[test]
    fn structs_in_structs_end() {
        let chunk = [0x1c; 1000];
        assert!(check_pages(&chunk).is_err());
    }
}
