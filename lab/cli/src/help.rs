//! `brickyard help`: the commands, a command's options, an experiment's parameters.

use core::fmt::Write as _;

use brickyard_experiments::experiment::{Experiment, Form, On};
use brickyard_results::{Column, Columns};
use brickyard_run::terminal::{print, wrapped};
use clap::Args;

use crate::man::find;

/// The options of `brickyard help`.
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// A command such as `replay`, or an experiment such as `locks`. [default: all commands]
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

impl Help {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut all = crate::command();
        all.build();
        if let [name] = self.words.as_slice()
            && all.find_subcommand(name).is_none()
            && let Ok(experiment) = Experiment::by_name(name)
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
    for experiment in Experiment::all().filter(|one| !one.forms.is_empty()) {
        text += &columns.line([experiment.name, experiment.about]);
        text.push('\n');
    }
    text + "\n`brickyard help NAME` has the parameters of one, `brickyard reproduce` runs all as published.\n"
}

/// Returns what an experiment measures, and its parameters on each kind of machine.
fn parameters(experiment: &Experiment) -> String {
    let Experiment { name, about, .. } = experiment;
    let mut text = format!("{about}\n");
    if experiment.forms.is_empty() {
        return text
            + &format!("\nIt has no parameters: `brickyard reproduce --only {name}` runs it.\n");
    }
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
