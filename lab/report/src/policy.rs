//! The policy of a self-contained page, for its `Content-Security-Policy`: nothing is fetched, and
//! no script runs but the page's own.
//!
//! A page holds names and texts from files that others may have written. They are escaped where
//! they are written; should one ever get through, the policy keeps it from running: a script is
//! named by the hash of its text, and neither another script, nor a handler in an attribute, nor a
//! `javascript:` link has one of these hashes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

/// The policy that lets scripts of exactly these texts run: each is the whole content of a script
/// element, with its line ends as they are written (`\n`).
///
/// It goes into `<meta http-equiv="Content-Security-Policy" content="...">`, in double quotes. A
/// frame with `srcdoc` inherits it, so the scripts of such frames belong to `scripts` too. Cost:
/// each text is hashed by SHA-256.
///
/// ```
/// let policy = brickyard_report::policy::of(&["1"]);
/// assert!(policy.contains("script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"));
/// ```
#[must_use]
pub fn of(scripts: &[&str]) -> String {
    let mut sources = String::new();
    for script in scripts {
        let hash = STANDARD.encode(Sha256::digest(script));
        sources.push_str(&format!(" 'sha256-{hash}'"));
    }
    if sources.is_empty() {
        sources.push_str(" 'none'");
    }
    format!(
        "default-src 'none'; script-src{sources}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_named_by_their_hashes() {
        // An example of the standard, Content Security Policy Level 2, 7.17.2.
        let policy = of(&["alert('Hello, world.');", ""]);
        assert!(policy.contains(
            " script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';"
        ));
        assert!(of(&[]).contains(" script-src 'none';"));
    }
}
