//! The program accepts every command in the documents.

use std::fs;
use std::path::Path;

const DOCUMENTS: [&str; 3] = [
    "heap/README.md",
    "docs/book/heap-bench.md",
    "docs/book/results.md",
];

#[test]
fn the_program_accepts_every_command() {
    let mut count = 0;
    for document in DOCUMENTS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(document)).unwrap();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap().split_whitespace();
            // A line of a shell block begins with it; one of the text has it between backticks.
            let first = words.next().unwrap_or_default();
            if !["brickyard-heap", "heaps"].contains(&first.rsplit('/').next().unwrap()) {
                continue;
            }
            count += 1;
            let words = ["brickyard-heap"].into_iter().chain(words);
            let taken = brickyard_heap_bench::command().try_get_matches_from(words);
            // `--help` is not an error.
            let wrong = taken.err().filter(clap::Error::use_stderr);
            assert!(wrong.is_none(), "{document}: {line}: {wrong:?}");
        }
    }
    assert!(count >= 8, "only {count} commands were found");
}
