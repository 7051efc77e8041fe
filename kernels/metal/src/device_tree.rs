//! The flattened device tree (Devicetree Specification 0.4, chapter 5), as far as a kernel needs it
//! to boot: memory, reservations, CPUs, the clock, the command line. Every offset and length is
//! checked, since the firmware is another program. Uses only `core`, so that the host tests it.

use core::fmt;

use super::memory_map::{MemoryMap, TooMany};

/// The most CPUs that are noted.
pub const CPUS_MOST: usize = 64;

/// What a device tree tells.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'t> {
    /// Memory and reservations.
    pub map: MemoryMap,
    cpus: [usize; CPUS_MOST],
    cpu_count: usize,
    /// The ticks of the clock in a second, if told.
    pub ticks_per_second: Option<usize>,
    /// The kernel's command line.
    pub arguments: &'t [u8],
}

impl Tree<'_> {
    /// Returns what the hardware calls each CPU.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus[..self.cpu_count]
    }
}

/// Why a device tree cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It does not begin with the magic number.
    Magic(u32),
    /// An offset or a length reaches outside of it.
    Short,
    /// An unknown token.
    Token(u32),
    /// Nodes end that have not begun, or are nested too deep.
    Nesting,
    /// Too many ranges.
    TooMany(TooMany),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(found) => write!(f, "no device tree: it begins with {found:#x}"),
            Self::Short => f.write_str("the device tree is cut short"),
            Self::Token(token) => write!(f, "the device tree has an unknown token {token:#x}"),
            Self::Nesting => f.write_str("the nodes of the device tree do not nest"),
            Self::TooMany(why) => write!(f, "device tree: {why}"),
        }
    }
}

impl From<TooMany> for Malformed {
    fn from(why: TooMany) -> Self {
        Self::TooMany(why)
    }
}

/// The first word of a device tree.
pub const MAGIC: u32 = 0xd00d_feed;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;
const END: u32 = 9;

/// So deep nodes may nest.
const DEPTH: usize = 16;

fn word(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    let end = at.checked_add(4).ok_or(Malformed::Short)?;
    let word = bytes.get(at..end).ok_or(Malformed::Short)?;
    Ok(word.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
}

/// Returns a number of so many cells. Higher cells that a word has no room for are dropped.
fn cells(bytes: &[u8], at: usize, count: usize) -> Result<usize, Malformed> {
    let mut number = 0_usize;
    for cell in 0..count {
        number = number.checked_shl(32).unwrap_or(0) | word(bytes, at + 4 * cell)? as usize;
    }
    Ok(number)
}

/// Returns a text that ends with a zero.
fn text(bytes: &[u8], at: usize) -> Result<&[u8], Malformed> {
    let rest = bytes.get(at..).ok_or(Malformed::Short)?;
    let end = rest.iter().position(|&byte| byte == 0);
    end.map(|end| &rest[..end]).ok_or(Malformed::Short)
}

/// A node on the way from the root, with the widths of addresses and sizes in its children.
#[derive(Clone, Copy)]
struct Node<'t> {
    name: &'t [u8],
    address_cells: usize,
    size_cells: usize,
}

impl Node<'_> {
    const NONE: Self = Self {
        name: b"",
        address_cells: 2,
        size_cells: 1,
    };

    /// Returns true for `name` and for `name@` with an address.
    fn is(&self, name: &[u8]) -> bool {
        self.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'@')
    }
}

/// Reads a tree. `bytes` is all of it, by the size that it states.
pub fn read(bytes: &[u8]) -> Result<Tree<'_>, Malformed> {
    let magic = word(bytes, 0)?;
    if magic != MAGIC {
        return Err(Malformed::Magic(magic));
    }
    let mut tree = Tree {
        map: MemoryMap::new(),
        cpus: [0; CPUS_MOST],
        cpu_count: 0,
        ticks_per_second: None,
        arguments: b"",
    };
    let offset = |field: usize| word(bytes, 4 * field).map(|offset| offset as usize);
    let (structure, strings, mut reservation) = (offset(2)?, offset(3)?, offset(4)?);
    loop {
        let (from, size) = (
            cells(bytes, reservation, 2)?,
            cells(bytes, reservation + 8, 2)?,
        );
        if size == 0 {
            break;
        }
        tree.map.reserved.push(from, size)?;
        reservation += 16;
    }

    // `path[depth - 1]` is the node that is being read, and `path[0]` the root.
    let (mut path, mut depth, mut at) = ([Node::NONE; DEPTH], 0, structure);
    loop {
        let token = word(bytes, at)?;
        at += 4;
        match token {
            BEGIN_NODE => {
                let name = text(bytes, at)?;
                at += (name.len() + 4) & !3;
                *path.get_mut(depth).ok_or(Malformed::Nesting)? = Node { name, ..Node::NONE };
                depth += 1;
            }
            END_NODE => depth = depth.checked_sub(1).ok_or(Malformed::Nesting)?,
            PROPERTY => {
                let size = word(bytes, at)? as usize;
                let name = strings
                    .checked_add(word(bytes, at + 4)? as usize)
                    .ok_or(Malformed::Short)?;
                let (from, name) = (at + 8, text(bytes, name)?);
                let value = bytes.get(from..).and_then(|rest| rest.get(..size));
                let value = value.ok_or(Malformed::Short)?;
                at = (from + size).next_multiple_of(4);
                let path = path.get_mut(..depth).ok_or(Malformed::Nesting)?;
                property(&mut tree, path, name, value)?;
            }
            NOTHING => {}
            END => return Ok(tree),
            other => return Err(Malformed::Token(other)),
        }
    }
}

/// Notes a property of the last node of `path`.
fn property<'t>(
    tree: &mut Tree<'t>,
    path: &mut [Node<'t>],
    name: &[u8],
    value: &'t [u8],
) -> Result<(), Malformed> {
    let Some((node, above)) = path.split_last_mut() else {
        return Err(Malformed::Nesting);
    };
    match name {
        b"#address-cells" => node.address_cells = (word(value, 0)? as usize).min(4),
        b"#size-cells" => node.size_cells = (word(value, 0)? as usize).min(4),
        b"reg" => match above {
            [root] if node.is(b"memory") => {
                ranges(value, root, |from, size| tree.map.memory.push(from, size))?
            }
            [_, parent] if parent.is(b"reserved-memory") => ranges(value, parent, |from, size| {
                tree.map.reserved.push(from, size)
            })?,
            [_, parent] if parent.is(b"cpus") && node.is(b"cpu") => {
                let number = cells(value, 0, parent.address_cells)?;
                if let Some(place) = tree.cpus.get_mut(tree.cpu_count) {
                    *place = number;
                    tree.cpu_count += 1;
                }
            }
            _ => {}
        },
        b"timebase-frequency" => tree.ticks_per_second = Some(word(value, 0)? as usize),
        b"bootargs" if node.is(b"chosen") => tree.arguments = text(value, 0)?,
        _ => {}
    }
    Ok(())
}

/// Calls `each` for every address and size of a `reg` property of a child of `parent`.
fn ranges(
    value: &[u8],
    parent: &Node<'_>,
    mut each: impl FnMut(usize, usize) -> Result<(), TooMany>,
) -> Result<(), Malformed> {
    let width = 4 * (parent.address_cells + parent.size_cells);
    if width == 0 {
        return Ok(());
    }
    for at in (0..value.len() / width).map(|i| i * width) {
        let from = cells(value, at, parent.address_cells)?;
        let size = cells(value, at + 4 * parent.address_cells, parent.size_cells)?;
        each(from, size)?;
    }
    Ok(())
}
