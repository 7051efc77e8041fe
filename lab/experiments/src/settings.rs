//! The values of an experiment's parameters: as the user set them, else the defaults.

use core::fmt::{self, Display};
use core::str::FromStr;
use std::collections::BTreeMap;

use brickyard::Mobility;
use brickyard_bench::peer::Peer;
use brickyard_machine::{MOST_CPUS, Profile};
use brickyard_measure::amount::zone_bytes;
use brickyard_measure::mobility::MOBILITIES;
use brickyard_run::named::by_name;
use brickyard_run::side_by_side::cores;
use brickyard_run::terminal::tell;

use crate::experiment::{Experiment, Form, On};
use crate::refusal::Refusal;

/// The most runs: more would take a day, and their results more memory than a host may have.
const MOST_RUNS: u32 = 1 << 16;

/// The most that is counted of anything, so that products of counts are numbers.
const MOST_COUNT: usize = 1_000_000_000;

/// The most threads of this host that an experiment starts.
const MOST_THREADS: usize = 1024;

/// The word for a value that depends on others.
const AUTO: &str = "auto";

/// What one run of an experiment was told.
pub struct Settings<'a> {
    /// The name of the experiment.
    pub experiment: &'static str,
    /// The machine: `host`, or a simulated profile.
    pub machine: &'a str,
    /// How many runs.
    pub runs: u32,
    /// Allocators of other projects that the program has.
    pub peers: &'a [&'static dyn Peer],
    form: &'static Form,
    set: BTreeMap<&'a str, &'a str>,
}

impl<'a> Settings<'a> {
    /// Chooses the form of `experiment` for this machine, and sets its parameters.
    ///
    /// # Errors
    /// [`Refusal`], if there is no such machine or parameter, or one is set twice.
    pub fn new(
        experiment: &Experiment,
        machine: Option<&'a str>,
        runs: Option<u32>,
        pairs: &'a [(String, String)],
    ) -> Result<Self, Refusal> {
        let (form, machine) = form(experiment, machine)?;
        let mut set = BTreeMap::new();
        for (name, value) in pairs {
            if !form.parameters.iter().any(|one| one.name == name) {
                let names: Vec<&str> = form.parameters.iter().map(|one| one.name).collect();
                return Err(Refusal::Setting(format!(
                    "{} on {machine} has no parameter `{name}`; there are {}",
                    experiment.name,
                    names.join(", ")
                )));
            }
            if set.insert(name.as_str(), value.as_str()).is_some() {
                return Err(Refusal::Setting(format!("{name} is set twice")));
            }
        }
        let runs = runs.unwrap_or(form.runs);
        if !(1..=MOST_RUNS).contains(&runs) {
            return Err(Refusal::Setting(format!(
                "--runs must be at least 1 and at most {MOST_RUNS}"
            )));
        }
        if form.runs == 1 && runs > 1 {
            return Err(Refusal::Setting(format!(
                "--runs {runs}: nothing in {} is left to chance, so it has one run",
                experiment.name
            )));
        }
        Ok(Self {
            experiment: experiment.name,
            machine,
            runs,
            peers: &[],
            form,
            set,
        })
    }

