//! Commands that have moved or ended: what to run instead. Whoever runs one is told, and gets the
//! exit code of wrong usage.

/// The first words of a command, and what to run instead.
const MOVED: [(&[&str], &str); 4] = [
    (&["bench", "programs"], "run `brickyard-heap programs`"),
    (&["bench", "latency"], "run `brickyard-heap latency`"),
    (&["bench", "slab"], "run `brickyard-heap slab`"),
    (
        &["heap"],
        "run `google-pprof`, `jeprof` or `go tool pprof` on the profile",
    ),
];

/// Returns what to say to whoever runs the program with these arguments, if they are such a command.
pub(crate) fn instead_of(arguments: &[String]) -> Option<String> {
    let is_it = |words: &[&str]| arguments.iter().zip(words).filter(|(a, b)| a == b).count();
    let found = MOVED
        .iter()
        .find(|(words, _)| is_it(words) == words.len())?;
    Some(format!("`{}` is gone: {}", found.0.join(" "), found.1))
}
