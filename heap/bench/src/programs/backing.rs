//! Memory that is at hand for a run.
//!
//! A virtual machine may tell its host which blocks of 2 MiB have been free for two seconds (free
//! page reporting), and the host takes their memory. Who touches them next waits for it: 3 s for a
//! gigabyte were measured, where it else takes 0.15. That would be whichever library asks for huge
//! pages first after a pause. So before each run as much memory as it needs is touched, and given
//! back to this machine's kernel, who then has it at hand. Elsewhere this changes little.

use core::mem::MaybeUninit;

use brickyard_arena::{Huge, MapPlan, page_bytes};
use rustix::system::sysinfo;

/// What is touched while no peak is known.
const AT_FIRST_MIB: f64 = 1024.0;

/// Touches as much memory as a run needs whose peak is so high, and a quarter more; of free memory
/// no more than a quarter. Does nothing if the system has none to give.
pub(super) fn fetch(peak_mib: Option<f64>) {
    let wanted = (peak_mib.unwrap_or(AT_FIRST_MIB) * 1.25 * f64::from(1 << 20)) as usize;
    let plan = |huge| MapPlan::new(wanted.min(free_bytes() / 4)).huge(huge).map();
    let Ok(mut memory) = plan(Huge::Transparent).or_else(|_| plan(Huge::No)) else {
        return;
    };
    for page in memory.as_uninit().chunks_mut(page_bytes()) {
        page[0] = MaybeUninit::new(1);
    }
}

/// Returns how much memory nobody uses.
fn free_bytes() -> usize {
    let system = sysinfo();
    (system.freeram as usize).saturating_mul(system.mem_unit as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peak_is_too_high_or_too_low() {
        assert!(free_bytes() > 1 << 20);
        for peak in [Some(0.0), Some(3.0), Some(f64::NAN), Some(-1.0)] {
            fetch(peak);
        }
    }
}
