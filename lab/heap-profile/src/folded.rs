//! Stacks as lines of text, `root;caller;leaf BYTES`, which flame graph programs read.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::named::Named;
use crate::text::Space;

/// Writes a line per stack, in order of the names.
///
/// # Errors
/// Those of `out`.
pub fn folded(named: &Named, space: Space, out: &mut impl Write) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &named.stacks {
        let amount = stack.of_space(space);
        if amount.bytes == 0 {
            continue;
        }
        let frames = named.frames(stack);
        let names = frames.iter().rev().map(|frame| plain(frame.function));
        let names: Vec<String> = names.collect();
        let bytes = lines.entry(names.join(";")).or_default();
        *bytes = bytes.saturating_add(amount.bytes);
    }
    for (stack, bytes) in &lines {
        writeln!(out, "{stack} {bytes}")?;
    }
    out.flush()
}

/// Returns a name without what would end it, or its line.
fn plain(name: &str) -> String {
    let letters = name.chars();
    let plain = letters.map(|letter| match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    });
    plain.collect()
}
