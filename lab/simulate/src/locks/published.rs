//! What was published in 2007 and 2008 about the same columns, and whether a measured difference goes the same way.
//!
//! Source: D. E. Porter, "A Proposed Buddy System Allocator Patch", 29 October 2007, with its "Subsequent Data" (January 2008). Listed is each speedup that he starred as
//! significant by the Wilcoxon signed-rank test: 15 runs of each kernel on a machine of eight CPUs (two Xeon X5355), 5 for the compiles of 2008. None of his simulated speedups has a star:
//! four runs cannot have one. Those are listed whose place in his table is certain; at 16 and 32 CPUs it prints five figures for six workloads, of which the last two are
//! MAB and config whichever is missing.
//!
//! What to know before a figure is believed: the posted patch keeps the lock for ever where a refill finds nothing; and it resets two of the zone's words without the lock, so that what
//! it holds the lock for is less than before, whatever the policy. 14 of 27 tests have a star, several of them against each other: a compile of one configuration became slower by 0.8 % and
//! one of another faster by 4.8 %, with deviations of 2 and 8 % of the mean.

use super::Column;

/// A published difference between two columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// When, and on which kernel.
    pub source: &'static str,
    /// His workload's name.
    pub published_as: &'static str,
    /// Ours.
    pub workload: &'static str,
    /// On how many CPUs.
    pub cpus: usize,
    /// The column that was compared with.
    pub before: Column,
    /// The column.
    pub now: Column,
    /// The mean before over the mean: above 1 is faster.
    pub speedup: f64,
    /// Whether he found it significant.
    pub star: Star,
}

/// Was a difference published as significant?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Star {
    /// Yes.
    Yes,
    /// No, or it could not be.
    No,
}

impl Star {
    /// As the tables print it: a star, or a blank.
    #[must_use]
    pub const fn mark(self) -> char {
        match self {
            Self::Yes => '*',
            Self::No => ' ',
        }
    }
}

/// How a measured difference compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Significant, and in the same direction.
    Same,
    /// Significant, and in the other direction.
    Opposite,
    /// Not significant.
    WithinNoise,
    /// Significant, since two simulated runs with one seed do the same work; but less than a tenth of what was published. What then moved the published figure is not the lock.
    Negligible,
}

/// The part of a published difference below which a measured one is none.
const NEGLIGIBLE: f64 = 0.1;

/// As in the tables.
const SIGNIFICANT_P: f64 = 0.05;

impl Agreement {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Opposite => "opposite",
            Self::WithinNoise => "within noise",
            Self::Negligible => "no effect",
        }
    }
}

const SIMULATED: &str = "2007-10, simulated, 2.6.16";
const OCTOBER: &str = "2007-10, Linux 2.6.23";
const JANUARY: &str = "2008-01, Linux 2.6.24-rc7";

/// A step from a column to another.
type Step = (Column, Column);

/// His `opt` over `unmod` of 2007.
const RELEASE: Step = (Column::Hold, Column::Release);
/// His `ts` over `unmod` of 2008.
const TICKET: Step = (Column::Hold, Column::Ticket);
/// `ts+opt` over `ts`.
const YIELD: Step = (Column::Ticket, Column::TicketYield);
/// `ts+opt+cl` over `ts+opt`.
const OWN_LINE: Step = (Column::TicketYield, Column::TicketYieldOwnLine);

/// By his real machine, with a star. Names are (his, ours).
const fn real(
    source: &'static str,
    (published_as, workload): (&'static str, &'static str),
    (before, now): Step,
    speedup: f64,
) -> Difference {
    Difference {
        source,
        published_as,
        workload,
        cpus: 8,
        before,
        now,
        speedup,
        star: Star::Yes,
    }
}

/// By his simulator.
const fn simulated(workload: &'static str, cpus: usize, speedup: f64) -> Difference {
    Difference {
        cpus,
        star: Star::No,
        ..real(SIMULATED, (workload, workload), RELEASE, speedup)
    }
}

const MAB: (&str, &str) = ("MAB", "mab");
const CONFIG: (&str, &str) = ("config", "config");
const OBJDUMP: (&str, &str) = ("objdump", "objdump");
const KERNEL: (&str, &str) = ("kernel compile", "kernel");
const KERNEL_FAST: (&str, &str) = ("kernel compile fast", "kernel");
const DD: (&str, &str) = ("dd", "dd");

impl Difference {
    /// All that are listed: the simulated ones, then those with a star.
    pub const ALL: [Self; 22] = [
        simulated("pmake", 8, 0.982),
        simulated("dpunish", 8, 0.997),
        simulated("mab", 8, 1.003),
        simulated("config", 8, 1.005),
        simulated("mab", 16, 0.987),
        simulated("config", 16, 1.018),
        simulated("mab", 32, 1.006),
        simulated("config", 32, 1.005),
        real(OCTOBER, MAB, RELEASE, 1.015),
        real(OCTOBER, OBJDUMP, RELEASE, 1.008),
        real(OCTOBER, KERNEL, RELEASE, 0.992),
        real(OCTOBER, KERNEL_FAST, RELEASE, 1.048),
        real(JANUARY, MAB, TICKET, 0.969),
        real(JANUARY, MAB, YIELD, 1.015),
        real(JANUARY, MAB, OWN_LINE, 0.969),
        real(JANUARY, CONFIG, TICKET, 0.983),
        real(JANUARY, CONFIG, YIELD, 1.026),
        real(JANUARY, OBJDUMP, TICKET, 0.992),
        real(JANUARY, OBJDUMP, YIELD, 1.020),
        real(JANUARY, OBJDUMP, OWN_LINE, 0.962),
        real(JANUARY, DD, YIELD, 1.012),
        real(JANUARY, DD, OWN_LINE, 0.984),
    ];

    /// Does a measured speedup of the same two columns go the same way? `p` is that of the signed-rank test; without one nothing is significant.
    #[must_use]
    pub fn agreement(&self, speedup: f64, p: Option<f64>) -> Agreement {
        let (published, measured) = (self.speedup - 1.0, speedup - 1.0);
        if !p.is_some_and(|p| p < SIGNIFICANT_P) {
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
        let stars = Difference::ALL.iter().filter(|one| one.star == Star::Yes);
        assert_eq!(stars.count(), 14);
    }

    #[test]
    fn an_agreement_needs_significance() {
        let slower = Difference::ALL[12];
        assert_eq!(slower.speedup, 0.969);
        assert_eq!(slower.agreement(0.99, Some(0.01)), Agreement::Same);
        assert_eq!(slower.agreement(1.01, Some(0.01)), Agreement::Opposite);
        assert_eq!(slower.agreement(0.5, Some(0.2)), Agreement::WithinNoise);
        assert_eq!(slower.agreement(0.5, None), Agreement::WithinNoise);
        assert_eq!(slower.agreement(0.998, Some(0.01)), Agreement::Negligible);
        assert_eq!(slower.agreement(1.0, Some(0.01)), Agreement::Negligible);
    }
}
