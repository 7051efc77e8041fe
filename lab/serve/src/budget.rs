//! A share of one CPU that work may take on average: time comes in at that share, work takes it
//! out, and what is not urgent waits while there is none.

use core::time::Duration;

/// The share of a CPU, and what is left of it.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    share: f64,
    /// In seconds of CPU time; less than 0 after work that could not be divided.
    left: f64,
    /// What is saved at most.
    most: f64,
}

impl Budget {
    /// Creates a budget of this share of a CPU, 0 to 1, that saves no more than `period` brings.
    #[must_use]
    pub fn new(share: f64, period: Duration) -> Self {
        let share = share.clamp(0.0, 1.0);
        let most = share * period.as_secs_f64();
        Self {
            share,
            left: 0.0,
            most,
        }
    }

    /// Returns the share.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Adds what this time brings.
    pub fn pass(&mut self, time: Duration) {
        self.left = (self.left + self.share * time.as_secs_f64()).min(self.most);
    }

    /// Takes out what work has taken.
    pub fn take(&mut self, cpu: Duration) {
        self.left -= cpu.as_secs_f64();
    }

    /// Returns true if something is left.
    #[must_use]
    pub fn allows(&self) -> bool {
        self.left > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn work_takes_its_share_on_average() {
        let mut budget = Budget::new(0.004, 30 * SECOND);
        let piece = Duration::from_micros(1300);
        let mut worked = Duration::ZERO;
        for _ in 0..10_000 {
            budget.pass(SECOND);
            while budget.allows() {
                budget.take(piece);
                worked += piece;
            }
        }
        let share = worked.as_secs_f64() / 10_000.0;
        assert!((0.00399..0.00401).contains(&share), "{share}");
    }

    #[test]
    fn a_debt_is_paid_and_savings_have_a_limit() {
        let mut budget = Budget::new(0.01, 10 * SECOND);
        assert!(!budget.allows());
        budget.take(SECOND);
        for _ in 0..100 {
            assert!(!budget.allows());
            budget.pass(SECOND);
        }
        budget.pass(3600 * SECOND);
        budget.take(Duration::from_millis(101));
        assert!(!budget.allows());
    }
}
