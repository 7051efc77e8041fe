//! The kernel's command line: `name=number`, separated by spaces.

use core::fmt;

/// What the command line can set.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Rounds, each with a zone of its own. They alternate between the kinds of slots.
    pub rounds: u64,
    /// If not 0: no round begins after so many seconds.
    pub seconds: u64,
    /// 0: rounds alternate between exclusive and shared slots. 1: all exclusive. 2: all shared.
    pub slots: u64,
    /// Steps of each task in a round.
    pub steps: u64,
}

impl Settings {
    /// What holds unless the command line says otherwise.
    pub const DEFAULT: Self = Self {
        seed: 1,
        rounds: 2,
        seconds: 0,
        slots: 0,
        steps: 10_000,
    };
}

/// A word of the command line that says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Unknown<'t>(&'t [u8]);

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "command line: `{}` is none of seed=, rounds=, seconds=, slots=, steps= with a number",
            self.0.escape_ascii()
        )
    }
}

/// Reads the command line. A word without `=` is passed over: QEMU puts the kernel's name there.
pub fn read(text: &[u8]) -> Result<Settings, Unknown<'_>> {
    let mut settings = Settings::DEFAULT;
    for word in text.split(|byte| byte.is_ascii_whitespace()) {
        let Some(equals) = word.iter().position(|&byte| byte == b'=') else {
            continue;
        };
        let number = str::from_utf8(&word[equals + 1..]).ok();
        let number = number.and_then(|text| text.parse().ok());
        let number: u64 = number.ok_or(Unknown(word))?;
        match &word[..equals] {
            b"seed" => settings.seed = number,
            b"rounds" => settings.rounds = number,
            b"seconds" => settings.seconds = number,
            b"slots" => settings.slots = number,
            b"steps" => settings.steps = number,
            _ => return Err(Unknown(word)),
        }
    }
    Ok(settings)
}
