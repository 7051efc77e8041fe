//! A profile whose addresses have names, and whose samples are scaled to estimates.

use std::collections::HashMap;
use std::path::Path;

use crate::allocators::Allocators;
use crate::amount::Amount;
use crate::binary::{Binary, Line};
use crate::mapping::Mapping;
use crate::text::{Profile, Sample, Space};

/// A profile with names.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// The mean number of bytes from one sample to the next.
    pub period: u64,
    /// The call stacks in the profile's order.
    pub stacks: Vec<Stack>,
    /// What could not be named, and why.
    pub notes: Vec<String>,
    /// True if all objects that there ever were are known too.
    pub has_all: bool,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) functions: Vec<Function>,
    pub(crate) locations: Vec<Location>,
}

/// A call stack, with estimates of what it allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Objects that are live.
    pub live: Amount,
    /// All objects, live or not.
    pub all: Amount,
    /// The mean size of the objects that were sampled.
    pub(crate) size: u64,
    /// The indices of its locations, the leaf's first.
    pub(crate) locations: Vec<usize>,
}

/// A function; one for each file that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) symbol: String,
    pub(crate) file: String,
    pub(crate) is_allocator: bool,
}

/// An address in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: u64,
    pub(crate) mapping: Option<usize>,
    /// The functions there, by index, with the lines; one that was inlined stands before that which
    /// it was inlined into.
    pub(crate) lines: Vec<(usize, u32)>,
}

/// A function on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame<'n> {
    /// Its name.
    pub function: &'n str,
    /// Its source file; empty if it is not known.
    pub file: &'n str,
    /// The line of the call; 0 if it is not known.
    pub line: u32,
}

impl Stack {
    fn of(sample: &Sample, period: u64, locations: Vec<usize>) -> Self {
        let sampled = match sample.live.objects {
            0 => sample.all,
            _ => sample.live,
        };
        Self {
            live: sample.live.estimate(period),
            all: sample.all.estimate(period),
            size: sampled.bytes / sampled.objects.max(1),
            locations,
        }
    }

    /// Returns the estimate of this space.
    #[must_use]
    pub const fn of_space(&self, space: Space) -> Amount {
        match space {
            Space::Live => self.live,
            Space::All => self.all,
        }
    }
}

impl Named {
    /// Names the addresses of a profile. Reads the files that were mapped, as they are now; what
    /// has no name there is called by its file and place, and `notes` says why.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut naming = Naming::default();
        let stacks = profile.samples.iter().map(|sample| {
            let addresses = sample.stack.iter();
            let locations = addresses.map(|&address| naming.location(profile, address));
            let locations = locations.collect();
            Stack::of(sample, profile.period, locations)
        });
        let stacks = stacks.collect();
        let mut named = Self {
            period: profile.period,
            stacks,
            notes: naming.notes,
            has_all: profile.has_all(),
            mappings: profile.mappings.clone(),
            functions: naming.functions,
            locations: naming.locations,
        };
        match profile.odd_mappings {
            None => named.notes.push(
                "no section MAPPED_LIBRARIES: addresses have no names; was the file cut short?"
                    .to_owned(),
            ),
            Some(0) => {}
            Some(odd) => named.notes.push(format!(
                "lines of MAPPED_LIBRARIES that are no mappings: {odd}"
            )),
        }
        named
    }

    /// Returns the functions of a stack, the leaf's first, without those of allocators.
    #[must_use]
    pub fn frames(&self, stack: &Stack) -> Vec<Frame<'_>> {
        let lines = stack.locations.iter().map(|&at| &self.locations[at].lines);
        let lines: Vec<(usize, u32)> = lines.flatten().copied().collect();
        let is_allocator = |&(function, _): &(usize, u32)| self.functions[function].is_allocator;
        // From the root on, behind the first function that is none of an allocator.
        let user = lines.iter().rposition(|line| !is_allocator(line));
        let cut = lines[..user.unwrap_or(0)].iter().rposition(is_allocator);
        let from = cut.map_or(0, |cut| cut + 1);
        let frames = lines[from..].iter().map(|&(function, line)| {
            let function = &self.functions[function];
            Frame {
                function: &function.name,
                file: &function.file,
                line,
            }
        });
        frames.collect()
    }

    /// Returns all that the profile has of this space.
    #[must_use]
    pub fn total(&self, space: Space) -> Amount {
        self.stacks.iter().map(|stack| stack.of_space(space)).sum()
    }

    /// Returns the files that were mapped.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let paths = self.mappings.iter().map(|mapping| mapping.path.as_str());
        paths.filter(|path| path.starts_with('/')).map(Path::new)
    }
}

