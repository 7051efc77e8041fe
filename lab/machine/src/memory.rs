//! What an access costs: each CPU's two caches, the nodes' last levels, and the directory that
//! keeps them coherent (MESI).
//!
//! An access is judged as a whole when it is made. What lies in the CPU's own caches, and is owned
//! where it is written, costs what that cache costs. All else goes to the line's home, the
//! directory:
//!
//! | found | a read | a write |
//! |---|---|---|
//! | own caches, shared | hit | upgrade: all others give it up |
//! | owned by another CPU | transfer; then both share it | transfer; the other gives it up |
//! | shared by others | last level or memory | the same, or an upgrade where that takes longer; the others give it up |
//! | nobody has it | last level or memory; the reader owns it | the same |
//!
//! Requests for one line follow each other. One that changes the owner makes the line busy until it
//! is done, a read among sharers for a moment only ([`Profile::occupancy_cycles`]); who comes
//! meanwhile waits its turn. Hits never wait.
//!
//! Taking a line away clears the other CPU's tags at once. That takes one step for each of them,
//! but each had to fetch the line before, so all in all an access stays O(1), and a hit for reading
//! looks at its own tags alone.
//!
//! The last level lies before its node's memory and is filled by whatever comes to that home. A
//! line that it loses stays in the private caches.
//!
//! A line changes hands for each access that asks for it. A real core that adds to a contended word
//! again and again gets several additions in before it lets go, so such a storm is dearer here than
//! it would be; taking turns is not. `tests/real_lines.rs` measures both.
//!
//! - Invariant `listed`: a line lies in a CPU's second level exactly if the directory lists the
//!   CPU.
//! - Invariant `included`: what lies in the first level lies in the second.
//!
//! [`Memory::check`] tests them, and `owner-alone` of the directory.

use core::ops::{AddAssign, Sub};

use thiserror::Error;

use crate::cache::Cache;
use crate::directory::{CpuSet, Entry, MOST_CPUS};
use crate::{AccessKind, Dice, Profile};

/// Defines counts that add up, and of which an earlier state can be taken off.
macro_rules! counts {
    ($(#[$about:meta])+ pub struct $counts:ident { $($(#[$count_is:meta])+ $count:ident,)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $counts {
            $($(#[$count_is])+ pub $count: u64,)+
        }

        impl AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$count += other.$count;)+
            }
        }

        impl Sub for $counts {
            type Output = Self;

            fn sub(self, before: Self) -> Self {
                Self { $($count: self.$count - before.$count,)+ }
            }
        }
    };
}

counts! {
    /// What a CPU asked of the memory, and what came of it.
    ///
    /// Each access is counted once: `accesses` is the sum of `l1_hits`, `l2_hits`, `upgrades`,
    /// `llc_hits`, `memory` and `transfers`.
    pub struct Traffic {
        /// Accesses in all.
        accesses,
        /// Found in the first level.
        l1_hits,
        /// Found in the second level.
        l2_hits,
        /// Found in the own caches, but shared, and made the CPU's own for a write.
        upgrades,
        /// Fetched from a last level.
        llc_hits,
        /// Fetched from memory.
        memory,
        /// Fetched from another CPU, who owned it.
        transfers,
        /// Lines of this CPU that others took away.
        invalidated,
        /// Cycles waited for lines that others were busy with.
        waited_cycles,
    }
}

impl Traffic {
    /// Lines that were moved to this CPU.
    #[must_use]
    pub const fn moved(&self) -> u64 {
        self.llc_hits + self.memory + self.transfers
    }
}

/// An invariant that does not hold: a bug in this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Incoherent {
    /// `owner-alone`.
    #[error("line {line} has an owner who is not its only holder")]
    OwnerNotAlone {
        /// The line.
        line: u32,
    },
    /// `listed`.
    #[error("line {line}: the directory and the second level of CPU {cpu} do not agree")]
    NotListed {
        /// The line.
        line: u32,
        /// The CPU.
        cpu: usize,
    },
    /// `included`.
    #[error("line {line} lies in the first level of CPU {cpu}, and not in the second")]
    NotIncluded {
        /// The line.
        line: u32,
        /// The CPU.
        cpu: usize,
    },
}

#[derive(Debug, Clone)]
struct Cpu {
    l1: Cache,
    l2: Cache,
    node: usize,
    traffic: Traffic,
}

