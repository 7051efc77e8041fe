//! The pages and pictures that commands write; of a replay, single images or a page with a player.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brickyard_pictures::pagetypes::{Film, html, png};
use clap::Args;

use brickyard_measure::command::output;
use brickyard_run::terminal::tell;

/// Writes a file of this content, and tells its path.
pub(crate) fn write_file<E: Into<anyhow::Error>>(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> anyhow::Result<()> {
    let write = || {
        let mut out = BufWriter::new(File::create(path)?);
        content(&mut out).map_err(Into::into)?;
        anyhow::Ok(out.flush()?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    tell(format_args!("written to {}", path.display()));
    Ok(())
}

/// The options that say where pictures are written.
#[derive(Debug, Args)]
pub(crate) struct Pictures {
    /// Write a page with a player of all configurations side by side.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write an image for each sample and configuration to this folder.
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
}

impl Pictures {
    pub(crate) const fn any(&self) -> bool {
        self.html.is_some() || self.png.is_some()
    }

    /// Fails if the files cannot be written; called before any long work.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(path) = &self.html {
            output::check(path)?;
        }
        if let Some(folder) = &self.png {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        }
        Ok(())
    }

    /// Writes the requested pictures, and prints their paths.
    pub(crate) fn write(&self, films: &[Film], title: &str) -> anyhow::Result<()> {
        if films.iter().all(Film::is_empty) {
            bail!("no sample to show: the run was stopped before the first one");
        }
        if let Some(path) = &self.html {
            let films: Vec<&Film> = films.iter().collect();
            write_file(path, |out| html::write(&films, title, out))?;
        }
        for film in films {
            self.write_film(film)?;
        }
        Ok(())
    }

    fn write_film(&self, film: &Film) -> anyhow::Result<()> {
        if let Some(folder) = &self.png {
            let folder = folder.join(film.name());
            fs::create_dir_all(&folder)?;
            let written = png::write_all(film, &folder)?;
            eprintln!("{} images written to {}", written.len(), folder.display());
        }
        Ok(())
    }
}
