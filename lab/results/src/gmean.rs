//! One number for a whole configuration: the geometric mean of its ratios to the baseline.
//!
//! This is the `Gmean` line of mmtests: ratios new / base of the means, and base / new where a
//! line's better direction is not the table's. It differs from mmtests in two points. A line that a
//! configuration lacks counts as 1 there, and a ratio with a zero as 0.00001; here both are left
//! out, and the mean has the number of lines it was made from. Zero on both sides is a ratio of 1.
//! Lines whose metric has no better direction are left out.

use crate::{Better, gain_percent};

/// A geometric mean of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gmean {
    /// The better direction of the ratios.
    pub better: Better,
    /// The geometric mean of the ratios to the baseline; 1 is no difference.
    pub ratio: f64,
    /// Its gain over 1: positive is better.
    pub gain_percent: f64,
    /// How many lines gave a ratio.
    pub lines: usize,
}

impl Gmean {
    /// Computes the geometric mean of lines: the better direction of each, and its means, new and
    /// base. `better` is the direction of the result. `None` if no line gives a ratio.
    ///
    /// ```
    /// use brickyard_results::{Better, Gmean};
    /// let lines = [(Better::Lower, 4.0, 2.0), (Better::Higher, 1.0, 8.0)];
    /// let gmean = Gmean::of(Better::Lower, lines).unwrap();
    /// assert!((gmean.ratio - 4.0).abs() < 1e-12);
    /// ```
    pub fn of(better: Better, lines: impl IntoIterator<Item = (Better, f64, f64)>) -> Option<Self> {
        let logarithm = |(of_line, new, base): (Better, f64, f64)| {
            let ratio = ratio(new, base)?;
            match of_line {
                Better::Neither => None,
                same if same == better => Some(ratio.ln()),
                _ => Some(-ratio.ln()),
            }
        };
        let logarithms: Vec<f64> = lines.into_iter().filter_map(logarithm).collect();
        let lines = logarithms.len();
        let ratio = (logarithms.iter().sum::<f64>() / lines as f64).exp();
        (lines > 0).then(|| Self {
            better,
            ratio,
            gain_percent: gain_percent(better, ratio, 1.0),
            lines,
        })
    }
}

/// Returns the ratio of two values; `None` where there is none to take the logarithm of.
fn ratio(new: f64, base: f64) -> Option<f64> {
    if new == base {
        return Some(1.0);
    }
    let ratio = new / base;
    (new > 0.0 && base > 0.0 && ratio.is_normal()).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Better = Better::Lower;
    const RATE: Better = Better::Higher;

    #[test]
    fn a_line_of_the_other_direction_is_inverted() {
        // Half the time and twice the rate are both a time ratio of 1/2, and a rate of 2.
        let lines = [(TIME, 2.0, 4.0), (RATE, 6.0, 3.0)];
        for (better, ratio, gain) in [(TIME, 0.5, 50.0), (RATE, 2.0, 100.0)] {
            let found = Gmean::of(better, lines).unwrap();
            assert!((found.ratio - ratio).abs() < 1e-12);
            assert!((found.gain_percent - gain).abs() < 1e-9);
            assert_eq!(found.lines, 2);
        }
    }

    #[test]
    fn what_has_no_ratio_is_left_out() {
        let size = Better::Neither;
        let lines = [
            (RATE, 6.0, 0.0),
            (size, 50.0, 1.0),
            (RATE, 4.0, 1.0),
            (RATE, 0.0, 5.0),
        ];
        let found = Gmean::of(RATE, lines).unwrap();
        assert!((found.ratio - 4.0).abs() < 1e-12);
        assert_eq!(found.lines, 1);
        assert_eq!(Gmean::of(RATE, [(RATE, 6.0, 0.0)]), None);
        assert_eq!(Gmean::of(RATE, []), None);
        assert_eq!(Gmean::of(RATE, [(RATE, 0.0, 0.0)]).unwrap().ratio, 1.0);
    }
}
