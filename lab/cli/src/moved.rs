//! Commands that had another name: who types the old one is told the new one.

/// Old names, and what they are now.
const MOVED: &[(&[&str], &str)] = &[
    (&["bench", "pagealloc"], "brickyard run pagealloc"),
    (&["bench", "locks"], "brickyard run locks --on host"),
    (&["bench", "programs"], "brickyard-heap programs"),
    (&["bench", "latency"], "brickyard-heap latency"),
    (&["bench", "slab"], "brickyard-heap slab"),
    (&["heap"], "google-pprof` or `jeprof"),
    (&["bench", "pft"], "brickyard run pft --on host"),
    (&["bench", "scarce"], "brickyard run scarce"),
    (&["bench", "fragmentation"], "brickyard run fragmentation"),
    (&["bench", "forecast"], "brickyard run forecast"),
    (
        &["antifrag"],
        "brickyard run mobility` or `brickyard run two-kinds",
    ),
    (&["simulate", "explore"], "brickyard explore"),
    (&["simulate", "locks"], "brickyard run locks"),
    (&["simulate", "storm"], "brickyard run storm"),
    (&["simulate", "pft"], "brickyard run pft"),
    (&["simulate", "kernbench"], "brickyard run kernbench"),
    (&["configs"], "brickyard help designs"),
    (&["man"], "brickyard help man"),
    (&["completions"], "brickyard help completions"),
    (&["bench"], "brickyard run"),
    (&["simulate"], "brickyard run` or `brickyard explore"),
];

/// Returns what to type instead of a command line that begins with an old name.
pub(crate) fn instead(words: &[String]) -> Option<String> {
    // Whoever asks for help on an old name is told too.
    let words = match words {
        // What these were is a part of help now, under the same name.
        [help, topic, ..] if help == "help" && matches!(topic.as_str(), "man" | "completions") => {
            return None;
        }
        [help, asked @ ..] if help == "help" => asked,
        _ => words,
    };
    let begins = |old: &[&str]| words.iter().zip(old).filter(|(a, b)| a == b).count() == old.len();
    let (old, new) = MOVED.iter().find(|(old, _)| begins(old))?;
    let old = old.join(" ");
    Some(format!(
        "brickyard: `brickyard {old}` is now `{new}`; `brickyard help` has all commands"
    ))
}
