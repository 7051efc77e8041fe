//! The `Content-Security-Policy` of a self-contained page: nothing is fetched, and only the page's
//! own scripts run.
//!
//! A page holds names and texts from files of others. They are escaped when they are written;
//! should one ever get through, the policy keeps it from running: scripts are allowed by the hash
//! of their text, which no other script, no handler in an attribute and no `javascript:` link has.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

/// Returns the policy that allows scripts of exactly these texts: each is the whole content of a
/// script element, with its line ends as written (`\n`).
///
/// It belongs into `<meta http-equiv="Content-Security-Policy" content="...">`, in double quotes. A
/// frame with `srcdoc` inherits it, so the scripts of such frames belong into `scripts` too. Cost:
/// one SHA-256 of each text.
///
/// ```
/// let policy = brickyard_pictures::policy::of(&["1"]);
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
    fn scripts_are_allowed_by_their_hashes() {
        // An example of the standard, Content Security Policy Level 2, 7.17.2.
        let policy = of(&["alert('Hello, world.');", ""]);
        assert!(policy.contains(
            " script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';"
        ));
        assert!(of(&[]).contains(" script-src 'none';"));
    }
}
