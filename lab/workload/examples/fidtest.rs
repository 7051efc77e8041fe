//! x
use brickyard_classics::Configuration;
use brickyard_workload::{fidelity, *};
fn main() {
    for path in std::env::args().skip(1) {
        let trace = brickyard_trace::file::read(std::path::Path::new(&path)).unwrap();
        let machine = Machine::recorded(&trace).unwrap();
        let real = fidelity::of_host(&trace.header.end).unwrap();
        let start = fidelity::of_host(&trace.header.start).unwrap();
        let base = fidelity::distance(&start, &real);
        println!(
            "{path}: as start {:.1} {:.1} {:.1} {}",
            base.by_order * 100.,
            base.by_type * 100.,
            base.by_zone * 100.,
            base.wrong_blocks
        );
        {
            let script = Script::drawn(&trace, 0).unwrap();
            match decisions::follow(
                &trace,
                &machine,
                &script,
                brickyard_classics::linux::Burst::AfterHalfTheLeast,
            ) {
                Ok(d) => {
                    for (k, a) in decisions::Decision::ALL.iter().zip(&d.agreements) {
                        println!(
                            "  {:22} asked {:8} agree {:.2} %",
                            k.name(),
                            a.asked,
                            a.part().unwrap_or(0.) * 100.
                        );
                        let mut v: Vec<_> = a.differences.iter().collect();
                        v.sort_by_key(|x| std::cmp::Reverse(*x.1));
                        for x in v.iter().take(6) {
                            println!("      {:?}", x);
                        }
                    }
                    println!("  {:?}", d.contradictions);
                }
                Err(e) => println!("{e}"),
            }
        }
        for seed in 0..1 {
            let script = Script::drawn(&trace, seed).unwrap();
            println!(
                "  known {:?} steps {}",
                script.known(),
                script.steps().len()
            );
            for c in [
                Configuration::List2007,
                Configuration::Magazine2013,
                Configuration::Linux618,
                Configuration::Brickyard,
            ] {
                let options = Options {
                    start: Start::Recorded,
                    rules: Rules::default(),
                    sample_every: u64::MAX,
                };
                let out = replay(c, &machine, &script, &options, ()).unwrap();
                let own = fidelity::of_replay(&out.zones);
                let d = fidelity::distance(&own, &real);
                println!(
                    "  {c:14} {:6.1} {:6.1} {:6.1} wrong {} fallbacks {} (host {}) mixing {} unplaced {} idle {} refused {:?} {:.1} M/s",
                    d.by_order * 100.,
                    d.by_type * 100.,
                    d.by_zone * 100.,
                    d.wrong_blocks,
                    out.fallbacks,
                    script.host_fallbacks(),
                    out.mixing,
                    out.unplaced,
                    out.idle,
                    out.frees,
                    out.steps as f64 / out.seconds / 1e6
                );
                if std::env::var("V").is_ok() && c == Configuration::Linux618 {
                    for z in &real {
                        let o = own.iter().find(|o| o.zone == z.zone).unwrap();
                        for o2 in 0..11 {
                            println!(
                                "    {:8} {o2:2} real {:?} own {:?}",
                                z.zone, z.free[o2], o.free[o2]
                            );
                        }
                        println!("    blocks real {:?} own {:?}", z.blocks, o.blocks);
                    }
                }
            }
        }
    }
}
