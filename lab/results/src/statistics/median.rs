//! The interval of a median, from the samples in order and nothing else: no distribution is
//! assumed.

/// The interval of a median, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MedianInterval {
    /// Its lower end, one of the samples.
    pub low: f64,
    /// Its upper end, one of the samples.
    pub high: f64,
    /// The probability that it holds the median, in percent.
    pub confidence_percent: f64,
}

/// The confidence that an interval should have.
const CONFIDENCE: f64 = 0.95;

impl MedianInterval {
    /// Returns the narrowest symmetric interval between two samples that holds the median with at
    /// least 95 %. Up to five samples have none; theirs is from the smallest to the largest, which
    /// holds it less surely. `None` without samples.
    ///
    /// A sample is above the median as often as below, so the k-th smallest is above it as often as
    /// fewer than k of n tosses of a coin are heads (Conover 1999, Practical Nonparametric
    /// Statistics, 3.2).
    ///
    /// ```
    /// use brickyard_results::MedianInterval;
    /// let interval = MedianInterval::of(&[3.0, 1.0, 2.0, 5.0, 4.0, 6.0]).unwrap();
    /// assert_eq!((interval.low, interval.high), (1.0, 6.0));
    /// assert!((interval.confidence_percent - 96.875).abs() < 1e-9);
    /// ```
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        // The probability of `heads` heads of n tosses, and of at most so many.
        let mut exactly = 0.5_f64.powi(i32::try_from(n).ok()?);
        let mut at_most = exactly;
        let mut outside = at_most;
        let mut cut = 0;
        for heads in 1..n / 2 {
            exactly *= (n - heads + 1) as f64 / heads as f64;
            at_most += exactly;
            if 1.0 - 2.0 * at_most < CONFIDENCE {
                break;
            }
            (cut, outside) = (heads, at_most);
        }
        Some(Self {
            low: *sorted.get(cut)?,
            high: *sorted.get(n.checked_sub(cut + 1)?)?,
            confidence_percent: (1.0 - 2.0 * outside).max(0.0) * 100.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the samples in order the interval is between, from 1, and its confidence.
    fn ranks(n: u32) -> (f64, f64, f64) {
        let samples: Vec<f64> = (1..=n).rev().map(f64::from).collect();
        let interval = MedianInterval::of(&samples).unwrap();
        let confidence = (interval.confidence_percent * 100.0).round() / 100.0;
        (interval.low, interval.high, confidence)
    }

    /// The ranks that tables of the sign test give.
    #[test]
    fn intervals_are_those_of_published_tables() {
        assert_eq!(ranks(6), (1.0, 6.0, 96.88));
        assert_eq!(ranks(8), (1.0, 8.0, 99.22));
        assert_eq!(ranks(9), (2.0, 8.0, 96.09));
        assert_eq!(ranks(10), (2.0, 9.0, 97.85));
        assert_eq!(ranks(20), (6.0, 15.0, 95.86));
        assert_eq!(ranks(30), (10.0, 21.0, 95.72));
    }

    #[test]
    fn few_samples_have_their_extremes() {
        assert_eq!(ranks(1), (1.0, 1.0, 0.0));
        assert_eq!(ranks(3), (1.0, 3.0, 75.0));
        assert_eq!(ranks(5), (1.0, 5.0, 93.75));
        assert_eq!(MedianInterval::of(&[]), None);
    }
}
