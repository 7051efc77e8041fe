//! The steps of a script: in memory, or, where there are many, in a temporary file.
//!
//! The file has them in rounds, each column by column and compressed: about 6 bytes a step, where
//! memory takes 24. A replay reads one round after another.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use brickyard::Order;
use brickyard_trace::NameId;

use crate::pages::{PageId, Role};
use crate::script::ScriptStep;

/// Steps of a round, at most.
pub(crate) const ROUND: usize = 1 << 15;

/// Steps that are kept in memory: 24 MiB. With more, all are in a file.
const KEPT_MOST: usize = 1 << 20;

/// Bytes of a step in a round before it is compressed.
const BYTES: usize = 20;

/// How hard the rounds are compressed: they are read once for every design.
const LEVEL: i32 = 1;

/// The steps.
#[derive(Debug)]
pub(crate) struct Steps {
    count: usize,
    kept: Vec<ScriptStep>,
    spooled: Option<Spooled>,
}

/// Rounds in a file.
#[derive(Debug)]
struct Spooled {
    file: File,
    written: u64,
    rounds: Vec<Placed>,
}

/// A round in the file.
#[derive(Debug, Clone, Copy)]
struct Placed {
    at: u64,
    bytes: usize,
    steps: usize,
    /// The time of its first step.
    begins: u64,
}

/// Collects steps.
#[derive(Debug)]
pub(crate) struct Collecting {
    steps: Steps,
    most: usize,
    round: Vec<u8>,
}

impl Collecting {
    /// Keeps all steps in memory, however many they are.
    pub(crate) fn in_memory() -> Self {
        Self::keeping(usize::MAX)
    }

    /// Keeps the steps in a temporary file if they are many.
    pub(crate) fn in_bounds() -> Self {
        Self::keeping(KEPT_MOST)
    }

    /// Keeps at most `most` steps in memory.
    pub(crate) fn keeping(most: usize) -> Self {
        Self {
            steps: Steps {
                count: 0,
                kept: Vec::new(),
                spooled: None,
            },
            most,
            round: Vec::new(),
        }
    }

    /// Returns how many steps there are.
    pub(crate) const fn len(&self) -> usize {
        self.steps.count
    }

    /// Adds a step, which must not be before the last.
    pub(crate) fn push(&mut self, step: ScriptStep) -> io::Result<()> {
        let kept = &self.steps.kept;
        let is_far = |first: &ScriptStep| step.time - first.time > u64::from(u32::MAX);
        let is_full = match self.steps.spooled {
            None => kept.len() >= self.most,
            Some(_) => kept.len() >= ROUND || kept.first().is_some_and(is_far),
        };
        if is_full {
            self.spool()?;
        }
        self.steps.count += 1;
        self.steps.kept.push(step);
        Ok(())
    }

    /// Writes the steps that are in memory.
    fn spool(&mut self) -> io::Result<()> {
        let spooled = match &mut self.steps.spooled {
            Some(spooled) => spooled,
            none => none.insert(Spooled {
                file: tempfile::tempfile()?,
                written: 0,
                rounds: Vec::new(),
            }),
        };
        let mut rest = self.steps.kept.as_slice();
        while let Some(first) = rest.first() {
            let reach = first.time.saturating_add(u64::from(u32::MAX));
            let near = rest.partition_point(|step| step.time <= reach);
            let (round, later) = rest.split_at(near.min(ROUND));
            spooled.write(round, &mut self.round)?;
            rest = later;
        }
        self.steps.kept = Vec::with_capacity(ROUND);
        Ok(())
    }

    /// Returns all steps.
    pub(crate) fn finish(mut self) -> io::Result<Steps> {
        if self.steps.spooled.is_some() {
            self.spool()?;
            self.steps.kept = Vec::new();
        }
        Ok(self.steps)
    }
}

impl Spooled {
    fn write(&mut self, round: &[ScriptStep], columns: &mut Vec<u8>) -> io::Result<()> {
        columns.clear();
        let begins = round.first().map_or(0, |step| step.time);
        let mut column = |bytes: &dyn Fn(&ScriptStep, &mut Vec<u8>)| {
            round.iter().for_each(|step| bytes(step, columns));
        };
        column(&|step, to| to.extend(((step.time - begins) as u32).to_le_bytes()));
        column(&|step, to| to.extend(step.page.0.to_le_bytes()));
        column(&|step, to| to.extend(step.name.0.to_le_bytes()));
        column(&|step, to| to.extend(step.cpu.to_le_bytes()));
        column(&|step, to| to.extend(step.request.to_le_bytes()));
        column(&|step, to| to.push(step.order.get()));
        column(&|step, to| to.push(step.role as u8));
        column(&|step, to| to.push(step.marks));
        column(&|step, to| to.push(u8::from(step.overlaps_used)));
        let packed = zstd::bulk::compress(columns, LEVEL)?;
        self.file.write_all_at(&packed, self.written)?;
        self.rounds.push(Placed {
            at: self.written,
            bytes: packed.len(),
            steps: round.len(),
            begins,
        });
        self.written += packed.len() as u64;
        Ok(())
    }
}

impl Steps {
    /// Returns how many steps there are.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Returns the steps, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&[ScriptStep]> {
        match self.spooled {
            None => Some(&self.kept),
            Some(_) => None,
        }
    }

    /// Returns a reader of all steps, from the first on.
    pub(crate) fn rounds(&self) -> Rounds<'_> {
        Rounds {
            steps: self,
            next: 0,
            packed: Vec::new(),
            columns: Vec::new(),
            round: Vec::new(),
        }
    }
}

