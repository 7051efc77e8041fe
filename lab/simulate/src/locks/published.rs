//! What was published in 2007 and 2008 about the same columns, and whether a measured difference
//! has the same direction.
//!
//! Source: D. E. Porter, "A Proposed Buddy System Allocator Patch", 29 October 2007, with its
//! "Subsequent Data" (January 2008). Each speedup is listed that he starred as significant by the
//! Wilcoxon signed-rank test: 15 runs of each kernel on a machine of eight CPUs (two Xeon X5355), 5
//! for the compiles of 2008. None of his simulated speedups has a star: four runs are too few for
//! one. Of these, the ones are listed whose place in his table is certain; at 16 and 32 CPUs it
//! prints five figures for six workloads, of which the last two are MAB and config whichever is
//! missing.
//!
//! Two reservations about the figures. The posted patch never releases the lock where a refill
//! finds nothing; and it resets two of the zone's words without the lock, so that it holds the lock
//! for less work than before, whatever the policy. And 14 of 27 tests have a star, several of them
//! contradicting each other: a compile of one configuration became slower by 0.8 % and one of
//! another faster by 4.8 %, with deviations of 2 and 8 % of the mean.

use std::sync::LazyLock;

use brickyard_workload::printed::rows;

use super::Column;

/// A published difference between two columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// When, and on which kernel.
    pub source: &'static str,
    /// His workload's name.
    pub published_as: &'static str,
    /// Our name of the workload.
    pub workload: &'static str,
    /// On how many CPUs.
    pub cpus: usize,
    /// The baseline.
    pub before: Column,
    /// The column that is compared with the baseline.
    pub now: Column,
    /// The baseline's mean time over the column's: above 1 is faster.
    pub speedup: f64,
    /// Whether he found it significant.
    pub star: Star,
}

/// Whether a difference was published as significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Star {
    /// Yes.
    Yes,
    /// No, or there were too few runs for it.
    No,
}

impl Star {
    /// Returns the mark that the tables print: a star, or a blank.
    #[must_use]
    pub const fn mark(self) -> char {
        match self {
            Self::Yes => '*',
            Self::No => ' ',
        }
    }
}

/// How a measured difference compares with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Significant, and in the same direction.
    Same,
    /// Significant, and in the other direction.
    Opposite,
    /// Not significant.
    WithinNoise,
    /// Significant, since two simulated runs with one seed do the same work; but less than a tenth
    /// of the published difference. The lock then does not explain what was published.
    Negligible,
    /// Whatever was measured: the published column changed every lock of the kernel, and the model
    /// has only the zone lock.
    NotTestable,
}

/// The part of a published difference below which a measured one counts as no effect.
const NEGLIGIBLE: f64 = 0.1;

/// The significance level of the published tables.
const SIGNIFICANT_P: f64 = 0.05;

impl Agreement {
    /// Returns the words that the tables print.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Opposite => "opposite",
            Self::WithinNoise => "within noise",
            Self::Negligible => "no effect",
            Self::NotTestable => "not testable",
        }
    }
}

/// Parses one row of the file.
fn difference(row: [&'static str; 8]) -> Difference {
    let [
        source,
        published_as,
        workload,
        cpus,
        before,
        now,
        speedup,
        star,
    ] = row;
    let column = |name: &str| name.parse().expect("a column of the program");
    Difference {
        source,
        published_as,
        workload,
        cpus: cpus.parse().expect("a number of CPUs"),
        before: column(before),
        now: column(now),
        speedup: speedup.parse().expect("a speedup"),
        star: if star.is_empty() { Star::No } else { Star::Yes },
    }
}

impl Difference {
    /// Returns all that are listed: the simulated ones, then those with a star.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Difference>> = LazyLock::new(|| {
            let rows = rows(include_str!("published.csv")).into_iter();
            rows.map(difference).collect()
        });
        &ALL
    }

    /// Compares a measured speedup of the same two columns with the published one. `p` is the
    /// p-value of the signed-rank test; without one nothing is significant.
    #[must_use]
    pub fn agreement(&self, speedup: f64, p: Option<f64>) -> Agreement {
        let (published, measured) = (self.speedup - 1.0, speedup - 1.0);
        if self.now == Column::Ticket {
            Agreement::NotTestable
        } else if !p.is_some_and(|p| p < SIGNIFICANT_P) {
            Agreement::WithinNoise
        } else if measured.abs() < NEGLIGIBLE * published.abs() {
            Agreement::Negligible
        } else if (measured > 0.0) == (published > 0.0) {
            Agreement::Same
        } else {
            Agreement::Opposite
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 14 of the 27 tests of his two tables of real hardware have a star.
    #[test]
    fn all_stars_are_listed() {
        let stars = Difference::all().iter().filter(|one| one.star == Star::Yes);
        assert_eq!(stars.count(), 14);
    }

    #[test]
    fn an_agreement_needs_significance() {
        let slower = &Difference::all()[14];
        assert_eq!(slower.speedup, 0.969);
        assert_eq!(slower.agreement(0.99, Some(0.01)), Agreement::Same);
        assert_eq!(slower.agreement(1.01, Some(0.01)), Agreement::Opposite);
        assert_eq!(slower.agreement(0.5, Some(0.2)), Agreement::WithinNoise);
        assert_eq!(slower.agreement(0.5, None), Agreement::WithinNoise);
        assert_eq!(slower.agreement(0.998, Some(0.01)), Agreement::Negligible);
        assert_eq!(slower.agreement(1.0, Some(0.01)), Agreement::Negligible);
        let all_locks = &Difference::all()[12];
        assert_eq!((all_locks.now, all_locks.speedup), (Column::Ticket, 0.969));
        assert_eq!(
            all_locks.agreement(0.97, Some(0.01)),
            Agreement::NotTestable
        );
    }
}
