//! Tables that were published, kept as files of comma-separated values beside the code that needs
//! them: cell by cell as they were printed, the head first, and notes behind `#`. A cell with a
//! comma in it stands between quotation marks, which no cell has itself.

/// The rows of such a file, without its head.
///
/// # Panics
/// Where a row has not `N` cells: the files are a part of the program.
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
    fn cells_are_as_they_stand() {
        let file = "# a note\nname,one,two\nx,\"1,5\",\n,-, y \n";
        assert_eq!(rows::<3>(file), [["x", "1,5", ""], ["", "-", " y "]]);
    }

    #[test]
    #[should_panic(expected = "2 cells where 3 should be: x,1")]
    fn a_row_that_lacks_a_cell_is_told() {
        let _ = rows::<3>("name,one,two\nx,1\n");
    }
}