/// What is known while addresses are named.
#[derive(Default)]
struct Naming {
    binaries: HashMap<String, Option<Binary>>,
    functions: Vec<Function>,
    by_name: HashMap<(String, String, String), usize>,
    locations: Vec<Location>,
    by_address: HashMap<u64, usize>,
    allocators: Option<Allocators>,
    notes: Vec<String>,
}

impl Naming {
    /// Returns the index of the location of a call that returns to this address.
    fn location(&mut self, profile: &Profile, returns_to: u64) -> usize {
        // The call ends before it, and may be the last of its line or function.
        let address = returns_to.saturating_sub(1);
        if let Some(&known) = self.by_address.get(&address) {
            return known;
        }
        let mapping = profile.mapping_of(address);
        let lines = match mapping {
            Some(index) => self.lines(&profile.mappings[index], address),
            None => vec![unnamed(format!("{address:#x}"))],
        };
        let lines = lines
            .into_iter()
            .map(|line| (line.line, self.function(line)));
        let lines: Vec<(u32, usize)> = lines.collect();
        self.locations.push(Location {
            address,
            mapping,
            lines: lines.into_iter().map(|(line, of)| (of, line)).collect(),
        });
        let index = self.locations.len() - 1;
        let _ = self.by_address.insert(address, index);
        index
    }

    fn lines(&mut self, mapping: &Mapping, address: u64) -> Vec<Line> {
        let offset = (address - mapping.start).wrapping_add(mapping.offset);
        let Some(binary) = self.binary(&mapping.path) else {
            return vec![unnamed(format!("{}+{offset:#x}", mapping.name()))];
        };
        let inside = binary.address_of(offset);
        let lines = inside.map(|inside| binary.lines_at(inside));
        match lines {
            Some(lines) if !lines.is_empty() => lines,
            _ => {
                let place = inside.unwrap_or(offset);
                vec![unnamed(format!("{}+{place:#x}", mapping.name()))]
            }
        }
    }

    fn binary(&mut self, path: &str) -> Option<&Binary> {
        if !self.binaries.contains_key(path) {
            let opened = match path.starts_with('/') {
                true => Some(Binary::open(Path::new(path))),
                // Memory without a file, or the kernel's own, such as [vdso].
                false => None,
            };
            let opened = opened.and_then(|opened| {
                let failed = |why: &std::io::Error| {
                    self.notes.push(format!("no names of {path}: {why}"));
                };
                opened.inspect_err(failed).ok()
            });
            let _ = self.binaries.insert(path.to_owned(), opened);
        }
        self.binaries[path].as_ref()
    }

    /// Returns the index of a function.
    fn function(&mut self, line: Line) -> usize {
        let key = (line.function, line.symbol, line.file);
        if let Some(&known) = self.by_name.get(&key) {
            return known;
        }
        let (name, symbol, file) = key.clone();
        let allocators = self.allocators.get_or_insert_with(Allocators::new);
        self.functions.push(Function {
            is_allocator: allocators.has(&name),
            name,
            symbol,
            file,
        });
        let index = self.functions.len() - 1;
        let _ = self.by_name.insert(key, index);
        index
    }
}

fn unnamed(place: String) -> Line {
    Line {
        symbol: place.clone(),
        function: place,
        ..Line::default()
    }
}
