//! Every option that the command had when it had 31 subcommands, and where it is now: in
//! `options.csv`, as the words that reach it, or `ended:` with the reason.

use brickyard_experiments::catalog;
use brickyard_experiments::experiment::Form;
use brickyard_experiments::settings::Settings;
use clap::Command;

/// Returns the form of an experiment that these words choose.
fn form(experiment: &str, on: Option<&str>) -> &'static Form {
    let experiment = catalog::by_name(experiment).unwrap();
    Settings::new(&experiment, on, None, &[]).unwrap().form()
}

/// Returns true if these words reach an option, an argument, or a parameter of an experiment.
fn is_there(all: &Command, words: &[&str]) -> bool {
    match words {
        ["run", experiment, "--on", machine, "--set", parameter] => {
            let form = form(experiment, Some(machine));
            form.parameters.iter().any(|one| one.name == *parameter)
        }
        [commands @ .., option] => {
            let start = Some(all);
            let step = |found: Option<&'_ Command>, name: &&str| -> Option<Command> {
                found?.find_subcommand(name).cloned()
            };
            let mut found = start.cloned();
            for name in commands {
                found = step(found.as_ref(), name);
            }
            found.is_some_and(|command| has(&command, option))
        }
        [] => false,
    }
}

/// Returns true if a command has an option `--name`, or an argument such as `<FILE>` or `[FILE]...`.
fn has(command: &Command, option: &str) -> bool {
    let argument = option.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    command
        .get_arguments()
        .any(|one| match option.strip_prefix("--") {
            Some(name) => one.get_long() == Some(name),
            None => {
                let mut names = one.get_value_names().unwrap_or_default().iter();
                one.is_positional() && names.any(|name| name == argument)
            }
        })
}

#[test]
fn every_option_has_its_place_or_the_reason_why_it_ended() {
    let all = brickyard_cli::command();
    let mut table = csv::Reader::from_reader(include_str!("options.csv").as_bytes());
    let mut rows = 0;
    for row in table.records() {
        let row = row.unwrap();
        let (command, option, place) = (&row[0], &row[1], &row[2]);
        let mut old: Vec<&str> = command.split(' ').collect();
        old.push(option);
        if let Some(why) = place.strip_prefix("ended: ") {
            assert!(why.len() > 10, "{command} {option} needs a reason");
            assert!(!is_there(&all, &old), "{command} {option} has not ended");
        } else if place.starts_with("brickyard-heap ") {
            // A test of that command walks these.
            assert!(!is_there(&all, &old), "{command} {option} is still here");
        } else {
            let words: Vec<&str> = place.split(' ').collect();
            assert!(
                is_there(&all, &words),
                "{command} {option} is not at {place}"
            );
        }
        rows += 1;
    }
    assert_eq!(rows, 303);
}
