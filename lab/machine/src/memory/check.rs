//! Tests of the invariants that the caches and the directory keep together.

use thiserror::Error;

use super::CacheSystem;

/// An invariant that does not hold: a bug of the caches or the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Incoherent {
    /// `owner-alone`.
    #[error("line {line} has an owner that is not its only holder")]
    OwnerNotAlone {
        /// The line.
        line: u32,
    },
    /// `listed`.
    #[error("line {line}: the directory and the second level of CPU {cpu} disagree")]
    NotListed {
        /// The line.
        line: u32,
        /// The CPU.
        cpu: usize,
    },
    /// `included`.
    #[error("line {line} is in the first level of CPU {cpu}, and not in the second")]
    NotIncluded {
        /// The line.
        line: u32,
        /// The CPU.
        cpu: usize,
    },
}

impl CacheSystem {
    /// Tests the invariants. For each CPU it looks at every tag and every line.
    ///
    /// # Errors
    ///
    /// The first violation found.
    pub fn check(&self) -> Result<(), Incoherent> {
        for (line, entry) in self.directory.entries() {
            if !entry.owner_is_alone() {
                return Err(Incoherent::OwnerNotAlone { line });
            }
            for (cpu, caches) in self.cpus.iter().enumerate() {
                if entry.holders().contains(cpu) != caches.l2.contains(line) {
                    return Err(Incoherent::NotListed { line, cpu });
                }
            }
        }
        for (cpu, caches) in self.cpus.iter().enumerate() {
            let mut lines = caches.l1.lines();
            if let Some(line) = lines.find(|&line| !caches.l2.contains(line)) {
                return Err(Incoherent::NotIncluded { line, cpu });
            }
        }
        Ok(())
    }
}
