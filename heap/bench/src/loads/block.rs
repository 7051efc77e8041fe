//! A block of memory that is checked when it is freed.
//!
//! Every block has a tag, which is in its first and its last four bytes. One block in [`WHOLE`] is
//! filled with a byte of the tag in between, and checked whole. So memory that is given to two
//! owners, or written by the allocator while it is in use, is found.
//!
//! Invariant `one-block`: a `Block` is the only owner of memory that malloc returned for `bytes`,
//! until it is dropped, which frees it.

use core::ptr::NonNull;
use core::slice;

use brickyard_run::Dice;

/// One block in so many is filled, and checked whole.
const WHOLE: u32 = 256;

/// Larger blocks have a byte written in each page instead.
const LARGE: u32 = 1 << 20;
const PAGE: usize = 4096;

/// The bytes of a tag.
const WORD: usize = 4;

/// A live block.
#[derive(Debug)]
pub(crate) struct Block {
    start: NonNull<u8>,
    bytes: u32,
    tag: u32,
}

// SAFETY: `one-block`; any thread may free what another has allocated.
unsafe impl Send for Block {}

impl Block {
    /// Allocates a block of so many bytes, with a tag drawn from `dice`.
    pub(crate) fn new(bytes: usize, dice: &mut Dice) -> Self {
        // SAFETY: any size may be asked for.
        Self::mark(unsafe { libc::malloc(bytes) }, bytes, dice)
    }

    /// Allocates a block by `calloc`, and checks that it is zeroed.
    pub(crate) fn zeroed(bytes: usize, dice: &mut Dice) -> Self {
        // SAFETY: any size may be asked for.
        let start: *mut u8 = unsafe { libc::calloc(1, bytes) }.cast();
        if !start.is_null() {
            // SAFETY: `calloc` has just returned so many bytes.
            let all = unsafe { slice::from_raw_parts(start, bytes) };
            if let Some(at) = all.iter().position(|&byte| byte != 0) {
                wrong(format_args!("calloc of {bytes} bytes: byte {at} is not 0"));
            }
        }
        Self::mark(start.cast(), bytes, dice)
    }

    /// Takes over what was allocated, and writes its pattern.
    fn mark(start: *mut libc::c_void, bytes: usize, dice: &mut Dice) -> Self {
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            wrong(format_args!("an allocation of {bytes} bytes failed"));
        };
        let least = if bytes >= 16 { 16 } else { 8 };
        if !start.addr().get().is_multiple_of(least) {
            wrong(format_args!("a block of {bytes} bytes is at {start:?}"));
        }
        let block = Self {
            start,
            bytes: bytes as u32,
            tag: dice.next() as u32,
        };
        let tag = block.tag;
        // SAFETY: `one-block`, and all that is written is within the block.
        unsafe {
            if block.is_whole() {
                start.as_ptr().write_bytes(tag as u8, bytes);
            } else if block.bytes > LARGE {
                for at in (0..bytes).step_by(PAGE) {
                    start.as_ptr().add(at).write(tag as u8);
                }
            }
            if bytes >= WORD {
                block.word(0).write(tag.to_ne_bytes());
                block.word(bytes - WORD).write(tag.to_ne_bytes());
            }
        }
        block
    }

    /// Returns the bytes that were asked for.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes as usize
    }

    const fn is_whole(&self) -> bool {
        self.tag.is_multiple_of(WHOLE) && self.bytes <= LARGE
    }

    /// Returns where the four bytes at this offset are.
    const fn word(&self, at: usize) -> *mut [u8; WORD] {
        self.start.as_ptr().wrapping_add(at).cast()
    }

    /// Ends the program if the pattern is not what was written.
    fn check(&self) {
        let (bytes, tag) = (self.bytes(), self.tag);
        if bytes < WORD {
            return;
        }
        let expected = tag.to_ne_bytes();
        // SAFETY: `one-block`; `mark` has written what is read here.
        let is_right = unsafe {
            // In a block of less than eight bytes the last four overlap the first.
            let first = bytes < 2 * WORD || self.word(0).read() == expected;
            first && self.word(bytes - WORD).read() == expected && self.middle_is_right()
        };
        if !is_right {
            wrong(format_args!(
                "a block of {bytes} bytes has lost what was written to it"
            ));
        }
    }

    fn middle_is_right(&self) -> bool {
        if !self.is_whole() {
            return true;
        }
        // SAFETY: `one-block`; `mark` has written all of such a block.
        let all = unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes()) };
        let middle = all.get(WORD..self.bytes() - WORD).unwrap_or_default();
        middle.iter().all(|&byte| byte == self.tag as u8)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.check();
        // SAFETY: `one-block`.
        unsafe { libc::free(self.start.as_ptr().cast()) };
    }
}

/// Ends the program: the allocator is wrong, so nothing else can be relied on.
pub(crate) fn wrong(what: core::fmt::Arguments<'_>) -> ! {
    panic!("wrong memory: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks with tags that are filled whole and with tags that are not.
    fn blocks(bytes: usize) -> impl Iterator<Item = Block> {
        let mut dice = Dice::new(1);
        (0..WHOLE * 4).map(move |_| Block::new(bytes, &mut dice))
    }

    fn is_found(block: Block) -> bool {
        let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            core::mem::ManuallyDrop::new(block).check();
        }));
        dropped.is_err()
    }

    fn spoil(block: &Block, at: usize) {
        let byte = block.start.as_ptr().wrapping_add(at);
        // SAFETY: the block has so many bytes, and all that are spoiled were written.
        unsafe { *byte ^= 1 };
    }

    #[test]
    fn a_block_keeps_what_was_written() {
        for bytes in [0, 1, 3, 4, 7, 8, 9, 16, 100, 5000, 2 << 20] {
            let count = blocks(bytes).filter(Block::is_whole).count();
            assert!(count > 0 || bytes > LARGE as usize, "{bytes}");
        }
        drop(Block::zeroed(1000, &mut Dice::new(2)));
    }

    #[test]
    fn a_wrong_byte_at_either_end_is_found() {
        for at in [0, 3, 96, 99] {
            let block = Block::new(100, &mut Dice::new(1));
            spoil(&block, at);
            assert!(is_found(block), "{at}");
        }
    }

    #[test]
    fn a_wrong_byte_in_the_middle_of_a_filled_block_is_found() {
        let block = blocks(100).find(Block::is_whole).unwrap();
        spoil(&block, 50);
        assert!(is_found(block));
    }

    #[test]
    fn a_block_that_two_own_is_found() {
        let mut dice = Dice::new(3);
        let first = Block::new(64, &mut dice);
        let again = first.start.as_ptr().cast();
        let second = core::mem::ManuallyDrop::new(Block::mark(again, 64, &mut dice));
        assert!(is_found(first));
        drop(core::mem::ManuallyDrop::into_inner(second));
    }
}
