//! Checks the headers of all pages before anything is unpacked: the Parquet crate allocates the
//! size that a page declares, and a page of a few kilobytes can declare gigabytes.
//!
//! It also checks that a page that uses a dictionary comes after one, since the crate panics
//! otherwise.
//!
//! A page header is a struct in Thrift's compact protocol: fields as (distance, type, value), ended
//! by a zero byte. Few of its numbers are needed; the others are skipped.

use core::ops::Range;

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, Length as _, SerializedFileReader};

use super::{Fault, Input};

/// The largest page accepted, unpacked: the crate ends those that it writes at 1 MiB.
const PAGE_BYTES: u64 = 4 << 20;

/// The deepest nesting of structs accepted: real headers have three levels.
const DEPTH: u32 = 8;

/// The fields of a page header that are checked.
#[derive(Debug, Default)]
struct Header {
    unpacked: u64,
    packed: u64,
    /// Of a dictionary page.
    dictionary_values: Option<u64>,
    /// Of a data page.
    encoding: Option<u64>,
}

/// The encodings whose values are indices into a dictionary.
const DICTIONARY: [u64; 2] = [2, 8];

/// Bytes that are read for the header of a page: first so many, then, where the header is longer,
/// so many.
const WINDOWS: [usize; 2] = [1 << 10, 1 << 20];

/// Checks that all pages of a Parquet file can be unpacked safely: no page declares more than 4
/// MiB, none extends past the end of its column, none uses a missing dictionary. `input` is the
/// whole file. Call it before reading any page of an untrusted file.
///
/// # Errors
///
/// [`Fault::Damaged`] with what is wrong.
pub fn check_claims<R: ChunkReader + 'static>(
    file: &SerializedFileReader<R>,
    input: &Input,
) -> Result<(), Fault> {
    for index in 0..file.num_row_groups() {
        check_claims_of(file.metadata().row_group(index), input)?;
    }
    Ok(())
}

/// Does what [`check_claims`] does, for one row group.
///
/// # Errors
///
/// [`Fault::Damaged`] with what is wrong.
pub fn check_claims_of(group: &RowGroupMetaData, input: &Input) -> Result<(), Fault> {
    for chunk in group.columns() {
        let chunk = range_of(chunk, input.len()).ok_or("a column is outside the file");
        let checked = chunk.and_then(|chunk| check_pages(input, chunk));
        checked.map_err(|why| Fault::Damaged(why.to_owned()))?;
    }
    Ok(())
}

/// Returns the place of a column; `None` if it is not within the file. (For negative offsets
/// `ColumnChunkMetaData::byte_range` panics.)
fn range_of(chunk: &ColumnChunkMetaData, size: u64) -> Option<Range<u64>> {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    let start = u64::try_from(start).ok()?;
    let length = u64::try_from(chunk.compressed_size()).ok()?;
    let end = start.checked_add(length)?;
    (end <= size).then_some(start..end)
}

/// Returns the header of the page at the start of `chunk`, and how many bytes it has. It ends
/// before the end of `chunk`.
fn head_at(input: &Input, chunk: &Range<u64>) -> Result<(Header, u64), &'static str> {
    let left = usize::try_from(chunk.end - chunk.start).unwrap_or(usize::MAX);
    for most in WINDOWS.map(|most| most.min(left)) {
        let bytes = input.window(chunk.start, most);
        let bytes = bytes.map_err(|_| "a page cannot be read")?;
        let mut thrift = Thrift { bytes: &bytes };
        if let Some(head) = thrift.page_head() {
            return Ok((head, (bytes.len() - thrift.bytes.len()) as u64));
        }
    }
    Err("a page has a broken header")
}

/// Checks all pages in `chunk`, a column of a row group.
fn check_pages(input: &Input, mut chunk: Range<u64>) -> Result<(), &'static str> {
    let mut dictionary = false;
    while !chunk.is_empty() {
        let (head, bytes) = head_at(input, &chunk)?;
        if head.unpacked > PAGE_BYTES {
            return Err("a page declares more than 4 MiB");
        }
        // Each value of a dictionary takes four bytes or more.
        if head
            .dictionary_values
            .is_some_and(|values| values > head.unpacked / 4)
        {
            return Err("a dictionary declares more values than fit in it");
        }
        dictionary |= head.dictionary_values.is_some();
        let uses = head
            .encoding
            .is_some_and(|encoding| DICTIONARY.contains(&encoding));
        if uses && !dictionary {
            return Err("a page uses a dictionary, but its column has none");
        }
        let next = (chunk.start + bytes).checked_add(head.packed);
        chunk.start = next
            .filter(|&next| next <= chunk.end)
            .ok_or("a page extends past the end of its column")?;
    }
    Ok(())
}

/// The bytes not yet read. Every reading method returns `None` if they end too early or are
/// invalid.
struct Thrift<'a> {
    bytes: &'a [u8],
}

impl Thrift<'_> {
    fn page_head(&mut self) -> Option<Header> {
        let mut head = Header::default();
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

    /// Reads a struct to its end; returns the number in its field `wanted`, 0 if it has none.
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

    /// Returns the type of the next field and stores its number in `field`; the inner `None` is the
    /// end of the struct.
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

    /// Skips a value of type `kind`.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()), // a boolean's value is its type
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
            _ => None, // maps: no header has one
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

    fn check_pages(chunk: &[u8]) -> Result<(), &'static str> {
        let input = Input::Bytes(chunk.to_vec().into());
        super::check_pages(&input, 0..chunk.len() as u64)
    }

    #[test]
    fn a_header_longer_than_a_window_is_read_whole() {
        // Field 15, a binary of 2000 bytes, before the end.
        let mut chunk = head(0, 0);
        chunk.pop();
        chunk.extend([0xa8, 0xd0, 0x0f]);
        chunk.extend([7; 2000]);
        assert!(check_pages(&chunk).is_err(), "it has no end");
        chunk.push(0);
        assert_eq!(check_pages(&chunk), Ok(()));
    }

    /// A header with the sizes `unpacked` and `packed`, both below 64.
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
        assert!(check_pages(&chunk).is_err(), "the last header has no end");
    }

    #[test]
    fn a_page_past_its_column_is_refused() {
        let mut chunk = head(5, 3);
        chunk.extend([1, 2]);
        assert_eq!(
            check_pages(&chunk),
            Err("a page extends past the end of its column")
        );
    }

    #[test]
    fn a_gigantic_page_is_refused() {
        let chunk = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0, 0];
        assert_eq!(check_pages(&chunk), Err("a page declares more than 4 MiB"));
    }

    #[test]
    fn a_gigantic_dictionary_is_refused() {
        let chunk = [
            0x15, 4, 0x15, 16, 0x15, 0, 0x4c, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0,
        ];
        assert_eq!(
            check_pages(&chunk),
            Err("a dictionary declares more values than fit in it")
        );
    }

    #[test]
    fn a_page_that_uses_a_dictionary_needs_one() {
        // data_page_header { num_values = 1, encoding = RLE_DICTIONARY }.
        let uses = [0x15, 0, 0x15, 8, 0x15, 0, 0x2c, 0x15, 2, 0x15, 16, 0, 0];
        assert_eq!(
            check_pages(&uses),
            Err("a page uses a dictionary, but its column has none")
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
