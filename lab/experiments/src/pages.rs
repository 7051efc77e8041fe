//! The pages with a player that cells made beside their rows. If only the rows were gathered from a
//! cluster, the pages are missing; the report then has a warning in their place.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::data::Data;
use crate::page::Embedded;
use crate::raw::CellRows;
use crate::store::Folder;

/// The name of their folder.
pub(crate) const FOLDER: &str = "pages";

/// Returns the pages that the cells in `data` made, and a sentence for each that is missing: a cell
/// that counts the shots of a machine has made a page of it.
pub fn of(folder: &Folder, data: &Data) -> (Vec<Embedded>, Vec<String>) {
    let rows = (0..data.len()).filter_map(|place| data.row(place));
    let filmed: BTreeMap<&str, &CellRows> = rows
        .filter(|(_, raw)| raw.metric == "shots")
        .map(|(cell, raw)| (raw.machine.as_str(), cell))
        .collect();
    let (mut pages, mut missing) = (Vec::new(), Vec::new());
    for (machine, cell) in filmed {
        let file = format!("{FOLDER}/{machine}.html");
        match read(folder, machine, &file) {
            Ok(html) => pages.push(Embedded {
                experiment: cell.experiment().to_owned(),
                title: format!(
                    "Each page of {machine} while huge pages are requested, by configuration. At the end the huge pages that were allocated are held, so that few are free"
                ),
                file,
                html,
            }),
            Err(why) => missing.push(format!(
                "The pictures of {machine} are missing, because {file:?} {why}. Copy {FOLDER} from where the cell {0} was run, or run it here (brickyard reproduce --cell {0}).",
                cell.cell
            )),
        }
    }
    (pages, missing)
}

/// Reads the page; the error says why it cannot be read.
fn read(folder: &Folder, machine: &str, file: &str) -> Result<String, String> {
    // The name comes from a file of unknown origin: it must not lead out of the folder.
    if !is_plain(machine) {
        return Err("is not a plain name".to_owned());
    }
    fs::read_to_string(folder.file(file)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be read: {error}"),
    })
}

/// Returns true if the name has only letters, digits and dashes, like the names of machines.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !name.is_empty() && name.bytes().all(plain)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::path::Path;

    use crate::raw::{Method, Raw, testing};

    use super::*;
    use crate::cell::Scale;
    use crate::plan::Scope;

    fn filmed(machine: &str) -> Data {
        let row = Raw {
            machine: machine.to_owned(),
            metric: "shots".to_owned(),
            ..testing::row()
        };
        let name = "mobility.made-up.pictures";
        Data::new(vec![testing::cell(name, Method::Replayed, vec![row])]).unwrap()
    }

    /// Returns the pages and the sentences of a run of this machine in this folder.
    fn pages(folder: &Path, machine: &str) -> (Vec<Embedded>, Vec<String>) {
        of(&Folder::new(folder), &filmed(machine))
    }

    #[test]
    fn a_missing_page_is_a_warning_and_no_error() {
        let place = tempfile::tempdir().unwrap();
        let (found, missing) = pages(place.path(), "gekko-lp1");
        assert_eq!(found, []);
        assert_eq!(missing.len(), 1);
        let begin = "The pictures of gekko-lp1 are missing, because \"pages/gekko-lp1.html\" does not exist. Copy pages";
        assert!(missing[0].starts_with(begin), "{missing:?}");
        assert!(missing[0].contains("--cell mobility.made-up.pictures"));
        fs::create_dir(place.path().join("pages")).unwrap();
        fs::write(place.path().join("pages/gekko-lp1.html"), "<p>").unwrap();
        let (found, missing) = pages(place.path(), "gekko-lp1");
        assert_eq!(found[0].html, "<p>");
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn only_files_with_plain_names_are_read() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("run")).unwrap();
        fs::create_dir(place.path().join("run/pages")).unwrap();
        let outside = place.path().join("outside");
        fs::write(outside.with_extension("html"), "secret").unwrap();
        for name in ["../../outside", outside.to_str().unwrap(), ".", ""] {
            let (found, missing) = pages(&place.path().join("run"), name);
            assert_eq!(found, []);
            assert!(missing[0].contains("is not a plain name"), "{missing:?}");
        }
        let names = Scope::new(Scale::Full, &[crate::mobility::EXPERIMENT]).cells();
        let machines = names.iter().filter_map(|cell| cell.name.split('.').nth(1));
        assert!(machines.into_iter().all(is_plain));
    }
}
