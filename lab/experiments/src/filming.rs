//! A film of a replay: the use of every page at each sample.

use anyhow::Context as _;
use brickyard::Order;
use brickyard_designs::classics::LabZone;
use brickyard_pictures::pagetypes::{Film, PageKind, Plan, ZoneSpan};
use brickyard_run::side_by_side::Follow;
use brickyard_workload::machine::ZonePlace;
use brickyard_workload::pages::{Role, mark};
use brickyard_workload::{FrameUse, View, Watcher};

/// A watcher of a run that lets it be interrupted, and films it if there is a film.
#[derive(Debug)]
pub struct Camera<'a, 'f> {
    follow: Follow<'a>,
    film: Option<&'f mut Film>,
    kinds: Vec<PageKind>,
}

impl<'a, 'f> Camera<'a, 'f> {
    /// Returns a camera that reports progress to `follow` and adds pictures to `film`, if there is
    /// one.
    pub fn new(follow: Follow<'a>, film: Option<&'f mut Film>) -> Self {
        Self {
            follow,
            film,
            kinds: Vec::new(),
        }
    }
}

impl Watcher for Camera<'_, '_> {
    fn progress(&mut self, steps: u64) -> bool {
        self.follow.goes_on(steps)
    }

    fn sample<Z: LabZone>(&mut self, view: &View<'_, '_, Z>) {
        let Some(film) = &mut self.film else {
            return;
        };
        self.kinds.clear();
        view.runs(|frames, usage| {
            let kind = kind_of(usage);
            self.kinds.resize(self.kinds.len() + frames, kind);
        });
        let numbers = [
            ("mixed blocks", view.mixed_blocks().to_string()),
            ("frames in caches", view.cached().to_string()),
        ];
        // A picture that cannot be stored is left out; the run matters more.
        let _ = film.push(view.time(), &self.kinds, &numbers);
    }
}

/// Returns the kind that a frame of the model kernel is shown as.
const fn kind_of(usage: FrameUse) -> PageKind {
    match usage {
        FrameUse::Absent => PageKind::Absent,
        FrameUse::Free => PageKind::Free,
        FrameUse::Cached => PageKind::PerCpu,
        FrameUse::Used(_, marks) if marks & mark::WRITEBACK != 0 => PageKind::UnderReclaim,
        FrameUse::Used(Role::Anonymous | Role::File | Role::Held, _) => PageKind::Movable,
        FrameUse::Used(Role::SlabReclaimable, _) => PageKind::Reclaimable,
        FrameUse::Used(..) => PageKind::Unmovable,
    }
}

/// Returns an empty film of a machine with these zones.
pub fn film(
    name: &str,
    zones: &[ZonePlace],
    max: Order,
    huge: Order,
    frame_bytes: usize,
) -> anyhow::Result<Film> {
    let zones = zones.iter().map(|zone| ZoneSpan {
        name: format!("Node {}, zone {}", zone.node, zone.kind.name()),
        start: zone.span.start.number() as u64,
        frames: zone.span.len() as u64,
    });
    let plan = Plan {
        zones: zones.collect(),
        box_order: max.get(),
        huge_order: huge.get(),
        frame_bytes: u32::try_from(frame_bytes).unwrap_or(u32::MAX),
    };
    Film::new(name.into(), plan).context("cannot draw this machine")
}
