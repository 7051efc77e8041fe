//! Where the pictures of a replay go: as frames, an animation, a video, or a page with a player.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brickyard_report::pagetypes::{Film, gif, html, png, video};
use clap::Args;

use crate::output;

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
            output::check(path)?;
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
