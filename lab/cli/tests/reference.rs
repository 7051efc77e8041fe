//! The book's reference is the help of the command: every option, and every parameter of an
//! experiment. `BRICKYARD_BLESS=1` writes the page again.

use core::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use brickyard_experiments::catalog;
use brickyard_experiments::experiment::{Experiment, Form, On};
use brickyard_run::terminal::wrapped;
use clap::{Arg, Command};

const HEAD: &str = "\
# Reference

Every option of `brickyard`, and every parameter of its experiments, from the text of `--help`. A
test writes this page: `BRICKYARD_BLESS=1 cargo test -p brickyard-cli --test tests -- reference`.
`brickyard help NAME` prints the same. Commands that print figures also have `--format
table|csv|json` and `-o FILE`; [what all share](lab/designs.md#what-all-commands-share).
";

/// Returns a text as one line. A line of a list, whose words stand apart, becomes a part of a
/// sentence.
fn line(text: &str) -> String {
    let part = |line: &str| match line.trim().split_once("  ") {
        Some((item, what)) => format!("**{item}**: {};", what.trim()),
        None => line.to_owned(),
    };
    let parts: Vec<String> = text.lines().map(part).collect();
    parts.join(" ")
}

/// Returns true for what all commands have that print figures.
fn is_common(arg: &Arg) -> bool {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    help.starts_with("The format of ") || help.ends_with(" instead of to standard output")
}

/// Returns how an option is written, such as `-o, --output FILE`.
fn written(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values = match arg.get_action().takes_values() {
        true => names.join(" "),
        false => String::new(),
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    format!("{} {values}", names.join(", ")).trim().to_owned()
}

/// Returns what an option does, its values and its default.
fn told(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let values: Vec<&str> = values
            .iter()
            .map(clap::builder::PossibleValue::get_name)
            .collect();
        let _ = write!(text, " ({})", values.join(", "));
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(text, " [default: {}]", defaults.join(","));
    }
    line(&text)
}

/// Adds a line of a list.
fn add(page: &mut String, name: &str, what: &str) {
    let lines = wrapped(&format!("`{name}`: {what}"), 98).join("\n  ");
    let _ = writeln!(page, "- {lines}");
}

/// Adds the section of a command, and those of its subcommands.
fn of_command(page: &mut String, command: &Command, above: &str) {
    let name = format!("{above}{}", command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let own = |arg: &&Arg| !["help", "version"].contains(&arg.get_id().as_str());
    let args: Vec<&Arg> = command.get_arguments().filter(own).collect();
    if !args.is_empty() {
        let about = wrapped(&format!("{about}."), 100).join("\n");
        let _ = write!(page, "\n## {name}\n\n{about}\n");
    }
    let shown = |arg: &&&Arg| !arg.is_hide_set() && !is_common(arg);
    if args.iter().any(|arg| shown(&arg)) {
        page.push('\n');
    }
    for arg in args.iter().filter(shown) {
        add(page, &written(arg), &told(arg));
    }
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        of_command(page, below, &format!("{name} "));
    }
}

/// Adds a form of an experiment. `alike` is the experiment before, if it has the same parameters.
fn of_form(page: &mut String, name: &str, form: &Form, alike: Option<&str>) {
    let on = match form.on {
        On::Host => "host".to_owned(),
        On::Simulated(usual) => usual.to_owned(),
        On::Replayed(names) => names.join("|"),
    };
    let runs = match form.runs {
        1 => "one run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let (rest, parameters) = match alike {
        Some(alike) => (format!(", with the parameters of `{alike}`."), &[][..]),
        None => (":".to_owned(), form.parameters),
    };
    let text = format!("`brickyard run {name} --on {on}`, {runs}{rest}");
    let _ = writeln!(page, "\n{}\n", wrapped(&text, 100).join("\n"));
    for one in parameters {
        add(
            page,
            &format!("{}={}", one.name, one.default),
            &line(one.help),
        );
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut all = brickyard_cli::command();
    all.build();
    for command in all.get_subcommands().filter(|one| !one.is_hide_set()) {
        of_command(&mut page, command, "");
    }
    let mut before: Vec<(&Form, &str)> = Vec::new();
    for experiment in catalog::all() {
        let Experiment { name, about, .. } = experiment;
        let _ = write!(page, "\n## The experiment {name}\n\n{about}.\n");
        for form in experiment.forms {
            let alike = before
                .iter()
                .find(|(other, _)| other.parameters == form.parameters);
            of_form(&mut page, name, form, alike.map(|(_, name)| *name));
            before.push((form, name));
        }
    }
    page
}

#[test]
fn the_reference_is_the_help() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/reference.md");
    let page = page();
    if env::var_os("BRICKYARD_BLESS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "the reference is not the help: run this test with BRICKYARD_BLESS=1"
    );
}
