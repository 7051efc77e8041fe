//! Pictures of a replay: what each page is at each sample, as frames, an animation, a video, or a page with a player.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brickyard::Order;
use brickyard::design::Design;
use brickyard_report::pagetypes::{Film, PageKind, Plan, ZoneSpan, gif, html, png, video};
use brickyard_workload::machine::ZonePlace;
use brickyard_workload::pages::{Role, mark};
use brickyard_workload::{FrameUse, View, Watcher};
use clap::Args;

use crate::side_by_side::Follow;

/// Where pictures go.
#[derive(Debug, Args)]
pub(crate) struct Pictures {
    /// A page with a player of all configurations side by side.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A folder for pictures, one a sample and configuration.
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
    /// A folder for an animated picture a configuration.
    #[arg(long, value_name = "DIR")]
    gif: Option<PathBuf>,
    /// A folder for a video a configuration (needs ffmpeg).
    #[arg(long, value_name = "DIR")]
    mp4: Option<PathBuf>,
}

impl Pictures {
    pub(crate) const fn any(&self) -> bool {
        self.html.is_some() || self.png.is_some() || self.gif.is_some() || self.mp4.is_some()
    }

    /// Fails before any long work where they could not be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(path) = &self.html {
            let opened = fs::OpenOptions::new().append(true).create(true).open(path);
            opened.with_context(|| format!("cannot write {}", path.display()))?;
        }
        for folder in [&self.png, &self.gif, &self.mp4].into_iter().flatten() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        Ok(())
    }

    /// Writes what was asked for, and tells where it is.
    pub(crate) fn write(&self, films: &[Film], title: &str) -> anyhow::Result<()> {
        if films.iter().all(Film::is_empty) {
            bail!("there is no sample to show: the run was ended too early");
        }
        if let Some(path) = &self.html {
            let mut out = BufWriter::new(File::create(path)?);
            let films: Vec<&Film> = films.iter().collect();
            html::write(&films, title, &mut out)?;
            out.flush()?;
            eprintln!("the page is {}", path.display());
        }
        for film in films {
            self.write_film(film)?;
        }
        Ok(())
    }

    fn write_film(&self, film: &Film) -> anyhow::Result<()> {
        let place = |folder: &Path, kind: &str| folder.join(format!("{}.{kind}", film.name()));
        if let Some(folder) = &self.png {
            let folder = folder.join(film.name());
            fs::create_dir_all(&folder)?;
            let written = png::write_all(film, &folder)?;
            eprintln!("{} pictures are in {}", written.len(), folder.display());
        }
        if let Some(folder) = &self.gif {
            let path = place(folder, "gif");
            let mut out = BufWriter::new(File::create(&path)?);
            gif::write(film, gif::GifOptions::default(), &mut out)?;
            out.flush()?;
            eprintln!("the animation is {}", path.display());
        }
        if let Some(folder) = &self.mp4 {
            let path = place(folder, "mp4");
            video::write_mp4(film, &path)?;
            eprintln!("the video is {}", path.display());
        }
        Ok(())
    }
}

/// Follows a run, and films it where pictures are asked for.
#[derive(Debug)]
pub(crate) struct Camera<'a, 'f> {
    follow: Follow<'a>,
    film: Option<&'f mut Film>,
    kinds: Vec<PageKind>,
}

impl<'a, 'f> Camera<'a, 'f> {
    pub(crate) fn new(follow: Follow<'a>, film: Option<&'f mut Film>) -> Self {
        Self {
            follow,
            film,
            kinds: Vec::new(),
        }
    }
}

impl Watcher for Camera<'_, '_> {
    fn goes_on(&mut self, steps: u64) -> bool {
        self.follow.goes_on(steps)
    }

    fn sees<D: Design>(&mut self, view: &View<'_, '_, D>) {
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
        // A picture that cannot be kept is left out; the run matters more.
        let _ = film.push(view.time(), &self.kinds, &numbers);
    }
}

/// The colour of a frame of the model kernel.
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

/// An empty film of a machine with these zones.
pub(crate) fn film(
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
    Film::new(name.into(), plan).context("cannot make a picture of this machine")
}
