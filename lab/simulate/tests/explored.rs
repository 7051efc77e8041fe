//! What some hundred seeds cover: every event, and memory that runs out, so that refusals are
//! checked.

use std::sync::Mutex;

use brickyard_simulate::explore::{
    Case, Configuration, Covered, Event, Fault, Library, Log, Mode, SeedPlan, System, explore,
};

/// Seeds of each test.
const SEEDS: u64 = 320;

/// The library, and the number of runs in which a refusal was proved right.
#[derive(Default)]
struct Counted {
    proved: Mutex<u64>,
}

impl System for Counted {
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault> {
        let covered = Library.run(case, log)?;
        let proofs = covered.of(Event::RefusedRightly) + covered.of(Event::RefusedBelowRightly);
        if proofs > 0 {
            *self.proved.lock().unwrap_or_else(|held| held.into_inner()) += 1;
        }
        Ok(covered)
    }
}

/// A case with few CPUs, so that all seeds take some seconds.
fn few_cpus(seed: u64) -> Case {
    let case = Case::of(seed);
    Case {
        cpus: case.cpus.min(6),
        tasks: case.tasks.min(6),
        ..case
    }
}

fn survived(system: &impl System, seeds: u64, case: &(dyn Fn(u64) -> Case + Sync)) -> Covered {
    let explored = explore(
        system,
        &SeedPlan {
            threads: 2,
            case,
            ..SeedPlan::new(0..seeds)
        },
    );
    if let Some(failed) = explored.failed {
        let log = failed.shrunk.log.join("\n");
        panic!(
            "{}: {}\n{}: {}\n{log}",
            failed.case, failed.fault, failed.shrunk.case, failed.shrunk.fault
        );
    }
    explored.covered
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn every_event_happens_and_memory_runs_out_in_a_fifth_of_all_seeds() {
    let counted = Counted::default();
    let covered = survived(&counted, SEEDS, &few_cpus);
    let proved = counted
        .proved
        .into_inner()
        .unwrap_or_else(|held| held.into_inner());
    println!("{proved} of {SEEDS} seeds have proved refusals");
    for event in Event::ALL {
        println!("{:>12}  {}", covered.of(event), event.name());
    }
    // Whether a request is ever refused after its last look depends on the schedule.
    let missing = Event::ALL
        .iter()
        .filter(|&&event| event != Event::RefusedAfterWaits && covered.of(event) == 0);
    let missing: Vec<&str> = missing.map(|event| event.name()).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
    assert!(
        proved * 5 >= SEEDS,
        "{proved} of {SEEDS} seeds have proved refusals"
    );
}

#[test]
fn requests_end_while_cpus_are_stopped() {
    let covered = survived(&Library, 60, &|seed| Case {
        mode: Mode::Stop,
        ..few_cpus(seed)
    });
    println!("at most {} steps", covered.of(Event::StepsMost));
    assert!(covered.of(Event::Stops) > 0);
}

/// Half of the seeds use the default configuration.
#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn requests_end_while_others_allocate_and_free_without_end() {
    let covered = survived(&Library, 80, &|seed| {
        let case = few_cpus(seed);
        let configuration = match seed % 2 {
            0 => Configuration::Brickyard,
            _ => case.configuration,
        };
        Case {
            mode: Mode::Starve,
            configuration,
            ..case
        }
    });
    println!("at most {} steps", covered.of(Event::StepsMost));
    assert!(covered.of(Event::Refused) > 0 && covered.of(Event::Served) > 0);
}