    /// Adds allocators of other projects.
    #[must_use]
    pub fn with_peers(self, peers: &'a [&'static dyn Peer]) -> Self {
        Self { peers, ..self }
    }

    /// Returns the form that was chosen.
    #[must_use]
    pub const fn form(&self) -> &'static Form {
        self.form
    }

    /// Returns the cells.
    ///
    /// # Errors
    /// [`Refusal`], if the values do not fit together.
    pub fn cells(&self) -> Result<Vec<crate::cell::Cell>, Refusal> {
        (self.form.cells)(self)
    }

    /// Returns the simulated machine.
    ///
    /// # Errors
    /// [`Refusal`], if it is not one.
    pub fn profile(&self) -> Result<&'static Profile, Refusal> {
        Profile::by_name(self.machine).map_err(|error| Refusal::Setting(format!("--on: {error}")))
    }

    /// Returns a value, parsed.
    ///
    /// # Errors
    /// [`Refusal`], if it is not a value.
    pub fn one<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Refusal> {
        parsed(name, self.text(name))
    }

    /// Returns the mobility of requests.
    ///
    /// # Errors
    /// [`Refusal`], if it is none.
    pub fn mobility(&self) -> Result<Mobility, Refusal> {
        let found = by_name(MOBILITIES, self.text("mobility"));
        found.map_err(|why| wrong("mobility", why))
    }

    /// Returns values separated by commas, parsed. None is there twice.
    ///
    /// # Errors
    /// [`Refusal`], if one is no value, or is there twice.
    pub fn list<T: FromStr<Err: Display> + PartialEq>(
        &self,
        name: &str,
    ) -> Result<Vec<T>, Refusal> {
        self.list_by(name, str::parse)
    }

    /// The same, by a parser of the caller's.
    ///
    /// # Errors
    /// [`Refusal`], as above.
    pub fn list_by<T: PartialEq, E: Display>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, Refusal> {
        let mut values = Vec::new();
        for text in self.text(name).split(',') {
            let value =
                parse(text).map_err(|error| wrong(name, format_args!("{text}: {error}")))?;
            if values.contains(&value) {
                return Err(wrong(name, format_args!("{text} is there twice")));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// The same, each by its name among `all`.
    ///
    /// # Errors
    /// [`Refusal`], as above, with the names there are.
    pub fn named<T: Copy + PartialEq>(
        &self,
        name: &str,
        all: &[T],
        name_of: impl Fn(T) -> &'static str,
    ) -> Result<Vec<T>, Refusal> {
        self.list_by(name, |text| {
            let found = all.iter().copied().find(|&one| name_of(one) == text);
            found.ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|&one| name_of(one)).collect();
                format!("there are {}", names.join(", "))
            })
        })
    }

    /// Returns a number that is at least 1.
    ///
    /// # Errors
    /// [`Refusal`], if it is not.
    pub fn count(&self, name: &str) -> Result<usize, Refusal> {
        counted(name, self.one(name)?)
    }

    /// Returns numbers of threads of this host; `usual` if the value is left to the experiment. Says
    /// so if there are more than CPUs.
    ///
    /// # Errors
    /// [`Refusal`], if one is 0, or more than can be started.
    pub fn threads(
        &self,
        name: &str,
        usual: impl FnOnce() -> Vec<usize>,
    ) -> Result<Vec<usize>, Refusal> {
        let threads = match self.is_auto(name) {
            true => usual(),
            false => self.counts(name)?,
        };
        let most = threads.iter().max().copied().unwrap_or(1);
        if most > MOST_THREADS {
            let why = format_args!("at most {MOST_THREADS} threads are started");
            return Err(wrong(name, why));
        }
        if most > cores() {
            tell(format_args!(
                "brickyard: {most} threads on {}: they wait for CPUs too",
                brickyard_results::counted(cores(), "CPU", "CPUs")
            ));
        }
        Ok(threads)
    }

    /// Returns numbers that are at least 1.
    ///
    /// # Errors
    /// [`Refusal`], if one is not.
    pub fn counts(&self, name: &str) -> Result<Vec<usize>, Refusal> {
        let counts = self.list(name)?.into_iter();
        counts.map(|count| counted(name, count)).collect()
    }

    /// Returns numbers of CPUs that a simulated machine can have.
    ///
    /// # Errors
    /// [`Refusal`], if it cannot have one of them.
    pub fn cpus(&self, name: &str) -> Result<Vec<usize>, Refusal> {
        let cpus = self.counts(name)?;
        match cpus.iter().find(|&&cpus| cpus > MOST_CPUS) {
            Some(_) => Err(wrong(
                name,
                format_args!("a simulated machine has 1 to {MOST_CPUS} CPUs"),
            )),
            None => Ok(cpus),
        }
    }

    /// Returns the memory of a zone in bytes, such as `512M`.
    ///
    /// # Errors
    /// [`Refusal`], if it is no amount, or more than a zone can have.
    pub fn bytes(&self, name: &str) -> Result<usize, Refusal> {
        zone_bytes(self.text(name)).map_err(|why| wrong(name, why))
    }

    /// Returns memories of zones.
    ///
    /// # Errors
    /// [`Refusal`], as above.
    pub fn all_bytes(&self, name: &str) -> Result<Vec<usize>, Refusal> {
        self.list_by(name, zone_bytes)
    }

    /// Returns true if the value is left to the experiment.
    #[must_use]
    pub fn is_auto(&self, name: &str) -> bool {
        self.text(name) == AUTO
    }

    /// Returns a value as it was written.
    ///
    /// # Panics
    /// If the form has no such parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let set = self.set.get(name).copied();
        set.unwrap_or_else(|| self.default(name))
    }

    fn default(&self, name: &str) -> &'static str {
        let mut all = self.form.parameters.iter();
        let found = all.find(|one| one.name == name);
        found
            .unwrap_or_else(|| panic!("no parameter {name}"))
            .default
    }

    /// Returns what of the values is not the default, for the names of rows: ` name-value`.
    #[must_use]
    pub fn suffix(&self, names: &[&str]) -> String {
        let differs = |name: &&&str| {
            let set = self.set.get(**name);
            set.is_some_and(|value| *value != self.default(name))
        };
        let of = |name: &&str| format!(" {name}-{}", self.text(name));
        names.iter().filter(differs).map(of).collect()
    }
}

