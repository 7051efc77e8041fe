//! The check without which the times of a simulated run mean nothing.

use anyhow::ensure;
use brickyard_results::counted;
use brickyard_simulate::tasks::Counts;

/// Checks that every allocation was served and every free accepted. A request that fails would make
/// the run look faster than it is.
///
/// # Errors
/// If one was not.
pub(crate) fn all_served(counts: &Counts) -> anyhow::Result<()> {
    let Counts {
        failed, refused, ..
    } = counts;
    ensure!(
        *failed == 0,
        "{} failed for lack of memory",
        counted(*failed, "allocation", "allocations")
    );
    ensure!(
        *refused == 0,
        "{} refused",
        counted(*refused, "free was", "frees were")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_request_or_a_refused_free_is_an_error() {
        let all = Counts {
            asked: 7,
            ..Counts::default()
        };
        assert!(all_served(&all).is_ok());
        let failed = all_served(&Counts { failed: 2, ..all }).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "2 allocations failed for lack of memory"
        );
        let refused = all_served(&Counts { refused: 1, ..all }).unwrap_err();
        assert_eq!(refused.to_string(), "1 free was refused");
    }
}
