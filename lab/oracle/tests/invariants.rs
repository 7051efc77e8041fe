//! Invariants have names, and each name is defined once in the whole tree, as "Invariant `name`:
//! what holds", in the file that owns it. Every name that a SAFETY note, a check or an assertion
//! refers to is defined somewhere.
//!
//! `grep -rn 'Invariant `'` lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns every source of the tree, but for generated files and symbolic links.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = ["allocator", "heap", "kernels", "lab", "examples", "fuzz"]
        .map(|wing| root.join(wing))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() && entry.file_name() != "target" {
                folders.push(path);
            } else if kind.is_file()
                && !path.ends_with(file!())
                && path.extension().is_some_and(|end| end == "rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                sources.push((
                    path.strip_prefix(&root).unwrap().to_path_buf(),
                    joined(&text),
                ));
            }
        }
    }
    assert!(sources.len() > 300, "{} sources", sources.len());
    sources
}

/// Returns true if it is a name such as `one-owner`.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    text.split('-').all(is_part)
}

/// Returns the text with each comment of several lines joined to one line.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    let mut in_comment = false;
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("//") {
            Some(comment) if in_comment => joined += comment.trim_start_matches(['/', '!']),
            _ => joined = joined + "\n" + line,
        }
        in_comment = line.starts_with("//");
    }
    joined
}

/// Iterates over the names in backticks after `word`, with the text after the closing backtick.
fn behind<'t>(text: &'t str, word: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    text.split(word).skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once('`')?;
        is_name(name).then_some((name, rest))
    })
}

/// Iterates over the invariants defined in a joined text.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    behind(text, "Invariant `").filter_map(|(name, rest)| rest.starts_with(':').then_some(name))
}

/// Returns the names that a joined text refers to: in SAFETY notes, as "invariant `name`", and in
/// the reports of checks.
fn referred_to(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = behind(text, "nvariant `").map(|(name, _)| name).collect();
    for line in text.lines() {
        let note = line.split_once("// SAFETY:").map_or("", |(_, note)| note);
        let parts = note.split('`').skip(1).step_by(2);
        names.extend(parts.filter(|part| part.contains('-') && is_name(part)));
    }
    for call in ["Violation::at(", "Violation::unless_equal("] {
        names.extend(text.split(call).skip(1).filter_map(|rest| {
            let name = rest.trim_start().strip_prefix('"')?.split('"').next()?;
            is_name(name).then_some(name)
        }));
    }
    names
}

#[test]
fn each_is_defined_once() {
    let sources = sources();
    let mut owners: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for (path, text) in &sources {
        for name in defined(text) {
            owners.entry(name).or_default().push(path);
        }
    }
    assert!(owners.len() > 40, "{} invariants", owners.len());
    let twice: Vec<_> = owners.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "defined more than once: {twice:#?}");

    let mut unknown = Vec::new();
    for (path, text) in &sources {
        for name in referred_to(text) {
            if !owners.contains_key(name) {
                unknown.push((path, name));
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "referred to, but not defined: {unknown:#?}"
    );
}

/// The parser of the test above, on a small text.
#[test]
fn names_are_read_as_they_are_written() {
    let text = "//! Invariant `one-owner`: a frame has one.\n\n//! Invariant\n//! `no-two`: wrapped.\n\
        // SAFETY: by `one-owner`, and since invariant\n    // `counted` says so; see `Frame`.\nlet
        // x;\n\
        y(); // SAFETY: `at-the-end`\n// Invariant `referred-to`.\nViolation::at(\n  \"torn-block\", 1)";
    let text = joined(text);
    assert_eq!(defined(&text).collect::<Vec<_>>(), ["one-owner", "no-two"]);
    let mut found = referred_to(&text);
    found.sort_unstable();
    found.dedup();
    let all = [
        "at-the-end",
        "counted",
        "no-two",
        "one-owner",
        "referred-to",
        "torn-block",
    ];
    assert_eq!(found, all);
    assert_eq!(defined("Invariant `x-y` holds").count(), 0);
}
