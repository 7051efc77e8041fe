//! The profile as text, in the format that `pprof` of gperftools and of Go and `jeprof` read: a line
//! for each stack, with samples and bytes in use, those of all requests in brackets, and the return
//! addresses. Readers scale it by the period. Behind it follow the mappings, for symbols.

use core::fmt;

use super::profile::{Amount, Profile};

/// See the [module](self).
pub(super) struct Text<'p> {
    profile: &'p Profile,
}

impl Profile {
    /// Returns the profile as text.
    pub(super) const fn text(&self) -> Text<'_> {
        Text { profile: self }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [mut live, mut all] = [Amount::default(); 2];
        self.profile.each_site(|site, _| {
            for (sum, of) in [(&mut live, site.live), (&mut all, site.all)] {
                sum.samples += of.samples;
                sum.bytes += of.bytes;
            }
            Ok(())
        })?;
        write!(f, "heap profile: ")?;
        amounts(f, live, all)?;
        writeln!(f, " @ heap_v2/{}", self.profile.period())?;
        self.profile.each_site(|site, frames| {
            amounts(f, site.live, site.all)?;
            f.write_str(" @")?;
            frames
                .iter()
                .try_for_each(|frame| write!(f, " {frame:#x}"))?;
            f.write_str("\n")
        })?;
        f.write_str("\nMAPPED_LIBRARIES:\n")
    }
}

fn amounts(f: &mut fmt::Formatter<'_>, live: Amount, all: Amount) -> fmt::Result {
    write!(
        f,
        "{:6}: {:8} [{:6}: {:8}]",
        live.samples, live.bytes, all.samples, all.bytes
    )
}
