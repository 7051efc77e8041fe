//! The values of the columns `kind`, `mobility`, `from` and `usage`, by name.

use brickyard::MigrateType;

use crate::PageUse;

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Start,
    Alloc,
    Failure,
    Free,
    Fallback,
    End,
}

impl Kind {
    pub(super) const ALL: [Self; 6] = [
        Self::Start,
        Self::Alloc,
        Self::Failure,
        Self::Free,
        Self::Fallback,
        Self::End,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Alloc => "alloc",
            Self::Failure => "failure",
            Self::Free => "free",
            Self::Fallback => "fallback",
            Self::End => "end",
        }
    }

    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"start" => Self::Start,
            b"alloc" => Self::Alloc,
            b"failure" => Self::Failure,
            b"free" => Self::Free,
            b"fallback" => Self::Fallback,
            b"end" => Self::End,
            _ => return None,
        })
    }
}

/// Mobilities are written in small letters.
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

pub(super) fn parse_usage(name: &[u8]) -> Option<PageUse> {
    let mut all = PageUse::ALL.into_iter();
    all.find(|usage| usage.name().as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name().as_bytes()), Some(kind));
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
        assert_eq!(Kind::parse(b"Alloc"), None);
    }
}
