//! The values of the columns `kind`, `mobility`, `from` and `usage`, by name.

use brickyard::MigrateType;

use brickyard_run::named;

use crate::{PageUse, Step};

named! {
    /// What a row holds: an event of one kind, or a run of page states.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[repr(u8)]
    pub(super) enum RowKind {
        Start => "start",
        Alloc => "alloc",
        Failure => "failure",
        Free => "free",
        Fallback => "fallback",
        Taken => "taken",
        Drained => "drained",
        Batched => "batched",
        End => "end",
    }
}

impl RowKind {
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name().as_bytes() == name)
    }
}

/// Returns the name of a mobility as files have it, in lower case.
pub(super) const fn mobility_name(mobility: MigrateType) -> &'static str {
    match mobility {
        MigrateType::Unmovable => "unmovable",
        MigrateType::Movable => "movable",
        MigrateType::Reclaimable => "reclaimable",
        MigrateType::HighAtomic => "high-atomic",
        MigrateType::Isolate => "isolate",
    }
}

pub(super) fn parse_mobility(name: &[u8]) -> Option<MigrateType> {
    let mut all = MigrateType::ALL.into_iter();
    all.find(|&mobility| mobility_name(mobility).as_bytes() == name)
}

/// A value of the column `kind`: a row's kind, or the step that the row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Row(RowKind),
    Step(Step),
}

impl Kind {
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let row = RowKind::parse(name).map(Self::Row);
        row.or_else(|| parse_step(name).map(Self::Step))
    }
}

fn parse_step(name: &[u8]) -> Option<Step> {
    let mut all = Step::ALL.into_iter();
    all.find(|step| step.name().as_bytes() == name)
}

pub(super) fn parse_usage(name: &[u8]) -> Option<PageUse> {
    let mut all = PageUse::ALL.into_iter();
    all.find(|usage| usage.name().as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for kind in RowKind::ALL {
            assert_eq!(RowKind::parse(kind.name().as_bytes()), Some(kind));
        }
        for mobility in MigrateType::ALL {
            assert_eq!(
                parse_mobility(mobility_name(mobility).as_bytes()),
                Some(mobility)
            );
        }
        for usage in PageUse::ALL {
            assert_eq!(parse_usage(usage.name().as_bytes()), Some(usage));
        }
        for step in Step::ALL {
            let kind = Kind::parse(step.name().as_bytes());
            assert_eq!(kind, Some(Kind::Step(step)));
        }
        assert_eq!(RowKind::parse(b"Alloc"), None);
    }
}
