//! The memory that a film shows: its zones, and the sizes of boxes and huge pages.

/// The largest order of a box: 2^20 pages of 4 KiB are 4 GiB.
const BOX_ORDER_MAX: u8 = 20;

/// The largest number of frames, and the first frame number that no zone has.
const FRAMES_MAX: u64 = 1 << 48;

/// The frames that a zone spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSpan {
    /// The zone's name, for instance `Normal` or `node 1 Movable`.
    pub name: String,
    /// Its first frame number.
    pub start: u64,
    /// The number of frames it spans, holes included.
    pub frames: u64,
}

/// The memory of a film.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The zones, in the order in which they are drawn.
    pub zones: Vec<ZoneSpan>,
    /// The order of a maximal block, which is one box.
    pub box_order: u8,
    /// The order of a huge page, at most that of a box.
    pub huge_order: u8,
    /// The bytes of a page, a power of two.
    pub frame_bytes: u32,
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There are no zones.
    #[error("there is no memory to show: give at least one zone with at least one frame")]
    Empty,
    /// A zone without frames.
    #[error("zone {0:?} spans no frames: leave it out")]
    EmptyZone(String),
    /// A zone ends above 2^48.
    #[error("zone {0:?} ends beyond the largest frame number, 2^48")]
    TooHigh(String),
    /// All zones together have more than 2^48 frames. The largest of them is named.
    #[error(
        "the zones together have more than 2^48 frames, and zone {largest:?} has the most: leave zones out"
    )]
    TooMany {
        /// The zone with the most frames.
        largest: String,
    },
    /// Boxes too large to draw.
    #[error("a box of order {0} is too large: the largest order is {max}", max = BOX_ORDER_MAX)]
    BoxOrder(u8),
    /// A huge page larger than a box.
    #[error("a huge page of order {huge} does not fit in a box of order {largest}")]
    HugeOrder {
        /// The order of a huge page.
        huge: u8,
        /// The order of a box.
        largest: u8,
    },
    /// Not a page size.
    #[error("{0} is not a page size: give a power of two, in bytes")]
    FrameBytes(u32),
}

impl Plan {
    /// The number of frames of all zones: the number of kinds that
    /// [`push`](super::Film::push) takes.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.zones.iter().map(|zone| zone.frames).sum()
    }

    pub(super) fn check(&self) -> Result<(), PlanError> {
        if self.zones.is_empty() {
            return Err(PlanError::Empty);
        }
        if self.box_order > BOX_ORDER_MAX {
            return Err(PlanError::BoxOrder(self.box_order));
        }
        if self.huge_order > self.box_order {
            return Err(PlanError::HugeOrder {
                huge: self.huge_order,
                largest: self.box_order,
            });
        }
        if !self.frame_bytes.is_power_of_two() {
            return Err(PlanError::FrameBytes(self.frame_bytes));
        }
        for zone in &self.zones {
            if zone.frames == 0 {
                return Err(PlanError::EmptyZone(zone.name.clone()));
            }
            let end = zone.start.checked_add(zone.frames);
            if end.is_none_or(|end| end > FRAMES_MAX) {
                return Err(PlanError::TooHigh(zone.name.clone()));
            }
        }
        let mut frames = self.zones.iter().map(|zone| zone.frames);
        let all = frames.try_fold(0_u64, |all, more| all.checked_add(more));
        if all.is_none_or(|all| all > FRAMES_MAX) {
            let largest = self.zones.iter().max_by_key(|zone| zone.frames);
            let largest = largest.map_or_else(String::new, |zone| zone.name.clone());
            return Err(PlanError::TooMany { largest });
        }
        Ok(())
    }
}
