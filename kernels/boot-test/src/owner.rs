//! Who owns a block: everything that a report needs to say of it, in one word.

use core::fmt;

use brickyard::Order;

/// What kind of code owns a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A task.
    Task,
    /// An interrupt, or whoever it hands the block on to.
    Interrupt,
    /// A change of ranges: the frames are removed, reserved or taken as a whole.
    Range,
    /// The embedder's own use, such as the pages of slabs.
    Embedder,
}

impl By {
    const ALL: [Self; 4] = [Self::Task, Self::Interrupt, Self::Range, Self::Embedder];
}

/// The owner of a block: a number of its own, its order, and who asked for it on which CPU. Never 0
/// as a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Owner(u64);

// From the lowest bit: 32 of the number, 5 of the order, 3 of the kind, 10 of the CPU, 14 of the
// task. What does not fit is cut: it is for reports.
const ORDER: u32 = 32;
const BY: u32 = 37;
const CPU: u32 = 40;
const TASK: u32 = 50;

impl Owner {
    /// Returns the owner of a block of this order. `number` tells it from all others.
    #[must_use]
    pub const fn new(number: u32, order: Order, by: By, cpu: usize, task: u16) -> Self {
        let number = if number == 0 { 1 } else { number };
        Self(
            number as u64
                | (order.get() as u64) << ORDER
                | (by as u64) << BY
                | (cpu as u64 & 0x3ff) << CPU
                | (task as u64 & 0x3fff) << TASK,
        )
    }

    /// Returns the owner that a word says, or `None` for 0.
    pub(crate) const fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => None,
            word => Some(Self(word)),
        }
    }

    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    const fn field(self, at: u32, bits: u32) -> u64 {
        self.0 >> at & ((1 << bits) - 1)
    }

    /// Returns the order of the block that was handed out.
    #[must_use]
    pub const fn order(self) -> Order {
        match Order::try_new(self.field(ORDER, 5) as u8) {
            Some(order) => order,
            None => Order::MAX,
        }
    }

    /// Returns what kind of code owns it.
    #[must_use]
    pub const fn by(self) -> By {
        By::ALL[self.field(BY, 2) as usize]
    }

    /// Returns the CPU that it was requested on.
    #[must_use]
    pub const fn cpu(self) -> usize {
        self.field(CPU, 10) as usize
    }

    /// Returns the task that requested it.
    #[must_use]
    pub const fn task(self) -> u16 {
        self.field(TASK, 14) as u16
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by() {
            By::Task => write!(f, "task {} on CPU {}", self.task(), self.cpu())?,
            By::Interrupt => write!(f, "an interrupt on CPU {}", self.cpu())?,
            By::Range => write!(f, "a change of ranges on CPU {}", self.cpu())?,
            By::Embedder => write!(f, "the embedder on CPU {}", self.cpu())?,
        }
        write!(f, " (order {}, number {:#x})", self.order(), self.0 as u32)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_word_says_all_of_it() {
        let owner = Owner::new(0, Order::new(10), By::Interrupt, 511, 9000);
        assert_ne!(owner.word(), 0);
        assert_eq!(Owner::from_word(owner.word()), Some(owner));
        assert_eq!(owner.order(), Order::new(10));
        assert_eq!(
            (owner.by(), owner.cpu(), owner.task()),
            (By::Interrupt, 511, 9000)
        );
        assert_eq!(
            owner.to_string(),
            "an interrupt on CPU 511 (order 10, number 0x1)"
        );
    }
}
