//! The profile as text, in the format that `pprof` of gperftools and of Go and `jeprof` read: a
//! line for each stack, with samples and bytes in use, those of all requests in brackets, and the
//! return addresses. Readers scale it by the period. Behind it follow the mappings, for symbols.

use core::cell::Cell;
use core::fmt;

use crate::profile::{Amount, Profile};

/// See the [module](self).
pub(crate) struct Text<'p> {
    profile: &'p Profile,
    /// Why it could not be made.
    error: Cell<Option<i32>>,
}

impl Text<'_> {
    /// Returns why it could not be made; `None` if that was not the reason.
    pub(crate) const fn error(&self) -> Option<i32> {
        self.error.get()
    }
}

impl Profile {
    /// Returns the profile as text.
    pub(crate) const fn text(&self) -> Text<'_> {
        Text {
            profile: self,
            error: Cell::new(None),
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [mut live, mut all] = [Amount::default(); 2];
        let busy = || {
            self.error.set(Some(libc::EBUSY));
            fmt::Error
        };
        self.profile.each_site(busy, |site, _| {
            for (sum, of) in [(&mut live, site.live), (&mut all, site.all)] {
                sum.samples += of.samples;
                sum.bytes += of.bytes;
            }
            Ok(())
        })?;
        write!(f, "heap profile: ")?;
        amounts(f, live, all)?;
        writeln!(f, " @ heap_v2/{}", self.profile.period())?;
        self.profile.each_site(busy, |site, frames| {
            amounts(f, site.live, site.all)?;
            f.write_str(" @")?;
            frames
                .iter()
                .try_for_each(|frame| write!(f, " {frame:#x}"))?;
            // Readers want an address. It has none if the program asked before its start was done.
            f.write_str(if frames.is_empty() { " 0x0\n" } else { "\n" })
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
