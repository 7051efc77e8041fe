//! A mapped file: where its loaded parts are, and the names and lines of its code.
//!
//! Names come from debug information, which also knows functions that were inlined; else from the
//! symbol table. Debug information may be in a file of its own, as distributions have it, which is
//! found by the number of the build.

use core::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use addr2line::demangle_auto;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache, SymbolKind};

/// A function at an address, and the place in its source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Line {
    /// Its name for people.
    pub function: String,
    /// Its name for the linker.
    pub symbol: String,
    /// Its file; empty if it is not known.
    pub file: String,
    /// The line in that file; 0 if it is not known.
    pub line: u32,
}

/// A part of a file that is loaded.
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

/// A function of the symbol table.
struct Symbol {
    address: u64,
    size: u64,
    name: String,
}

/// An ELF file.
pub struct Binary {
    segments: Vec<Segment>,
    /// By address.
    symbols: Vec<Symbol>,
    lines: Option<Loader>,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binary").finish_non_exhaustive()
    }
}

impl Binary {
    /// Opens a file and reads its symbols.
    ///
    /// # Errors
    /// Those of the system, and `InvalidData` if it is no ELF file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut binary = Self {
            segments: Vec::new(),
            symbols: Vec::new(),
            lines: None,
        };
        let debug = binary.read(path, Part::Everything)?;
        let debug = debug.filter(|debug| debug.is_file());
        // What is beside a file serves as far as it can be read.
        if let Some(debug) = &debug {
            let _ = binary.read(debug, Part::Symbols);
        }
        binary.symbols.sort_by_key(|symbol| symbol.address);
        let of = debug.as_deref().unwrap_or(path);
        binary.lines = Loader::new(of).ok();
        Ok(binary)
    }

    /// Adds the symbols of a file, and its loaded parts if this is wanted. Returns where its debug
    /// information would be if that is a file of its own.
    fn read(&mut self, path: &Path, part: Part) -> io::Result<Option<PathBuf>> {
        let invalid = |why: object::Error| io::Error::new(io::ErrorKind::InvalidData, why);
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
        }
        let cache = ReadCache::new(file);
        let file = object::File::parse(&cache).map_err(invalid)?;
        if part == Part::Everything {
            let segments = file.segments().map(|segment| {
                let (offset, size) = segment.file_range();
                Segment {
                    offset,
                    size,
                    address: segment.address(),
                }
            });
            self.segments = segments.collect();
        }
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions = symbols.filter(|symbol| {
            symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0
        });
        self.symbols.extend(functions.filter_map(|symbol| {
            Some(Symbol {
                address: symbol.address(),
                size: symbol.size(),
                name: String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned(),
            })
        }));
        let build = file.build_id().map_err(invalid)?;
        Ok(build.and_then(debug_file))
    }

    /// Returns the address, as the file has it, of what is at this place of the file.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        segments.find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.size).then(|| segment.address.wrapping_add(within))
        })
    }

    /// Returns the functions at an address, as the file has it: one that was inlined stands before
    /// that which it was inlined into. None if nothing is known.
    #[must_use]
    pub fn lines_at(&self, address: u64) -> Vec<Line> {
        let mut lines = self.debug_lines(address).unwrap_or_default();
        let by_table = || {
            let symbol = self.symbol_at(address)?;
            let name = demangle_auto(symbol.into(), None).into_owned();
            Some((name, symbol.to_owned()))
        };
        if lines.is_empty() {
            lines.extend(by_table().map(|_| Line::default()));
        }
        for line in lines.iter_mut().filter(|line| line.function.is_empty()) {
            if let Some((function, symbol)) = by_table() {
                (line.function, line.symbol) = (function, symbol);
            }
        }
        lines.retain(|line| !line.function.is_empty());
        lines
    }

    fn debug_lines(&self, address: u64) -> Option<Vec<Line>> {
        let mut frames = self.lines.as_ref()?.find_frames(address).ok()?;
        let mut lines = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let mut line = Line::default();
            if let Some(function) = &frame.function {
                line.function = function.demangle().ok()?.into_owned();
                line.symbol = function.raw_name().ok()?.into_owned();
            }
            if let Some(place) = &frame.location {
                line.file = place.file.unwrap_or_default().to_owned();
                line.line = place.line.unwrap_or(0);
            }
            lines.push(line);
        }
        Some(lines)
    }

    /// Returns the name of the function that an address is in.
    fn symbol_at(&self, address: u64) -> Option<&str> {
        let behind = self.symbols.partition_point(|of| of.address <= address);
        let start = self.symbols[..behind].last()?.address;
        // Several names may begin at one address, and some have no size.
        let mut names = self.symbols[..behind].iter().rev();
        let mut names = names.by_ref().take_while(|symbol| symbol.address == start);
        let within = |symbol: &&Symbol| symbol.size == 0 || address - start < symbol.size;
        names.find(within).map(|symbol| symbol.name.as_str())
    }
}

/// What is read of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Everything,
    Symbols,
}

/// Returns where the debug information of a build is.
fn debug_file(build: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug");
    Some(PathBuf::from(name))
}
