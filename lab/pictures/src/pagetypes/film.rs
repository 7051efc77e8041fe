//! [`Film`]: the kind of every page, shot after shot.

use super::{
    PictureError,
    kind::PageKind,
    plan::Plan,
    reel::{Reel, checksum},
};

/// Names and values shown beside a picture.
pub type Numbers = Vec<(String, String)>;

/// The number of pages of each kind, by [`PageKind::index`].
pub type KindCounts = [u64; PageKind::COUNT];

/// One moment of a [`Film`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shot {
    /// The time in nanoseconds, on the clock of the film.
    pub time_ns: u64,
    /// The kind of each page: all frames of the first zone, then of the second, and so on.
    pub kinds: Vec<PageKind>,
    /// Names and values shown beside the picture.
    pub numbers: Numbers,
}

/// What is available of a shot without decoding it.
#[derive(Clone, Debug)]
pub(super) struct Caption {
    pub(super) time_ns: u64,
    pub(super) numbers: Numbers,
    pub(super) counts: KindCounts,
    pub(super) free_huge: u64,
    pub(super) checksum: u32,
}

/// The page types of one memory over time, compressed.
///
/// A shot takes at most about half a byte per page, and in practice only its changes since the shot
/// before.
///
/// ```
/// use brickyard_pictures::pagetypes::{Film, PageKind, Plan, ZoneSpan};
///
/// let zone = ZoneSpan { name: "Normal".into(), start: 0, frames: 1024 };
/// let plan = Plan { zones: vec![zone], box_order: 10, huge_order: 9, frame_bytes: 4096 };
/// let mut film = Film::new("vanilla".into(), plan)?;
/// let mut kinds = vec![PageKind::Free; 1024];
/// film.push(0, &kinds, &[])?;
/// kinds[700] = PageKind::Unmovable;
/// film.push(2_000_000_000, &kinds, &[("allocations", "1".into())])?;
/// assert_eq!(film.free_huge(0), Some(2));
/// assert_eq!(film.free_huge(1), Some(1));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Film {
    name: String,
    plan: Plan,
    captions: Vec<Caption>,
    reel: Reel,
}

impl Film {
    /// Makes an empty film called `name`, of the memory `plan`.
    ///
    /// # Errors
    ///
    /// [`PictureError::Plan`] if the plan is invalid.
    pub fn new(name: String, plan: Plan) -> Result<Self, PictureError> {
        plan.check()?;
        let frames = usize::try_from(plan.frames()).map_err(|_| PictureError::TooLarge {
            frames: plan.frames(),
        })?;
        Ok(Self {
            name,
            plan,
            captions: Vec::new(),
            reel: Reel::new(frames),
        })
    }

    /// Adds a shot taken at `time_ns`: the kind of every frame of every zone, one zone after
    /// another, and `numbers` to show beside it. Cost: a few passes over `kinds`, and one deflate.
    ///
    /// # Errors
    ///
    /// [`PictureError::Length`] if there is not one kind per frame, [`PictureError::Backwards`] if
    /// the shot is older than the last one.
    pub fn push(
        &mut self,
        time_ns: u64,
        kinds: &[PageKind],
        numbers: &[(&str, String)],
    ) -> Result<(), PictureError> {
        if kinds.len() as u64 != self.plan.frames() {
            return Err(PictureError::Length {
                given: kinds.len() as u64,
                frames: self.plan.frames(),
            });
        }
        if let Some(last) = self.captions.last().filter(|last| last.time_ns > time_ns) {
            return Err(PictureError::Backwards {
                last_ns: last.time_ns,
                time_ns,
            });
        }
        let mut counts = KindCounts::default();
        for kind in kinds {
            counts[kind.index()] += 1;
        }
        let cells: Vec<u8> = kinds.iter().map(|&kind| kind as u8).collect();
        self.captions.push(Caption {
            time_ns,
            numbers: numbers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            counts,
            free_huge: free_huge(&self.plan, kinds),
            checksum: checksum(&cells),
        });
        self.reel.push(cells.into_iter());
        Ok(())
    }

    /// The film's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The memory it shows.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The number of shots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.captions.len()
    }

    /// Whether the film has no shots.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.captions.is_empty()
    }

    /// Returns the shot `i`, counted from 0; `None` if there are fewer shots. Cost: at most 16
    /// inflates; use [`shots`](Self::shots) for all of them.
    #[must_use]
    pub fn shot(&self, i: usize) -> Option<Shot> {
        let caption = self.captions.get(i)?;
        self.reel.row(i).map(|cells| shot(caption, &cells))
    }

    /// Returns all shots, first to last. Cost: one inflate per shot.
    pub fn shots(&self) -> impl Iterator<Item = Shot> {
        self.captions
            .iter()
            .zip(self.reel.rows())
            .map(|(caption, cells)| shot(caption, &cells))
    }

    /// The number of pages of each kind in shot `i`, counted when it was pushed.
    #[must_use]
    pub fn counts(&self, i: usize) -> Option<&KindCounts> {
        self.captions.get(i).map(|caption| &caption.counts)
    }

    /// The number of aligned blocks of the huge order that are free as a whole in shot `i`, counted
    /// when it was pushed.
    #[must_use]
    pub fn free_huge(&self, i: usize) -> Option<u64> {
        self.captions.get(i).map(|caption| caption.free_huge)
    }

    pub(super) fn captions(&self) -> &[Caption] {
        &self.captions
    }

    pub(super) fn reel(&self) -> &Reel {
        &self.reel
    }

    /// Nanoseconds from the first shot to shot `i`.
    pub(super) fn since_first(&self, i: usize) -> u64 {
        match (self.captions.first(), self.captions.get(i)) {
            (Some(first), Some(caption)) => caption.time_ns - first.time_ns,
            _ => 0,
        }
    }
}

fn shot(caption: &Caption, cells: &[u8]) -> Shot {
    let kind = |&cell: &u8| PageKind::from_number(cell).expect("a film's cells are kinds");
    Shot {
        time_ns: caption.time_ns,
        kinds: cells.iter().map(kind).collect(),
        numbers: caption.numbers.clone(),
    }
}

fn free_huge(plan: &Plan, kinds: &[PageKind]) -> u64 {
    let huge = 1_u64 << plan.huge_order;
    let mut rest = kinds;
    let mut found = 0;
    for zone in &plan.zones {
        let (kinds, others) =
            rest.split_at(usize::try_from(zone.frames).expect("the film's length was checked"));
        rest = others;
        let head = usize::try_from(zone.start.next_multiple_of(huge) - zone.start)
            .expect("at most a huge page");
        let aligned = kinds.get(head..).unwrap_or_default();
        let blocks = aligned.chunks_exact(1 << plan.huge_order);
        found += blocks
            .filter(|block| block.iter().all(|&kind| kind == PageKind::Free))
            .count() as u64;
    }
    found
}