impl fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// The settings in the title of a table: the experiment's machine, and what was set.
impl Display for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on {}", self.machine)?;
        let mut set = self.set.iter();
        set.try_for_each(|(name, value)| write!(f, ", {name}={value}"))
    }
}

/// Returns the form for this machine, and the machine's name.
fn form<'a>(
    experiment: &Experiment,
    machine: Option<&'a str>,
) -> Result<(&'static Form, &'a str), Refusal> {
    let mut forms = experiment.forms.iter();
    let found = match machine {
        None => forms.next().map(|form| match form.on {
            On::Host => (form, "host"),
            On::Simulated(usual) => (form, usual),
            On::Replayed(names) => (form, names[0]),
        }),
        Some("host") => forms
            .find(|form| form.on == On::Host)
            .map(|form| (form, "host")),
        Some(name) if forms.clone().any(|form| replays(form, name)) => forms
            .find(|form| replays(form, name))
            .map(|form| (form, name)),
        Some(name)
            if experiment
                .forms
                .iter()
                .all(|form| matches!(form.on, On::Replayed(_))) =>
        {
            return Err(Refusal::Setting(format!(
                "--on: there is no machine {name}; {} has {}",
                experiment.name,
                machines(experiment)
            )));
        }
        Some(name) => {
            Profile::by_name(name).map_err(|error| {
                Refusal::Setting(format!("--on: {error}; or host, where the experiment can"))
            })?;
            let mut simulated = forms.filter(|form| matches!(form.on, On::Simulated(_)));
            simulated.next().map(|form| (form, name))
        }
    };
    found.ok_or_else(|| {
        let on = experiment.forms.iter().map(|form| match form.on {
            On::Host => "on host",
            On::Simulated(_) => "on simulated machines",
            On::Replayed(_) => "on replayed machines",
        });
        let on: Vec<&str> = on.collect();
        Refusal::Setting(format!(
            "{} runs only {}",
            experiment.name,
            on.join(" and ")
        ))
    })
}

/// Returns true if the form replays on this machine.
fn replays(form: &Form, name: &str) -> bool {
    matches!(form.on, On::Replayed(names) if names.contains(&name))
}

/// Lists the machines that an experiment replays on.
fn machines(experiment: &Experiment) -> String {
    let of = |form: &Form| match form.on {
        On::Replayed(names) => names.join(", "),
        On::Host | On::Simulated(_) => String::new(),
    };
    experiment
        .forms
        .iter()
        .map(of)
        .collect::<Vec<_>>()
        .join(", ")
}

fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Refusal> {
    text.parse()
        .map_err(|error| wrong(name, format_args!("`{text}`: {error}")))
}

fn counted(name: &str, count: usize) -> Result<usize, Refusal> {
    match count {
        0 => Err(wrong(name, "it must be at least 1")),
        count if count > MOST_COUNT => {
            Err(wrong(name, format_args!("it must be at most {MOST_COUNT}")))
        }
        count => Ok(count),
    }
}

/// The refusal of a value.
pub fn wrong(name: &str, why: impl Display) -> Refusal {
    Refusal::Setting(format!("--set {name}: {why}"))
}
