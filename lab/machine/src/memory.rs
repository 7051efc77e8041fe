//! What an access costs: each CPU's two caches, the nodes' last levels, and the directory that
//! keeps them coherent (MESI).
//!
//! The cost of an access is determined in one step, when it is made. A read of a line in the CPU's
//! own caches, or a write to one that the CPU owns, costs that cache's latency. Every other access
//! goes to the directory at the line's home node:
//!
//! | found | a read | a write |
//! |---|---|---|
//! | own caches, shared | hit | upgrade: all other copies are invalidated |
//! | owned by another CPU | transfer; then both share it | transfer; the other copy is invalidated |
//! | shared by others | last level or memory | the same, or an upgrade where that takes longer; the other copies are invalidated |
//! | in no private cache | last level or memory; the reader owns it | the same |
//!
//! Requests for one line are served one after the other. One that changes the owner makes the line
//! busy until it is done, a read of a line without an owner only for a moment
//! ([`Profile::occupancy_cycles`]); a request that comes meanwhile waits. Hits never wait.
//!
//! An invalidation clears the other CPUs' tags at once. That takes one step for each of them, but
//! each had to fetch the line before, so an access is amortized O(1), and a read hit looks only at
//! its own tags.
//!
//! With a [`Footprint`] computing displaces lines from a CPU's caches, which is found
//! at the next access to the line.
//!
//! The last level is in front of its node's memory and is filled by every fetch that comes to that
//! home. It is not inclusive: a line that it evicts stays in the private caches.
//!
//! Every access to a contended line moves the line. A real core that adds to a contended word
//! again and again completes several additions before it loses the line, so such a storm is more
//! expensive here than on hardware; taking turns is not. `tests/real_lines.rs` measures both.
//!
//! - Invariant `listed`: a line is in a CPU's second level exactly if the directory lists the CPU.
//! - Invariant `included`: what is in the first level is in the second.
//!
//! [`CacheSystem::check`] tests them, and `owner-alone` of the directory.

mod check;
mod traffic;

use core::ops::Range;

use crate::cache::Cache;
use crate::directory::{CpuSet, Directory, MOST_CPUS};
use crate::footprint::{Displacement, Footprint, Kept};
use brickyard_run::Dice;

use crate::{AccessKind, Profile};

pub use check::Incoherent;
pub use traffic::Traffic;

#[derive(Debug, Clone)]
struct Cpu {
    l1: Cache,
    l2: Cache,
    node: usize,
    traffic: Traffic,
}

/// The caches and memory of a machine: what each access costs. Holds no contents.
///
/// ```
/// use brickyard_machine::{AccessKind, CacheSystem, Profile};
///
/// let mut memory = CacheSystem::new(Profile::by_name("xeon-x5355")?, 2, 1);
/// memory.grow(1);
/// let first = memory.access(0, 0, AccessKind::Store, 0);
/// assert!(first >= 293); // from memory
/// assert_eq!(memory.access(0, 0, AccessKind::Store, first), 0); // owned, a hit
/// assert!(memory.access(1, 0, AccessKind::Load, first) >= 257); // from CPU 0
/// assert!(memory.holds(0, 0) && memory.holds(1, 0));
/// # Ok::<(), brickyard_machine::UnknownProfile>(())
/// ```
#[derive(Debug, Clone)]
pub struct CacheSystem {
    profile: Profile,
    cpus: Vec<Cpu>,
    directory: Directory,
    /// A last level per node, or none at all.
    llcs: Vec<Cache>,
    /// The CPUs of each node.
    nodes: Vec<CpuSet>,
    /// What computing displaces, per CPU; empty where it displaces nothing.
    displacement: Vec<Displacement>,
    /// Lines per 4 KiB page, all of which have the same home node.
    page_lines: u32,
    dice: Dice,
}