/// The memory of a machine as its CPUs see it: what each access costs. Holds no contents.
///
/// ```
/// use brickyard_machine::{AccessKind, Memory, Profile};
///
/// let mut memory = Memory::new(Profile::by_name("xeon-x5355")?, 2, 1);
/// memory.grow(1);
/// let first = memory.access(0, 0, AccessKind::Store, 0);
/// assert!(first >= 293); // from memory
/// assert_eq!(memory.access(0, 0, AccessKind::Store, first), 0); // its own
/// assert!(memory.access(1, 0, AccessKind::Load, first) >= 257); // from CPU 0
/// assert!(memory.holds(0, 0) && memory.holds(1, 0));
/// # Ok::<(), brickyard_machine::UnknownProfile>(())
/// ```
#[derive(Debug, Clone)]
pub struct Memory {
    profile: Profile,
    cpus: Vec<Cpu>,
    directory: Vec<Entry>,
    /// A last level a node, or none at all.
    llcs: Vec<Cache>,
    /// The CPUs of each node.
    nodes: Vec<CpuSet>,
    /// Lines of a 4 KiB page, which are at home on one node.
    page_lines: u32,
    dice: Dice,
}

impl Memory {
    /// Empty caches for `cpus` CPUs of that profile, and no lines yet. The seed decides the
    /// perturbation of misses.
    ///
    /// Takes memory for the tags of all caches, 4 bytes each: up to 64 MB with `metatm-2007` and
    /// 256 CPUs, which a host gives as it is used.
    ///
    /// # Panics
    ///
    /// Where `cpus` is 0 or more than [`MOST_CPUS`].
    #[must_use]
    pub fn new(profile: &Profile, cpus: usize, seed: u64) -> Self {
        assert!(
            (1..=MOST_CPUS).contains(&cpus),
            "a machine has 1 to {MOST_CPUS} CPUs, not {cpus}"
        );
        let mut nodes = vec![CpuSet::default(); profile.nodes.max(1)];
        let cpu = |number| {
            let node = profile.node_of(number, cpus);
            nodes[node].insert(number);
            Cpu {
                l1: Cache::new(profile.l1),
                l2: Cache::new(profile.l2),
                node,
                traffic: Traffic::default(),
            }
        };
        let cpus = (0..cpus).map(cpu).collect();
        let llc = |_| profile.llc.map(Cache::new);
        let llcs = (0..nodes.len()).filter_map(llc).collect();
        Self {
            profile: profile.clone(),
            cpus,
            directory: Vec::new(),
            llcs,
            nodes,
            page_lines: (4096 / profile.line_bytes.clamp(1, 4096)) as u32,
            dice: Dice::new(seed),
        }
    }

    /// There are lines 0 to `lines` from now on, at the least. New ones lie in no cache.
    pub fn grow(&mut self, lines: usize) {
        let lines = lines.max(self.directory.len());
        self.directory.resize(lines, Entry::UNUSED);
    }

    /// CPU `cpu` accesses `line`, from `now` on. Gives the cycles until it is done, waiting
    /// included; 0 for a hit in the first level where that costs nothing.
    ///
    /// Calls come in the order of `now`, of all CPUs together. O(1).
    ///
    /// # Panics
    ///
    /// Where there is no such CPU or line.
    #[inline]
    pub fn access(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        let asking = &mut self.cpus[cpu];
        asking.traffic.accesses += 1;
        if !asking.l1.touch(line) {
            return self.beyond_l1(cpu, line, kind, now);
        }
        if kind != AccessKind::Load && !self.directory[line as usize].is_owner(cpu) {
            return self.upgrade(cpu, line, kind, now);
        }
        asking.traffic.l1_hits += 1;
        self.profile.l1.cycles + self.beyond_plain(kind)
    }

    /// Is the line in that CPU's private caches? Not where there is no such line.
    ///
    /// # Panics
    ///
    /// Where there is no such CPU.
    #[must_use]
    pub fn holds(&self, cpu: usize, line: u32) -> bool {
        self.cpus[cpu].l2.contains(line)
    }

    /// Would this access be a hit in the CPU's own caches, of a line that it owns where it writes?
    /// Then it costs the same whenever it is made.
    ///
    /// # Panics
    ///
    /// Where there is no such CPU or line.
    #[inline]
    #[must_use]
    pub fn would_hit(&self, cpu: usize, line: u32, kind: AccessKind) -> bool {
        let entry = &self.directory[line as usize];
        match kind {
            AccessKind::Load => entry.holders().contains(cpu),
            AccessKind::Store | AccessKind::Exchange => entry.is_owner(cpu),
        }
    }

    /// What that CPU asked so far.
    ///
    /// # Panics
    ///
    /// Where there is no such CPU.
    #[must_use]
    pub fn traffic(&self, cpu: usize) -> Traffic {
        self.cpus[cpu].traffic
    }

