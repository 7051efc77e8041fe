//! Who allocated most.

use std::collections::{HashMap, HashSet};

use crate::amount::Amount;
use crate::named::{Frame, Named};
use crate::text::Space;

/// What sites are told apart by, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Each line that allocates, with its caller, by what it allocated itself.
    Own,
    /// Each function, by what it and all that it calls allocated.
    Cumulative,
}

/// A place in a program that allocates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The function.
    pub function: String,
    /// Its file and line, if they are known and sites are told apart by them.
    pub place: Option<(String, u32)>,
    /// The function that called it, if sites are told apart by it.
    pub caller: Option<String>,
    /// What it allocated itself.
    pub own: Amount,
    /// What it and all that it calls allocated.
    pub cumulative: Amount,
}

/// Returns the sites of a profile, those with most bytes first. Costs time in proportion to all
/// stacks' lengths.
#[must_use]
pub fn sites(named: &Named, space: Space, order: Order) -> Vec<Site> {
    let mut amounts: HashMap<Key<'_>, [Amount; 2]> = HashMap::new();
    for stack in &named.stacks {
        let amount = stack.of_space(space);
        if amount.is_zero() {
            continue;
        }
        let frames = named.frames(stack);
        let mut seen = HashSet::new();
        for (depth, frame) in frames.iter().enumerate() {
            let key = match order {
                Order::Own => Key {
                    function: frame.function,
                    place: Some((frame.file, frame.line)),
                    caller: frames
                        .get(depth + 1)
                        .map(|caller: &Frame<'_>| caller.function),
                },
                Order::Cumulative => Key {
                    function: frame.function,
                    place: None,
                    caller: None,
                },
            };
            let [own, cumulative] = amounts.entry(key).or_default();
            if depth == 0 {
                *own += amount;
            }
            // One that calls itself counts once.
            if seen.insert(key) {
                *cumulative += amount;
            }
        }
    }
    let sites = amounts.into_iter().map(|(key, [own, cumulative])| Site {
        function: key.function.to_owned(),
        place: key
            .place
            .filter(|(file, _)| !file.is_empty())
            .map(|(file, line)| (file.to_owned(), line)),
        caller: key.caller.map(str::to_owned),
        own,
        cumulative,
    });
    let mut sites: Vec<Site> = match order {
        Order::Own => sites.filter(|site| !site.own.is_zero()).collect(),
        Order::Cumulative => sites.collect(),
    };
    let bytes = |site: &Site| match order {
        Order::Own => site.own.bytes,
        Order::Cumulative => site.cumulative.bytes,
    };
    let name = |site: &Site| {
        (
            site.function.clone(),
            site.place.clone(),
            site.caller.clone(),
        )
    };
    sites.sort_by(|a, b| {
        let larger = bytes(b).cmp(&bytes(a));
        larger.then_with(|| name(a).cmp(&name(b)))
    });
    sites
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'n> {
    function: &'n str,
    place: Option<(&'n str, u32)>,
    caller: Option<&'n str>,
}
