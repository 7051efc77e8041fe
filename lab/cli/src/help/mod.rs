//! `brickyard help`: the commands in groups, a command's options, an experiment's parameters; the
//! designs, manual pages, completions.

mod completions;
mod designs;
mod man;

use core::fmt::Write as _;

use brickyard_experiments::catalog;
use brickyard_experiments::experiment::{Experiment, Form, On};
use brickyard_results::{Column, Columns};
use brickyard_run::terminal::{print, wrapped};
use clap::{Args, Command, Subcommand};

use man::find;

/// The options of `brickyard help`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true
)]
pub(crate) struct Help {
    /// A command such as `replay`, or an experiment such as `locks`. [default: all commands]
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    #[command(subcommand)]
    topic: Option<Topic>,
}

/// What else help has.
#[derive(Debug, Subcommand)]
enum Topic {
    /// Lists the designs by the names that `--config` takes: what each rebuilds, and the size of its
    /// metadata (64 GiB, 8 CPUs).
    Designs(designs::Designs),
    /// Prints the manual page of a command, or writes the pages of all commands.
    Man(man::Man),
    /// Prints a completion script for a shell.
    Completions(completions::Completions),
}

/// The commands in the groups in which the first screen shows them.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "This host: its huge pages, its fragmentation, and who mixed what",
        &["snapshot", "watch", "serve", "history"],
    ),
    (
        "Traces: what a host's kernel was asked for, replayed through other designs",
        &["record", "import", "info", "replay", "fidelity"],
    ),
    (
        "Experiments: designs beside each other, on this host or on simulated machines",
        &["run", "reproduce", "compare", "explore"],
    ),
    ("And", &["help"]),
];

/// Returns the command with its first screen: the subcommands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let columns = Columns::new([Column::left().wide(10).after(2), Column::left().after(2)]);
    let mut text = String::new();
    for (about, names) in GROUPS {
        text += &format!("{about}:\n");
        for name in names {
            let found = command.find_subcommand(name).and_then(Command::get_about);
            let about = found.map(ToString::to_string).unwrap_or_default();
            let mut name = *name;
            for line in wrapped(&about, WIDTH) {
                text += &columns.line([name, &line]);
                text.push('\n');
                name = "";
            }
        }
        text.push('\n');
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}"
    ))
}

impl Help {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.topic {
            Some(Topic::Designs(designs)) => designs.run(),
            Some(Topic::Man(man)) => man.run(),
            Some(Topic::Completions(completions)) => completions.run(),
            None => self.of_words(),
        }
    }

    /// Prints the help of a command, or the parameters of an experiment.
    fn of_words(&self) -> anyhow::Result<()> {
        let mut all = crate::command();
        all.build();
        if let [name] = self.words.as_slice()
            && all.find_subcommand(name).is_none()
            && let Ok(experiment) = catalog::by_name(name)
        {
            return Ok(print(&parameters(&experiment))?);
        }
        let mut found = find(&all, &self.words)?.clone();
        Ok(print(&found.render_long_help().to_string())?)
    }
}

/// Returns the list of the experiments.
pub(crate) fn experiments() -> String {
    let columns = Columns::new([Column::left().wide(14), Column::left().after(1)]);
    let mut text = "The experiments; run one with `brickyard run NAME`:\n\n".to_owned();
    for experiment in catalog::all() {
        text += &columns.line([experiment.name, experiment.about]);
        text.push('\n');
    }
    text + "\n`brickyard help NAME` has the parameters of one, `brickyard reproduce` runs all as published.\n"
}

/// Returns what an experiment measures, and its parameters on each kind of machine.
fn parameters(experiment: &Experiment) -> String {
    let Experiment { name, about, .. } = experiment;
    let mut text = format!("{about}\n");
    for form in experiment.forms {
        let on = match form.on {
            On::Host => "on this host, with real threads (--on host)".to_owned(),
            On::Replayed(names) => format!(
                "of recorded traces on a machine of its document (--on {})",
                names.join(", or ")
            ),
            On::Simulated(usual) => {
                format!("on a simulated machine (--on {usual}, or another of them)")
            }
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\nbrickyard run {name} {on}, {} runs:\n", form.runs);
        text += &of_form(form);
    }
    text + "\nSet one with --set PARAMETER=VALUE; lists are separated by commas.\n"
}

/// The width of the text of a parameter.
const WIDTH: usize = 74;

fn of_form(form: &Form) -> String {
    let mut text = String::new();
    for one in form.parameters {
        let _ = writeln!(text, "  {} = {}", one.name, one.default);
        for line in wrapped(one.help, WIDTH) {
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}
