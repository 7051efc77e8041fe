//! The options that the lab's command had for heaps are options of this one: by the lab's table of
//! all options that it once had.

use std::fs;
use std::path::Path;

#[test]
fn every_option_that_came_here_is_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/cli/tests/options.csv");
    let table = fs::read_to_string(path).unwrap();
    let all = brickyard_heap_bench::command();
    let mut rows = 0;
    for line in table.lines() {
        let place = line.rsplit(',').next().unwrap_or_default();
        let Some(words) = place.strip_prefix("brickyard-heap ") else {
            continue;
        };
        let (command, option) = words.split_once(" --").unwrap();
        let command = all.find_subcommand(command).unwrap();
        let mut options = command.get_arguments();
        assert!(options.any(|one| one.get_long() == Some(option)), "{place}");
        rows += 1;
    }
    assert_eq!(rows, 32);
}
