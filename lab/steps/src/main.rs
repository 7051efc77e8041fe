//! Prints how many stopping points were tried of each two calls, and how many failed.

use brickyard_steps::{StopPlan, try_all};

const USAGE: &str = "--only A,B: pairs of these calls; --stops N, --pairs N: at most so many stopping \
    points and pairs of them in a situation (--pairs alone: all); --every N: one situation in so \
    many; --first: end at the first two calls that fail; --csv";

fn main() {
    let mut plan = StopPlan::default();
    let (mut csv, mut first) = (false, false);
    let mut arguments = std::env::args().skip(1).peekable();
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments
                .next_if(|next| next.parse::<u64>().is_ok())?
                .parse()
                .ok()
        };
        match argument.as_str() {
            "--csv" => csv = true,
            "--first" => first = true,
            "--stops" => plan.stops_most = number(),
            "--pairs" => plan.pairs_most = number().unwrap_or(u64::MAX),
            "--every" => plan.every = number().unwrap_or(1),
            "--only" => {
                let names = arguments.next().unwrap_or_default();
                plan.only = names.split(',').map(str::to_owned).collect();
            }
            other => {
                eprintln!("{other}: not known. {USAGE}");
                std::process::exit(2);
            }
        }
    }
    if csv {
        println!("first,second,stops,pairs,failed");
    }
    let mut failed = 0;
    try_all(&plan, |a, b, tally| {
        failed += tally.failed;
        let [stops, pairs, lost] = [tally.stops, tally.pairs, tally.failed];
        match csv {
            true => println!("{a},{b},{stops},{pairs},{lost}"),
            false => println!("{a:24} {b:24} {stops:9} {pairs:9} {lost:7}"),
        }
        for failure in tally.failures.values() {
            eprintln!("{a} | {b}: {failure}");
        }
        if first && failed > 0 {
            std::process::exit(1);
        }
    });
    if failed > 0 {
        std::process::exit(1);
    }
}
