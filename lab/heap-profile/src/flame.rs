//! A flame graph as one page: `flame/` holds its text, style and script.
//!
//! Nothing is fetched, and only the page's own script runs: its [`policy`] forbids all else. Names
//! are embedded as JSON in which `<`, `>` and `&` are escaped, and the script inserts them as text.

use std::collections::HashMap;
use std::io::{self, Write};

use brickyard_report::markup::{self, Escaped, escape_json};
use brickyard_report::policy;
use serde::Serialize;

use crate::named::Named;
use crate::text::Space;
use crate::tree::Tree;

const PAGE: &str = include_str!("flame/page.html");
const STYLE: &str = include_str!("flame/style.css");
const SCRIPT: &str = include_str!("flame/flame.js");

/// What the page's script reads.
#[derive(Serialize)]
struct About<'n> {
    names: Vec<&'n str>,
    /// Each node's depth, name, live bytes, live objects, all bytes, all objects.
    nodes: Vec<[u64; 6]>,
    /// True if live objects are shown first.
    live: bool,
    /// True if all objects are known.
    all: bool,
}

/// Writes the page, with what is of this space shown first.
///
/// # Errors
/// Those of `out`.
pub fn flame(named: &Named, space: Space, title: &str, out: &mut impl Write) -> io::Result<()> {
    let tree = Tree::of(named);
    let mut about = About {
        names: Vec::new(),
        nodes: Vec::new(),
        live: space == Space::Live,
        all: named.has_all,
    };
    let mut places: HashMap<&str, u64> = HashMap::new();
    for node in &tree.nodes {
        let name = *places.entry(node.function).or_insert_with(|| {
            about.names.push(node.function);
            about.names.len() as u64 - 1
        });
        let [live, all] = [node.live, node.all].map(|of| [of.bytes, of.objects]);
        let depth = node.depth as u64;
        about
            .nodes
            .push([depth, name, live[0], live[1], all[0], all[1]]);
    }
    let about = serde_json::to_string(&about).map_err(io::Error::other)?;
    let script = markup::script(&[SCRIPT]);
    markup::fill(PAGE, out, |marker, out| match marker {
        "policy" => write!(out, "{}", policy::of(&[&script])),
        "title" => write!(out, "{}", Escaped(title)),
        "style" => out.write_all(STYLE.as_bytes()),
        "about" => out.write_all(escape_json(&about).as_bytes()),
        "script" => out.write_all(script.as_bytes()),
        other => unreachable!("the page has no marker {other}"),
    })
}
