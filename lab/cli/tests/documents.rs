//! The documents: every link has a target, every page is in the book, the program accepts every
//! command in them, and every Rust block is compiled and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All documents of the project, as paths from its root.
fn documents() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && !name.starts_with('.') {
                    walk(&path, found);
                }
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new(""), &mut found);
    assert!(found.len() > 40, "only {} documents", found.len());
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// A fenced block: its language, and its lines.
type Block = (String, Vec<String>);

/// Splits a document into the text outside of code, and the blocks of code.
fn parts(path: &Path) -> (String, Vec<Block>) {
    let (mut prose, mut blocks) = (String::new(), Vec::new());
    let mut inside: Option<Block> = None;
    for line in read(path).lines() {
        match (line.trim_start().strip_prefix("```"), inside.as_mut()) {
            (Some(_), Some(_)) => blocks.extend(inside.take()),
            (Some(language), None) => inside = Some((language.trim().to_owned(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    assert!(inside.is_none(), "{}: a block has no end", path.display());
    // Text between backticks is not a link.
    let prose = prose.split('`').step_by(2).collect::<Vec<_>>().join("`");
    (prose, blocks)
}

/// Returns the anchor of a heading, by the rules of GitHub and mdbook.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|&letter| letter.is_alphanumeric() || " -_".contains(letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn links(prose: &str) -> impl Iterator<Item = &str> {
    let targets = prose.split("](").skip(1);
    targets.filter_map(|rest| rest.split(')').next())
}

/// Returns `path` with each `..` resolved.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{}", path.display()),
            Component::CurDir => (),
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_link_has_a_target() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents() {
        let (prose, _) = parts(&document);
        for link in links(&prose).filter(|link| !link.contains("://")) {
            count += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                _ => plain(&document.parent().unwrap().join(file)),
            };
            let there = root().join(&target).exists();
            let has_place = |target: &Path| {
                let text = read(target);
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                headings.any(|heading| anchor(heading) == place)
            };
            if !there || !(place.is_empty() || has_place(&target)) {
                wrong.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "only {count} links were found");
}

#[test]
fn the_book_has_every_page_and_no_link_out_of_the_book() {
    let book = Path::new("docs/book");
    let summary = parts(&book.join("SUMMARY.md")).0;
    let listed: BTreeSet<_> = links(&summary).map(|link| book.join(link)).collect();
    let pages: BTreeSet<_> = documents()
        .into_iter()
        .filter(|page| page.starts_with(book) && !page.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(listed, pages);
    for page in &pages {
        let (prose, _) = parts(page);
        for link in links(&prose).filter(|link| !link.contains("://")) {
            let file = link.split('#').next().unwrap();
            let target = plain(&page.parent().unwrap().join(file));
            assert!(target.starts_with(book), "{}: {link}", page.display());
            // mdbook renames such a page to `index`, but does not change links to it.
            assert!(!target.ends_with("README.md"), "{}: {link}", page.display());
        }
    }
}

/// What a text has between backticks.
fn spans(prose: &str) -> impl Iterator<Item = &str> {
    prose.split('`').skip(1).step_by(2)
}

/// Returns true if a span names a file or folder by its path from the root of the project.
fn is_path(span: &str) -> bool {
    let folders = [
        ".ci",
        "allocator",
        "docs",
        "examples",
        "fuzz",
        "heap",
        "kernels",
        "lab",
        "peers",
        "proofs",
        "traces",
    ];
    let plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    let first = span.split_once('/').map(|(first, _)| first);
    first.is_some_and(|first| folders.contains(&first)) && span.chars().all(plain)
}

#[test]
fn every_file_that_the_book_names_is_there() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in documents() {
        if !page.starts_with("docs/book") {
            continue;
        }
        let text = read(&page);
        let outside = text.split("```").step_by(2).collect::<String>();
        for span in spans(&outside).filter(|span| is_path(span)) {
            count += 1;
            if !root().join(span).exists() {
                wrong.push(format!("{}: {span}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "only {count} files are named");
}

/// Splits a line into words as a shell does, up to the first redirection or separator.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#' | '|' | '>' | ';' | '&') if word.is_none() => break,
            (None, '|' | ';') => break,
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns the arguments of `brickyard` in a line of a shell block, if the line calls it.
fn arguments(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let start = words.iter().position(|word| {
        word == "brickyard" || word.ends_with("/brickyard") || word == "brickyard-cli"
    })?;
    let before = &words[..start];
    let calls = before
        .iter()
        .all(|word| word == "sudo" || word.contains('='));
    let cargo = before.first().is_some_and(|word| word == "cargo")
        && before.get(1).is_some_and(|word| word == "run");
    (calls || cargo).then(|| {
        let rest = words[start + 1..].iter();
        rest.filter(|word| *word != "--" || calls)
            .cloned()
            .collect()
    })
}

#[test]
fn the_program_accepts_every_command() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents() {
        for (_, lines) in parts(&document).1.iter().filter(|(of, _)| of == "sh") {
            let text = lines.join("\n").replace("\\\n", " ");
            let commands = text.lines().flat_map(|line| line.split(" | "));
            for called in commands.filter_map(arguments) {
                count += 1;
                let arguments = [&["brickyard".to_owned()], &called[..]].concat();
                let taken = brickyard_cli::command().try_get_matches_from(arguments);
                // `--help` is not an error.
                if let Some(why) = taken.err().filter(clap::Error::use_stderr) {
                    let document = document.display();
                    wrong.push(format!("{document}: {called:?}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 60, "only {count} commands were found");
}

#[test]
fn lines_are_split_as_a_shell_splits_them() {
    let of = |line| arguments(line).unwrap_or_default().join("|");
    assert_eq!(of("sudo brickyard watch # now"), "watch");
    assert_eq!(of("X=1 target/lab/brickyard info 'a b' | less"), "info|a b");
    assert_eq!(
        of("cargo run --release -p brickyard-cli -- snapshot"),
        "snapshot"
    );
    assert_eq!(
        of("brickyard record -- make -j8 > log"),
        "record|--|make|-j8"
    );
    assert_eq!(arguments("cargo test -p brickyard-cli"), None);
    let nonsense = brickyard_cli::command().try_get_matches_from(["brickyard", "nonsense"]);
    assert!(nonsense.is_err());
}

/// The crates that include the documents run their Rust blocks as tests.
#[test]
fn every_document_with_rust_in_it_is_compiled() {
    let included = [
        "lab/oracle/src/documents.rs",
        "heap/bench/src/documents.rs",
        "lab/experiments/src/lib.rs",
    ];
    let included = included.map(|file| read(Path::new(file))).concat();
    let mut count = 0;
    for document in documents() {
        let (_, blocks) = parts(&document);
        for (language, _) in &blocks {
            let named = !language.is_empty();
            assert!(named, "{}: a block has no language", document.display());
        }
        if blocks
            .iter()
            .any(|(language, _)| language.starts_with("rust"))
        {
            let path = format!("\"../../../{}\"", document.display());
            assert!(included.contains(&path), "{path} is in no test");
            count += 1;
        }
    }
    assert!(count >= 6, "only {count} documents have Rust in them");
}
