//! The picture of a snapshot: a pixel per page, as PNG or as an HTML page that can be zoomed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use brickyard_host::look::Look;
use brickyard_host::zoneinfo::ZoneInfo;
use brickyard_pictures::pagetypes::{Film, html, png};

use super::figures::{amount, summary};
use crate::filming::write_file;
use crate::page_kinds::{PageKinds, plan};
use brickyard_measure::command::misuse::Misuse;

/// The files to draw, and the folder for them if both are asked for.
#[derive(Debug)]
pub(super) struct Target {
    folder: Option<PathBuf>,
    files: Vec<PathBuf>,
}

impl Target {
    /// Chooses by the extension of `path`: an image, an HTML page, or a folder for both.
    pub(super) fn of(path: &Path) -> Result<Self, Misuse> {
        let end = path.extension().and_then(|end| end.to_str());
        let (folder, files) = match end.filter(|_| !path.is_dir()) {
            Some("png" | "html") => (None, vec![path.to_owned()]),
            Some(other) => {
                return Err(Misuse::new(format!(
                    "--output: cannot draw a .{other} file; give a .png or .html file, or a folder"
                )));
            }
            None => {
                let both = ["snapshot.png", "snapshot.html"].map(|name| path.join(name));
                (Some(path.to_owned()), both.into())
            }
        };
        Ok(Self { folder, files })
    }

    /// Draws the files, and prints their paths.
    pub(super) fn draw(&self, look: &Look) -> anyhow::Result<()> {
        if look.runs.is_empty() {
            let why: Vec<_> = look.withheld.iter().map(ToString::to_string).collect();
            return Err(anyhow!("no picture: {}", why.join("; ")));
        }
        let film = film(look)?;
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        for path in &self.files {
            write_file(path, |out| {
                if path.extension().is_some_and(|end| end == "png") {
                    png::write(&film, 0, out)?;
                } else {
                    html::write(&[&film], "brickyard snapshot", out)?;
                }
                anyhow::Ok(())
            })?;
        }
        Ok(())
    }
}

/// Returns a film with a single sample.
fn film(look: &Look) -> anyhow::Result<Film> {
    let zones: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
    let max_order = look.zones.iter().map(|zone| zone.max_order).max();
    let max_order = max_order.unwrap_or(look.huge_order).get();
    let plan = plan(&zones, max_order, look.huge_order.get(), look.frame_bytes);
    let mut film = Film::new(format!("Linux {}", look.kernel), plan)?;
    let kinds = PageKinds::new(
        &look.runs,
        &zones,
        look.page_block_order.get(),
        look.unevictable,
    );
    film.push(0, &kinds.of_zones(&zones), &numbers(look))?;
    Ok(film)
}

/// Returns the figures printed beside the picture.
fn numbers(look: &Look) -> Vec<(&'static str, String)> {
    let zones = look.zones.iter();
    let idle = zones.clone().map(|zone| zone.info.idle_in_pagesets()).sum();
    let free = zones.map(|zone| zone.counts.free_frames() as u64).sum();
    let blocks = look.zones.iter().filter_map(summary);
    let mixed: u64 = blocks.map(|blocks| blocks.mixed).sum();
    vec![
        ("free", amount(free, look.frame_bytes)),
        ("idle in per-CPU lists", amount(idle, look.frame_bytes)),
        ("mixed page blocks", mixed.to_string()),
    ]
}
