//! What is behind the frames of a simulated machine besides the allocator: their contents, and the
//! record that the kernel keeps of each.
//!
//! Both are lines of the machine without memory of the host. The record is a line of 64 bytes, the
//! size of Linux's `struct page` on 64-bit machines. A design of the documents keeps its own words
//! of a frame in that very record, as Linux does. So its list links are on the frame's line, which
//! is one of those that bounce when two CPUs exchange pages, and not five frames to a line as in
//! the library's compact table. The default design has no word for a frame.
//!
//! The kernel writes the record where Linux 3.9 does on the path of an anonymous page: the count
//! when the page is allocated, the mapping when it is mapped, the number of mappings when it is
//! unmapped, and the count when it is released; the last two are atomic. Its lists of pages in use
//! (LRU) and their lock are not modelled.

use brickyard::Frame;
use brickyard::node::Node;
use brickyard_designs::classics::LabZone;
use brickyard_machine::{AccessKind, Machine, Spread, Unbacked, current};

use crate::setting::FRAME_BYTES;

/// Bytes of the kernel's record of a frame.
const RECORD_BYTES: usize = 64;

/// The contents and the records of all frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameMemory {
    records: Unbacked,
    contents: Unbacked,
}

impl FrameMemory {
    /// Reserves both in `machine` for the first `frames` frames, and moves the words that the zones
    /// of `node` keep of each frame into its record.
    pub(crate) fn new<Z: LabZone>(
        machine: &mut Machine<'_>,
        frames: usize,
        node: &Node<'_, Z>,
    ) -> Self {
        let records = machine.reserve(frames * RECORD_BYTES);
        for zone in node.zones() {
            let words = zone.frame_records();
            let array = Spread {
                first: words.as_ptr().cast(),
                each: words.first().map_or(1, size_of_val),
                count: words.len(),
                apart: RECORD_BYTES,
            };
            let before = zone.span().start.number() * RECORD_BYTES;
            machine.spread(array, records.from(before));
        }
        Self {
            records,
            contents: machine.reserve(frames * FRAME_BYTES),
        }
    }

    /// Charges what the kernel does with a frame that it has just allocated for a process: it takes
    /// it into use, clears it and maps it.
    pub(crate) fn map(self, frame: Frame) {
        self.write(frame, AccessKind::Store);
        current::clear(self.contents, frame.number() * FRAME_BYTES, FRAME_BYTES);
        self.write(frame, AccessKind::Store);
    }

    /// Charges what the kernel does with a frame before it frees it: it unmaps it and drops the
    /// last reference to it.
    pub(crate) fn unmap(self, frame: Frame) {
        self.write(frame, AccessKind::Exchange);
        self.write(frame, AccessKind::Exchange);
    }

    fn write(self, frame: Frame, kind: AccessKind) {
        current::access(self.records, frame.number() * RECORD_BYTES, kind);
    }
}
