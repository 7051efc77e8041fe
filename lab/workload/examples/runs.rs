//! x
use brickyard_trace::*;
fn main() {
    for path in std::env::args().skip(1) {
        let trace = file::read(std::path::Path::new(&path)).unwrap();
        let mut usage = vec![PageUse::Hole; 7_000_000];
        for r in &trace.start {
            for f in r.frame..r.frame + r.frames {
                if (f as usize) < usage.len() {
                    usage[f as usize] = r.state.usage;
                }
            }
        }
        let mut seen = vec![false; usage.len()];
        let mut refilled = std::collections::BTreeMap::new();
        let mut known = std::collections::BTreeMap::new();
        for e in &trace.events {
            let f = e.frame as usize;
            if let What::Alloc { mobility, .. } = e.what {
                if !seen[f] {
                    if usage[f] == PageUse::Free {
                        *refilled
                            .entry((e.cpu, e.order.get(), mobility as u8))
                            .or_insert(0u64) += 1;
                    } else if usage[f] == PageUse::Untold {
                        *known
                            .entry((e.cpu, e.order.get(), mobility as u8))
                            .or_insert(0u64) += 1;
                    }
                }
            }
            if matches!(e.what, What::Alloc { .. } | What::Free) {
                for g in f..f + e.order.frames() {
                    seen[g] = true;
                }
            }
        }
        println!("{path}\nrefilled {refilled:?}\nknown {known:?}");
        let mut whole = 0;
        let mut untold_never = 0;
        let mut by = [0usize; 20];
        let mut f = 1048576;
        while f + 512 <= 6553600 {
            let all = (f..f + 512).all(|g| usage[g] == PageUse::Untold && !seen[g]);
            if all {
                whole += 1;
            }
            f += 512;
        }
        for f in 1048576..6553600usize {
            if usage[f] == PageUse::Untold && !seen[f] {
                untold_never += 1;
            }
        }
        // untold never-seen by surrounding: count in blocks with movable majority
        let mut f = 1048576;
        let mut inmov = 0;
        while f + 512 <= 6553600 {
            let m = (f..f + 512)
                .filter(|&g| matches!(usage[g], PageUse::Anonymous | PageUse::File | PageUse::Free))
                .count();
            let u = (f..f + 512)
                .filter(|&g| usage[g] == PageUse::Untold && !seen[g])
                .count();
            if u > 0 && m > 256 {
                inmov += u;
                by[(u as f64).log2() as usize] += 1;
            }
            f += 512;
        }
        println!(
            "whole untold never {whole}, untold never {untold_never} in movable blocks {inmov} by log2 {by:?}"
        );
        let z = brickyard_host::zoneinfo::parse(&trace.header.start.zoneinfo).unwrap();
        let e = brickyard_host::zoneinfo::parse(&trace.header.end.zoneinfo).unwrap();
        for (z, e) in z.iter().zip(&e) {
            println!(
                "{} {:?} -> {:?}",
                z.name,
                z.pagesets
                    .iter()
                    .map(|p| (p.count, p.high))
                    .collect::<Vec<_>>(),
                e.pagesets
                    .iter()
                    .map(|p| (p.count, p.high))
                    .collect::<Vec<_>>()
            );
        }
    }
}
