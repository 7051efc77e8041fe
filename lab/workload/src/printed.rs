//! Published tables, kept as files of comma-separated values beside the code that uses them: cell
//! by cell as they were printed, the header first; lines that start with `#` are notes. A cell with
//! a comma is enclosed in quotation marks; no cell contains one.

/// Returns the rows of such a file, without its header.
///
/// # Panics
/// If a row does not have `N` cells: the files are part of the program.
#[must_use]
pub fn rows<const N: usize>(file: &'static str) -> Vec<[&'static str; N]> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.skip(1).map(|line| {
        let cells: Result<[&str; N], _> = cells(line).try_into();
        cells.unwrap_or_else(|cells| panic!("{} cells where {N} should be: {line}", cells.len()))
    });
    rows.collect()
}

fn cells(mut line: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    loop {
        let quoted = line.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (cell, rest) =
            quoted.unwrap_or_else(|| line.split_at(line.find(',').unwrap_or(line.len())));
        cells.push(cell);
        match rest.strip_prefix(',') {
            Some(rest) => line = rest,
            None => return cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_kept_as_printed() {
        let file = "# a note\nname,one,two\nx,\"1,5\",\n,-, y \n";
        assert_eq!(rows::<3>(file), [["x", "1,5", ""], ["", "-", " y "]]);
    }

    #[test]
    #[should_panic(expected = "2 cells where 3 should be: x,1")]
    fn a_row_with_too_few_cells_panics() {
        let _ = rows::<3>("name,one,two\nx,1\n");
    }
}
