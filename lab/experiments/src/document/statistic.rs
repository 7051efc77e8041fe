//! How a number is computed from samples, and what that is called.

/// How a number is computed from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The largest minus the smallest.
    Range,
    /// The standard deviation, over n - 1.
    StdDev,
    /// 1.96 deviations over the root of n: half of the 95 % interval as the document of 2007 has
    /// it.
    Interval95,
    /// How many times better the mean is than that of `against`: above 1 is better.
    Speedup,
    /// The gain of the mean over that of `against` in percent: positive is better.
    Gain,
    /// The gain of the smallest.
    GainMin,
    /// The gain of the largest.
    GainMax,
    /// The gain of the deviation: less is better, whichever way the metric goes.
    GainStdDev,
    /// The gain of the range: less is better, whichever way the metric goes.
    GainRange,
    /// The mean minus that of `against`.
    Difference,
    /// The mean minus that of `against`, in percent of the latter, whichever way is better.
    DifferencePercent,
    /// The mean in percent of that of `against`.
    Share,
    /// The geometric mean of the speedups of each key over the key at the same index in `against`.
    GmeanSpeedup,
    /// The smallest of these speedups.
    WorstSpeedup,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Mean,
        Self::Median,
        Self::Min,
        Self::Max,
        Self::Range,
        Self::StdDev,
        Self::Interval95,
        Self::Speedup,
        Self::Gain,
        Self::GainMin,
        Self::GainMax,
        Self::GainStdDev,
        Self::GainRange,
        Self::Difference,
        Self::DifferencePercent,
        Self::Share,
        Self::GmeanSpeedup,
        Self::WorstSpeedup,
    ];

    /// Returns its name in files and pages: lower-case letters, digits and dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name_and_words().0
    }

    /// Returns what it is, in words for a reader.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.name_and_words().1
    }

    /// Returns name and words, in one place so that they cannot get out of step.
    const fn name_and_words(self) -> (&'static str, &'static str) {
        match self {
            Self::Mean => ("mean", "mean"),
            Self::Median => ("median", "median"),
            Self::Min => ("min", "smallest sample"),
            Self::Max => ("max", "largest sample"),
            Self::Range => ("range", "largest sample minus the smallest"),
            Self::StdDev => ("stddev", "standard deviation (over n - 1)"),
            Self::Interval95 => (
                "interval95",
                "half of the 95 % interval, 1.96 deviations over the root of n",
            ),
            Self::Speedup => ("speedup", "speedup of the mean over that of the baseline"),
            Self::Gain => ("gain", "gain of the mean over that of the baseline"),
            Self::GainMin => (
                "gain-min",
                "gain of the smallest sample over that of the baseline",
            ),
            Self::GainMax => (
                "gain-max",
                "gain of the largest sample over that of the baseline",
            ),
            Self::GainStdDev => (
                "gain-stddev",
                "gain of the standard deviation over that of the baseline",
            ),
            Self::GainRange => ("gain-range", "gain of the range over that of the baseline"),
            Self::Difference => ("difference", "mean minus that of the baseline"),
            Self::DifferencePercent => (
                "difference-percent",
                "mean minus that of the baseline, in percent of the baseline",
            ),
            Self::Share => ("share", "mean in percent of that of the whole"),
            Self::GmeanSpeedup => ("gmean-speedup", "geometric mean of speedups, pair by pair"),
            Self::WorstSpeedup => ("worst-speedup", "smallest of several speedups"),
        }
    }

    /// Returns which of its numbers are better, in words; none if that depends on the metric.
    #[must_use]
    pub const fn better(self) -> Option<&'static str> {
        match self {
            Self::Speedup | Self::GmeanSpeedup | Self::WorstSpeedup => Some("above 1"),
            Self::Gain | Self::GainMin | Self::GainMax | Self::GainStdDev | Self::GainRange => {
                Some("positive")
            }
            _ => None,
        }
    }

    /// Returns true if it is in percent whatever the unit of the samples is.
    #[must_use]
    pub const fn is_percent(self) -> bool {
        matches!(
            self,
            Self::Gain
                | Self::GainMin
                | Self::GainMax
                | Self::GainStdDev
                | Self::GainRange
                | Self::DifferencePercent
                | Self::Share
        )
    }

    /// Returns true if it is computed from several pairs of keys, as far as there are rows.
    #[must_use]
    pub const fn is_of_pairs(self) -> bool {
        matches!(self, Self::GmeanSpeedup | Self::WorstSpeedup)
    }

    /// Returns true if it describes the spread of the samples. Such a number shows no direction.
    #[must_use]
    pub const fn is_of_scatter(self) -> bool {
        matches!(
            self,
            Self::GainMin | Self::GainMax | Self::GainStdDev | Self::GainRange
        )
    }
}