/// Reads steps round by round.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    steps: &'a Steps,
    next: usize,
    packed: Vec<u8>,
    columns: Vec<u8>,
    round: Vec<ScriptStep>,
}

impl Rounds<'_> {
    /// Returns the next steps; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<&[ScriptStep]> {
        let place = self.next;
        self.next += 1;
        let Some(spooled) = &self.steps.spooled else {
            let mut rounds = self.steps.kept.chunks(ROUND);
            return Ok(rounds.nth(place).unwrap_or_default());
        };
        self.round.clear();
        if let Some(placed) = spooled.rounds.get(place) {
            self.packed.resize(placed.bytes, 0);
            spooled.file.read_exact_at(&mut self.packed, placed.at)?;
            self.columns.resize(ROUND * BYTES, 0);
            let bytes = zstd::bulk::decompress_to_buffer(&self.packed, &mut self.columns[..])?;
            let changed = || io::Error::other("a temporary file was changed by another program");
            if bytes != placed.steps * BYTES {
                return Err(changed());
            }
            let columns = &self.columns[..bytes];
            unpack(columns, placed, &mut self.round).ok_or_else(changed)?;
        }
        Ok(&self.round)
    }
}

/// Appends the steps of a round; `None` if they are none.
fn unpack(columns: &[u8], placed: &Placed, round: &mut Vec<ScriptStep>) -> Option<()> {
    let count = placed.steps;
    let (times, rest) = columns.split_at(4 * count);
    let (pages, rest) = rest.split_at(4 * count);
    let (names, rest) = rest.split_at(4 * count);
    let (cpus, rest) = rest.split_at(2 * count);
    let (requests, rest) = rest.split_at(2 * count);
    let (orders, rest) = rest.split_at(count);
    let (roles, rest) = rest.split_at(count);
    let (marks, overlaps) = rest.split_at(count);
    let (times, pages) = (times.as_chunks::<4>().0, pages.as_chunks::<4>().0);
    let (names, cpus) = (names.as_chunks::<4>().0, cpus.as_chunks::<2>().0);
    let requests = requests.as_chunks::<2>().0;
    let firsts = times.iter().zip(pages).zip(names).zip(cpus).zip(requests);
    let lasts = orders.iter().zip(roles).zip(marks).zip(overlaps);
    for (first, last) in firsts.zip(lasts) {
        let ((((time, page), name), cpu), request) = first;
        let (((&order, &role), &marks), &overlaps) = last;
        round.push(ScriptStep {
            time: placed.begins + u64::from(u32::from_le_bytes(*time)),
            page: PageId(u32::from_le_bytes(*page)),
            name: NameId(u32::from_le_bytes(*name)),
            cpu: u16::from_le_bytes(*cpu),
            request: u16::from_le_bytes(*request),
            order: Order::try_new(order)?,
            role: *Role::ALL.get(usize::from(role))?,
            marks,
            overlaps_used: overlaps != 0,
        });
    }
    Some(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn step(place: usize, time: u64) -> ScriptStep {
        ScriptStep {
            time,
            page: PageId(place as u32 * 31),
            name: NameId(place as u32 % 7),
            cpu: (place % 3) as u16,
            request: u16::MAX - (place % 5) as u16,
            order: Order::new((place % 11) as u8),
            role: Role::ALL[place % 9],
            marks: (place % 32) as u8,
            overlaps_used: place % 2 == 1,
        }
    }

    impl Rounds<'_> {
        /// All steps that are left.
        pub(crate) fn all(mut self) -> Vec<ScriptStep> {
            let mut all = Vec::new();
            loop {
                let round = self.next().unwrap();
                if round.is_empty() {
                    return all;
                }
                assert!(round.len() <= ROUND);
                all.extend_from_slice(round);
            }
        }
    }

    fn collected(all: &[ScriptStep], most: usize) -> Steps {
        let mut collecting = Collecting::keeping(most);
        for &step in all {
            collecting.push(step).unwrap();
            let kept = collecting.steps.kept.len();
            assert!(kept <= most.max(ROUND), "{kept} steps in memory");
        }
        assert_eq!(collecting.len(), all.len());
        collecting.finish().unwrap()
    }

    #[test]
    fn steps_in_a_file_are_those_in_memory() {
        // A pause of an hour, and one that is just short enough, fall into rounds.
        let pauses = |place: usize| match place {
            30_000 => 3_600_000_000_000,
            60_000 => u64::from(u32::MAX),
            _ => 10,
        };
        let mut time = 0;
        let all: Vec<ScriptStep> = (0..150_000)
            .map(|place| {
                time += pauses(place);
                step(place, time)
            })
            .collect();
        let kept = collected(&all, usize::MAX);
        assert_eq!(kept.in_memory(), Some(&all[..]));
        assert_eq!(kept.rounds().all(), all);
        for most in [100, 40_000] {
            let spooled = collected(&all, most);
            assert_eq!((spooled.len(), spooled.in_memory()), (all.len(), None));
            assert!(spooled.kept.is_empty());
            assert!(spooled.rounds().all() == all, "{most}");
            // It can be read again, as by the next design.
            assert!(spooled.rounds().all() == all, "{most}");
        }
        let none = collected(&[], 100);
        assert!(none.rounds().all().is_empty());
        let exact = collected(&all[..100], 100);
        assert_eq!(exact.in_memory(), Some(&all[..100]));
    }
}