    /// Tests the invariants. Takes a look at every tag and every line for each CPU.
    ///
    /// # Errors
    ///
    /// The first that does not hold.
    pub fn check(&self) -> Result<(), Incoherent> {
        for (line, entry) in (0_u32..).zip(&self.directory) {
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

    fn beyond_l1(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        let asking = &mut self.cpus[cpu];
        if !asking.l2.touch(line) {
            return self.miss(cpu, line, kind, now);
        }
        // What falls out here still lies in the second level.
        asking.l1.insert(line);
        if kind != AccessKind::Load && !self.directory[line as usize].is_owner(cpu) {
            return self.upgrade(cpu, line, kind, now);
        }
        asking.traffic.l2_hits += 1;
        self.profile.l2.cycles + self.beyond_plain(kind)
    }

    /// A write to a line that lies here, shared.
    fn upgrade(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        let entry = self.directory[line as usize];
        let begins = entry.busy_until.max(now);
        let traffic = &mut self.cpus[cpu].traffic;
        traffic.upgrades += 1;
        traffic.waited_cycles += begins - now;

        let (home, node) = (self.home(line), self.cpus[cpu].node);
        let away = home != node || entry.holders().any_outside(&self.nodes[node]);
        let done = begins + self.profile.upgrade_cycles + self.way(away) + self.beyond_plain(kind);
        self.own(cpu, line, done);
        done - now
    }

    /// The line does not lie here: it is fetched from where it is.
    fn miss(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        let entry = self.directory[line as usize];
        let begins = entry.busy_until.max(now);
        self.cpus[cpu].traffic.waited_cycles += begins - now;

        let delay = self.dice.below(self.profile.perturbation.saturating_add(1));
        let fetched = match entry.owner() {
            Some(owner) => self.fetch_from_owner(cpu, owner, line),
            None => self.fetch_from_home(cpu, line, kind, entry.holders()),
        };
        let done = begins + fetched + delay + self.beyond_plain(kind);

        if kind != AccessKind::Load || entry.holders().is_empty() {
            self.own(cpu, line, done);
        } else {
            let moment = match entry.owner() {
                Some(_) => done,
                None => begins + self.profile.occupancy_cycles,
            };
            let entry = &mut self.directory[line as usize];
            entry.share(cpu);
            entry.busy_until = moment;
        }
        self.fill(cpu, line);
        done - now
    }

    /// Cycles of a fetch from the CPU that owns the line.
    fn fetch_from_owner(&mut self, cpu: usize, owner: usize, line: u32) -> u64 {
        let (home, node) = (self.home(line), self.cpus[cpu].node);
        self.look_up(home, line);
        self.cpus[cpu].traffic.transfers += 1;
        let away = home != node || self.cpus[owner].node != node;
        self.profile.transfer_cycles + self.way(away)
    }

    /// Cycles of a fetch from the home's last level or memory, of a line that nobody owns; for a
    /// write its holders give it up meanwhile.
    fn fetch_from_home(&mut self, cpu: usize, line: u32, kind: AccessKind, holders: CpuSet) -> u64 {
        let (home, node) = (self.home(line), self.cpus[cpu].node);
        let found = self.look_up(home, line);
        let traffic = &mut self.cpus[cpu].traffic;
        let fetched = match found {
            Some(cycles) => {
                traffic.llc_hits += 1;
                cycles
            }
            None => {
                traffic.memory += 1;
                self.profile.memory_cycles
            }
        };
        if kind == AccessKind::Load || holders.is_empty() {
            return fetched + self.way(home != node);
        }
        let away = home != node || holders.any_outside(&self.nodes[node]);
        fetched.max(self.profile.upgrade_cycles) + self.way(away)
    }

    /// Cycles of a hit in the last level of that node. After a miss the line lies there as well.
    fn look_up(&mut self, home: usize, line: u32) -> Option<u64> {
        let llc = self.llcs.get_mut(home)?;
        if llc.touch(line) {
            return self.profile.llc.map(|shape| shape.cycles);
        }
        llc.insert(line);
        None
    }

    /// The line is this CPU's alone, and busy until that is done.
    fn own(&mut self, cpu: usize, line: u32, done: u64) {
        let entry = &mut self.directory[line as usize];
        entry.busy_until = done;
        for other in entry.own(cpu).iter() {
            let other = &mut self.cpus[other];
            other.l2.remove(line);
            other.l1.remove(line);
            other.traffic.invalidated += 1;
        }
    }

    /// A line that came goes into both caches, and what must leave the second level leaves the
    /// first and the directory too.
    fn fill(&mut self, cpu: usize, line: u32) {
        let caches = &mut self.cpus[cpu];
        if let Some(victim) = caches.l2.insert(line) {
            caches.l1.remove(victim);
            self.directory[victim as usize].forget(cpu);
        }
        caches.l1.insert(line);
    }

    /// The node whose memory holds the line.
    fn home(&self, line: u32) -> usize {
        match self.nodes.len() {
            1 => 0,
            nodes => (line / self.page_lines) as usize % nodes,
        }
    }

    /// What a request takes longer that leaves its node.
    fn way(&self, away: bool) -> u64 {
        if away { self.profile.remote_cycles } else { 0 }
    }

    /// What an access of this kind takes beyond a plain one.
    #[inline]
    fn beyond_plain(&self, kind: AccessKind) -> u64 {
        match kind {
            AccessKind::Load | AccessKind::Store => 0,
            AccessKind::Exchange => self.profile.atomic_cycles,
        }
    }
}
