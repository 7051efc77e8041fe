//! pprof's own format: a message of protocol buffers, compressed with gzip.
//!
//! It has the names of functions, so it is read without the program's files. Numbers are estimates
//! already, so a reader must not scale them again. What the fields are is described in pprof's
//! `proto/profile.proto`; their numbers stand here beside each use.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::allocators::ALLOCATORS;
use crate::message::Message;
use crate::named::{Location, Named, Stack};

/// Writes a profile for pprof, which shows the last kind of value unless it is told otherwise: the
/// bytes of live objects.
///
/// # Errors
/// Those of `out`.
pub fn pprof(named: &Named, out: &mut impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(profile(named).bytes())?;
    out.finish()?.flush()
}

/// Texts, each once; other fields name them by their place.
struct Texts<'n> {
    list: Vec<&'n str>,
    places: HashMap<&'n str, u64>,
}

impl<'n> Texts<'n> {
    /// The first is always the empty one.
    fn new() -> Self {
        Self {
            list: vec![""],
            places: HashMap::from([("", 0)]),
        }
    }

    fn place(&mut self, text: &'n str) -> u64 {
        *self.places.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u64 - 1
        })
    }
}

fn profile(named: &Named) -> Message {
    let mut texts = Texts::new();
    let mut profile = Message::default();
    let all: &[_] = &[("alloc_objects", "count"), ("alloc_space", "bytes")];
    let all = if named.has_all { all } else { &[] };
    let live = [("inuse_objects", "count"), ("inuse_space", "bytes")];
    for &(kind, unit) in all.iter().chain(&live) {
        profile.message(1, &value_type(&mut texts, kind, unit));
    }
    for stack in &named.stacks {
        profile.message(2, &sample(named, stack, &mut texts));
    }
    for (index, mapping) in named.mappings.iter().enumerate() {
        let mut message = Message::default();
        message.number(1, id(index));
        message.number(2, mapping.start);
        message.number(3, mapping.end);
        message.number(4, mapping.offset);
        message.number(5, texts.place(&mapping.path));
        // It has functions, files, lines and inlined functions, as far as they are known.
        for field in 7..=10 {
            message.number(field, 1);
        }
        profile.message(3, &message);
    }
    for (index, location) in named.locations.iter().enumerate() {
        profile.message(4, &place(index, location));
    }
    for (index, function) in named.functions.iter().enumerate() {
        let mut message = Message::default();
        message.number(1, id(index));
        message.number(2, texts.place(&function.name));
        message.number(3, texts.place(&function.symbol));
        message.number(4, texts.place(&function.file));
        profile.message(5, &message);
    }
    profile.number(7, texts.place(ALLOCATORS));
    profile.message(11, &value_type(&mut texts, "space", "bytes"));
    profile.number(12, named.period);
    for text in &texts.list {
        profile.text(6, text);
    }
    profile
}

/// Returns the number of a thing in a list; 0 means none.
const fn id(index: usize) -> u64 {
    index as u64 + 1
}

fn value_type<'n>(texts: &mut Texts<'n>, kind: &'n str, unit: &'n str) -> Message {
    let mut message = Message::default();
    message.number(1, texts.place(kind));
    message.number(2, texts.place(unit));
    message
}

fn sample(named: &Named, stack: &Stack, texts: &mut Texts<'_>) -> Message {
    let mut message = Message::default();
    message.numbers(1, stack.locations.iter().map(|&index| id(index)));
    let most = i64::MAX as u64;
    let all = named.has_all.then_some(stack.all);
    let amounts = all.into_iter().chain([stack.live]);
    let values = amounts.flat_map(|amount| [amount.objects.min(most), amount.bytes.min(most)]);
    message.numbers(2, values);
    let mut label = Message::default();
    label.number(1, texts.place("bytes"));
    label.number(3, stack.size);
    message.message(3, &label);
    message
}

fn place(index: usize, location: &Location) -> Message {
    let mut message = Message::default();
    message.number(1, id(index));
    message.number(2, location.mapping.map_or(0, id));
    message.number(3, location.address);
    for &(function, line) in &location.lines {
        let mut of = Message::default();
        of.number(1, id(function));
        of.number(2, u64::from(line));
        message.message(4, &of);
    }
    message
}
