//! The contents of frames: how the test reaches the memory behind a frame number.

use brickyard::Frame;

/// Access to the memory of frames. The test writes to a frame only while it owns it, so an
/// implementation may use plain volatile accesses through the kernel's direct map.
pub trait Contents: Sync {
    /// The number of 64-bit words of a frame. The test uses the first and the last. 0: it uses
    /// none, and knows owners by its table only.
    const WORDS: usize;

    /// Writes a word of a frame.
    fn write(&self, frame: Frame, word: usize, value: u64);

    /// Reads a word of a frame.
    fn read(&self, frame: Frame, word: usize) -> u64;
}

impl<C: Contents> Contents for &C {
    const WORDS: usize = C::WORDS;

    fn write(&self, frame: Frame, word: usize, value: u64) {
        (**self).write(frame, word, value);
    }

    fn read(&self, frame: Frame, word: usize) -> u64 {
        (**self).read(frame, word)
    }
}

/// Frames whose memory is left alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Untouched;

impl Contents for Untouched {
    const WORDS: usize = 0;

    fn write(&self, _frame: Frame, _word: usize, _value: u64) {}

    fn read(&self, _frame: Frame, _word: usize) -> u64 {
        0
    }
}