impl CacheSystem {
    /// Empty caches for `cpus` CPUs of that profile, and no lines yet. The seed determines the
    /// perturbation of misses.
    ///
    /// Takes memory for the tags of all caches, 4 bytes each: up to 64 MB with `metatm-2007` and
    /// 256 CPUs, which the host backs as it is used.
    ///
    /// # Panics
    ///
    /// If `cpus` is 0 or more than [`MOST_CPUS`].
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
            directory: Directory::default(),
            llcs,
            nodes,
            displacement: Vec::new(),
            page_lines: (4096 / profile.line_bytes.clamp(1, 4096)) as u32,
            dice: Dice::new(seed),
        }
    }

    /// Makes computing displace lines from the caches by this footprint.
    #[must_use]
    pub fn with_footprint(mut self, footprint: Footprint) -> Self {
        let mut displacement = Displacement::new(footprint);
        displacement.grow(self.directory.lines());
        self.displacement = vec![displacement; self.cpus.len()];
        self
    }

    /// Computes for so many instructions on that CPU, which displaces lines from its caches if
    /// there is a [footprint](Self::with_footprint).
    #[inline]
    pub fn compute(&mut self, cpu: usize, instructions: u64) {
        if let Some(displacement) = self.displacement.get_mut(cpu) {
            displacement.compute(instructions);
        }
    }

    /// Grows the memory to at least `lines` lines, numbered from 0. New ones are in no cache.
    pub fn grow(&mut self, lines: usize) {
        self.directory.grow(lines);
        for displacement in &mut self.displacement {
            displacement.grow(lines);
        }
    }

    /// Accesses `line` from `cpu` at `now`. Returns the cycles until it is done, waiting included;
    /// 0 for a hit in the first level where that costs nothing.
    ///
    /// Calls must come in the order of `now`, over all CPUs. Amortized O(1).
    ///
    /// # Panics
    ///
    /// If there is no such CPU or line.
    #[inline]
    pub fn access(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        if let Some(displacement) = self.displacement.get_mut(cpu) {
            let kept = displacement.access(line);
            self.displace(cpu, line, kept);
        }
        let caches = &mut self.cpus[cpu];
        caches.traffic.accesses += 1;
        if !caches.l1.touch(line) {
            return self.beyond_l1(cpu, line, kind, now);
        }
        if kind != AccessKind::Load && !self.directory[line].is_owner(cpu) {
            return self.upgrade(cpu, line, kind, now);
        }
        caches.traffic.l1_hits += 1;
        self.profile.l1.cycles + self.atomic_cycles(kind)
    }

    /// Writes all of `lines` from `cpu`, in order, as the clearing of a page does. Returns the
    /// cycles until the last is done.
    ///
    /// The CPU knows the addresses ahead, so as many misses overlap as it has fill buffers
    /// ([`Profile::fill_buffers`]). No other CPU may access these lines meanwhile: all of them are
    /// charged at once.
    ///
    /// # Panics
    ///
    /// If there is no such CPU, or one of the lines does not exist.
    pub fn clear(&mut self, cpu: usize, lines: Range<u32>, now: u64) -> u64 {
        let stores = u64::from(lines.end.saturating_sub(lines.start));
        let fetched: u64 = lines
            .map(|line| self.access(cpu, line, AccessKind::Store, now))
            .sum();
        stores * self.profile.clear_line_cycles + fetched / self.profile.fill_buffers.max(1)
    }

    /// Whether the line is in that CPU's private caches. False where there is no such line.
    ///
    /// # Panics
    ///
    /// If there is no such CPU.
    #[must_use]
    pub fn holds(&self, cpu: usize, line: u32) -> bool {
        self.cpus[cpu].l2.contains(line)
    }

    /// Whether this access would be a hit in the CPU's own caches, for a write of a line that the
    /// CPU owns. The cost of such an access does not depend on when it is made.
    ///
    /// # Panics
    ///
    /// If there is no such CPU or line.
    #[inline]
    #[must_use]
    pub fn would_hit(&self, cpu: usize, line: u32, kind: AccessKind) -> bool {
        if self.has_lost(cpu, line) {
            return false;
        }
        let entry = &self.directory[line];
        match kind {
            AccessKind::Load => entry.holders().contains(cpu),
            AccessKind::Store | AccessKind::Exchange => entry.is_owner(cpu),
        }
    }

    /// Returns the traffic of that CPU so far.
    ///
    /// # Panics
    ///
    /// If there is no such CPU.
    #[must_use]
    pub fn traffic(&self, cpu: usize) -> Traffic {
        self.cpus[cpu].traffic
    }

    fn beyond_l1(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        let caches = &mut self.cpus[cpu];
        if !caches.l2.touch(line) {
            return self.miss(cpu, line, kind, now);
        }
        // What this evicts from the first level is still in the second.
        caches.l1.insert(line);
        if kind != AccessKind::Load && !self.directory[line].is_owner(cpu) {
            return self.upgrade(cpu, line, kind, now);
        }
        caches.traffic.l2_hits += 1;
        self.profile.l2.cycles + self.atomic_cycles(kind)
    }

    /// Charges a write to a line that is in this CPU's caches, but shared.
    fn upgrade(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        let entry = self.directory[line];
        let begins = entry.busy_until.max(now);
        let traffic = &mut self.cpus[cpu].traffic;
        traffic.upgrades += 1;
        traffic.waited_cycles += begins - now;
        // The other copies may have been evicted since.
        traffic.bounced += u64::from(entry.holders().any_besides(cpu));

        let (home, node) = (self.home(line), self.cpus[cpu].node);
        let away = home != node || entry.holders().any_outside(&self.nodes[node]);
        let done =
            begins + self.profile.upgrade_cycles + self.crossing(away) + self.atomic_cycles(kind);
        self.own(cpu, line, done);
        done - now
    }

    /// Charges an access to a line that is not in this CPU's caches, and fetches it.
    fn miss(&mut self, cpu: usize, line: u32, kind: AccessKind, now: u64) -> u64 {
        if let Some(owner) = self.directory[line].owner()
            && self.has_lost(owner, line)
        {
            self.displace(owner, line, Kept::Nowhere);
        }
        let entry = self.directory[line];
        let begins = entry.busy_until.max(now);
        self.cpus[cpu].traffic.waited_cycles += begins - now;

        let delay = self.dice.below(self.profile.perturbation.saturating_add(1));
        let fetched = match entry.owner() {
            Some(owner) => self.fetch_from_owner(cpu, owner, line),
            None => self.fetch_from_home(cpu, line, kind, entry.holders()),
        };
        let done = begins + fetched + delay + self.atomic_cycles(kind);

        if kind != AccessKind::Load || entry.holders().is_empty() {
            self.own(cpu, line, done);
        } else {
            let busy_until = match entry.owner() {
                Some(_) => done,
                None => begins + self.profile.occupancy_cycles,
            };
            let entry = &mut self.directory[line];
            entry.share(cpu);
            entry.busy_until = busy_until;
        }
        self.fill(cpu, line);
        done - now
    }

    /// Returns true if computing has displaced the line from both caches of that CPU.
    #[inline]
    fn has_lost(&self, cpu: usize, line: u32) -> bool {
        let displacement = self.displacement.get(cpu);
        displacement.is_some_and(|displacement| displacement.kept(line) == Kept::Nowhere)
    }

    /// Removes the line from the caches that computing has displaced it from.
    fn displace(&mut self, cpu: usize, line: u32, kept: Kept) {
        if kept == Kept::Everywhere || !self.directory[line].holders().contains(cpu) {
            return;
        }
        let caches = &mut self.cpus[cpu];
        caches.l1.remove(line);
        if kept == Kept::Nowhere {
            caches.l2.remove(line);
            self.directory[line].forget(cpu);
        }
    }

    /// Returns the cycles of a fetch from the CPU that owns the line.
    fn fetch_from_owner(&mut self, cpu: usize, owner: usize, line: u32) -> u64 {
        let (home, node) = (self.home(line), self.cpus[cpu].node);
        self.look_up(home, line);
        let traffic = &mut self.cpus[cpu].traffic;
        traffic.transfers += 1;
        traffic.bounced += 1;
        let away = home != node || self.cpus[owner].node != node;
        self.profile.transfer_cycles + self.crossing(away)
    }

    /// Returns the cycles of a fetch from the home's last level or memory, of a line without an
    /// owner; for a write its other copies are invalidated meanwhile.
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
            return fetched + self.crossing(home != node);
        }
        traffic.bounced += 1;
        let away = home != node || holders.any_outside(&self.nodes[node]);
        fetched.max(self.profile.upgrade_cycles) + self.crossing(away)
    }

    /// Returns the cycles of a hit in the last level of that node, or `None` after a miss, which
    /// inserts the line.
    fn look_up(&mut self, home: usize, line: u32) -> Option<u64> {
        let llc = self.llcs.get_mut(home)?;
        if llc.touch(line) {
            return self.profile.llc.map(|shape| shape.cycles);
        }
        llc.insert(line);
        None
    }

    /// Makes this CPU the owner of the line, and the line busy until `done`.
    fn own(&mut self, cpu: usize, line: u32, done: u64) {
        let entry = &mut self.directory[line];
        entry.busy_until = done;
        for other in entry.own(cpu).iter() {
            let other = &mut self.cpus[other];
            other.l2.remove(line);
            other.l1.remove(line);
            other.traffic.invalidated += 1;
        }
    }

    /// Inserts a fetched line into both caches; what the second level evicts is removed from the
    /// first and from the directory too.
    fn fill(&mut self, cpu: usize, line: u32) {
        let caches = &mut self.cpus[cpu];
        if let Some(victim) = caches.l2.insert(line) {
            caches.l1.remove(victim);
            self.directory[victim].forget(cpu);
        }
        caches.l1.insert(line);
    }

    /// Returns the node whose memory holds the line.
    fn home(&self, line: u32) -> usize {
        match self.nodes.len() {
            1 => 0,
            nodes => (line / self.page_lines) as usize % nodes,
        }
    }

    /// Returns the extra cycles of a request that leaves its node.
    fn crossing(&self, away: bool) -> u64 {
        if away { self.profile.remote_cycles } else { 0 }
    }

    /// Returns the extra cycles of an access of this kind compared with a plain one.
    #[inline]
    fn atomic_cycles(&self, kind: AccessKind) -> u64 {
        match kind {
            AccessKind::Load | AccessKind::Store => 0,
            AccessKind::Exchange => self.profile.atomic_cycles,
        }
    }
}
