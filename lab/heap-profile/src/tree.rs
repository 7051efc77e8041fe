//! All stacks of a profile as one tree, from the root on.

use std::collections::HashMap;

use crate::amount::Amount;
use crate::named::Named;

/// A function on the stacks that begin with the same functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node<'n> {
    /// Its name.
    pub function: &'n str,
    /// The number of functions above it.
    pub depth: usize,
    /// What it and all that it calls there allocated: live objects.
    pub live: Amount,
    /// The same, all objects.
    pub all: Amount,
}

/// The tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree<'n> {
    /// The nodes: each before those that it called, which are ordered by name.
    pub nodes: Vec<Node<'n>>,
}

impl<'n> Tree<'n> {
    /// Makes the tree of a profile. Its memory and time are in proportion to all stacks' lengths.
    #[must_use]
    pub fn of(named: &'n Named) -> Self {
        let mut nodes: Vec<Node<'n>> = Vec::new();
        let mut called: Vec<Vec<usize>> = Vec::new();
        let mut roots: Vec<usize> = Vec::new();
        let mut places: HashMap<(Option<usize>, &'n str), usize> = HashMap::new();
        for stack in &named.stacks {
            let mut above = None;
            for (depth, frame) in named.frames(stack).iter().rev().enumerate() {
                let place = (above, frame.function);
                let at = *places.entry(place).or_insert_with(|| {
                    nodes.push(Node {
                        function: frame.function,
                        depth,
                        live: Amount::default(),
                        all: Amount::default(),
                    });
                    called.push(Vec::new());
                    let new = nodes.len() - 1;
                    above
                        .map_or(&mut roots, |above| &mut called[above])
                        .push(new);
                    new
                });
                nodes[at].live += stack.live;
                nodes[at].all += stack.all;
                above = Some(at);
            }
        }
        let by_name = |list: &mut Vec<usize>| {
            list.sort_by_key(|&at| core::cmp::Reverse(nodes[at].function));
        };
        called.iter_mut().for_each(by_name);
        by_name(&mut roots);
        // The stack of what is still to be put in order: the next is its last.
        let mut ordered = Vec::with_capacity(nodes.len());
        while let Some(at) = roots.pop() {
            ordered.push(nodes[at].clone());
            roots.append(&mut called[at]);
        }
        Self { nodes: ordered }
    }
}
