//! The simulated machines, by name: their CPUs, caches, latencies, and what the kernel of their
//! time does besides allocating.
//!
//! A core executes one instruction a cycle, in order, and stalls on each access. So
//! [`CacheShape::cycles`] is what an access takes beyond its instruction. A hit in the first-level
//! cache takes nothing more on any of them: the paper of 2007 states it, and the real cores hide
//! their 3 to 5 cycles by executing out of order.
//!
//! Each figure has its source beside it. "Our choice" marks a figure that nobody published, with
//! the reason for it.

use thiserror::Error;

/// Size and latency of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// Lines in all.
    pub lines: usize,
    /// Lines per set: the places in which a given line can be cached.
    pub ways: usize,
    /// Cycles of a hit, beyond the instruction itself.
    pub cycles: u64,
}

impl CacheShape {
    /// A cache of `lines` lines in sets of `ways`, with a hit latency of `cycles`.
    #[must_use]
    pub const fn new(lines: usize, ways: usize, cycles: u64) -> Self {
        Self {
            lines,
            ways,
            cycles,
        }
    }

    /// Returns the number of sets: lines divided by ways. The set index is a few bits of the line's
    /// number, so the result is rounded down to a power of two, and is at least one.
    #[must_use]
    pub const fn sets(&self) -> usize {
        let ways = if self.ways == 0 { 1 } else { self.ways };
        match (self.lines / ways).checked_ilog2() {
            Some(bits) => 1 << bits,
            None => 1,
        }
    }
}

/// A machine to simulate. Times are in cycles of its CPUs unless the name says `ns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The name that selects it.
    pub name: &'static str,
    /// One line on what it is.
    pub about: &'static str,
    /// CPUs as published. A run may use another number.
    pub cpus: usize,
    /// Threads that share a core, its caches and its execution units: 1 or 2. Each is a CPU; see
    /// [`core_of`](Self::core_of).
    pub threads_per_core: usize,
    /// How long an instruction takes while the other thread of the core runs too, in percent of
    /// what it takes alone.
    pub shared_core_percent: u64,
    /// Clock, in MHz.
    pub megahertz: u64,
    /// Bytes per cache line: a power of two, 4096 at most.
    pub line_bytes: usize,
    /// First level, private to a CPU.
    pub l1: CacheShape,
    /// Second level, private to a CPU, inclusive of the first.
    pub l2: CacheShape,
    /// Last level, one per node, in front of that node's memory; `None` where the second level is
    /// the last.
    pub llc: Option<CacheShape>,
    /// NUMA nodes. The CPUs are divided evenly; pages of 4 KiB are interleaved over the nodes.
    pub nodes: usize,
    /// Fetching a line from memory, on the requesting CPU's own node.
    pub memory_cycles: u64,
    /// Added once where a request leaves the node.
    pub remote_cycles: u64,
    /// Fetching a line from another CPU's private cache, on the same node.
    pub transfer_cycles: u64,
    /// Making a shared line exclusive: the other copies are invalidated, no data is moved.
    pub upgrade_cycles: u64,
    /// How long a read of a line without an owner keeps the line busy for the next request. (A
    /// request that changes the owner keeps it busy until it is done.)
    pub occupancy_cycles: u64,
    /// A miss of the private caches is delayed by a random 0 to this many cycles, as Alameldeen and
    /// Wood propose ("Variability in Architectural Simulations of Multi-threaded Workloads", 2003),
    /// so that runs with several seeds give an interval.
    pub perturbation: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Duration of a disk request, in nanoseconds.
    pub disk_ns: u64,
    /// Period of the timer tick, in nanoseconds.
    pub tick_ns: u64,
    /// Duration of a timer tick.
    pub tick_cycles: u64,
    /// How long a task runs before the next in the queue gets the CPU, in nanoseconds.
    pub slice_ns: u64,
    /// Duration of a task switch.
    pub switch_cycles: u64,
    /// From the sending of an inter-processor interrupt until its handler begins.
    pub ipi_cycles: u64,
    /// Duration of masking interrupts, and of restoring them: each this much.
    pub mask_cycles: u64,
    /// What an atomic read-modify-write takes beyond a plain access.
    /// [`CacheSystem::access`](crate::CacheSystem::access) adds it.
    pub atomic_cycles: u64,
    /// What clearing a line takes that is in the CPU's own caches.
    pub clear_line_cycles: u64,
    /// How many misses of one CPU overlap where it knows the addresses ahead, as in the clearing of
    /// a page. (All other accesses wait for each other.)
    pub fill_buffers: u64,
    /// A page fault without the allocator's part, the clearing of the page, and the record of the
    /// frame: trap, page table, and the kernel's other structures.
    pub page_fault_cycles: u64,
}

/// The machine that Porter simulated in 2007 (MetaTM in Simics), with the paper's figures and no
/// feature that the paper does not name.
///
/// The paper gives one latency, 200 cycles, for what leaves the private caches. We take it to hold
/// for memory, for a line of another CPU and for an upgrade alike, and reads of one line not to
/// delay each other.
const METATM_2007: Profile = Profile {
    name: "metatm-2007",
    about: "the simulated Pentium 4 multiprocessor of Porter's paper of 2007 (8, 16 and 32 CPUs)",
    // Paper: 8, 16 and 32.
    cpus: 32,
    threads_per_core: 1,
    shared_core_percent: 100,
    // Paper: 1 GHz, one instruction a cycle.
    megahertz: 1_000,
    // Paper: 64-byte lines; 256 in 4 ways, 0 cycles; 64k in 8 ways, 16 cycles.
    line_bytes: 64,
    l1: CacheShape::new(256, 4, 0),
    l2: CacheShape::new(65_536, 8, 16),
    // Paper: only private caches, one memory.
    llc: None,
    nodes: 1,
    // Paper: 200 cycles. Our reading: for everything that leaves the private caches.
    memory_cycles: 200,
    remote_cycles: 0,
    transfer_cycles: 200,
    upgrade_cycles: 200,
    // Paper: a latency, and no bandwidth limit.
    occupancy_cycles: 0,
    // Paper: "as described by Alameldeen and Wood", who add 0 to 4 ns to a miss: at 1 GHz as many
    // cycles.
    perturbation: 4,
    // Paper: 1 GB, 5.5 ms.
    memory_bytes: 1 << 30,
    disk_ns: 5_500_000,
    // Linux 2.6.16 on i386: HZ is 250 unless configured otherwise, and a task of default priority
    // has a slice of 100 ms.
    tick_ns: 4_000_000,
    slice_ns: 100_000_000,
    // Our choice: some 1,000 to 2,000 instructions with a few misses; measured ticks and switches
    // of that time take 1 to 3 us.
    tick_cycles: 1_500,
    switch_cycles: 2_000,
    // Our choice: about 1 us from send to handler, as measured on machines of that time.
    ipi_cycles: 1_000,
    // One instruction each, at one instruction a cycle.
    mask_cycles: 1,
    // The same: a locked instruction counts as one instruction.
    atomic_cycles: 0,
    // 16 stores of a word of 4 bytes; the paper names nothing that overlaps.
    clear_line_cycles: 16,
    fill_buffers: 1,
    // Our estimate: as many instructions.
    page_fault_cycles: 1_200,
};

/// Porter's real machine of 2007: a Dell PowerEdge 2900 with two Xeon X5355.
///
/// In reality two cores share a second level of 4 MB, and four such pairs are connected by the
/// front-side buses. Here each CPU has half of it to itself, and a line from another CPU costs the
/// mean over the seven others. So a transfer between the two cores of a pair, one of seven, is
/// charged too much.
const XEON_X5355: Profile = Profile {
    name: "xeon-x5355",
    about: "two Xeon X5355 of 2007, 2 x 4 cores at 2.66 GHz (Porter's real machine)",
    cpus: 8,
    threads_per_core: 1,
    shared_core_percent: 100,
    megahertz: 2_660,
    line_bytes: 64,
    // Vendor: 32 KB in 8 ways a core.
    l1: CacheShape::new(512, 8, 0),
    // Vendor: 4 MB in 16 ways a pair, here 2 MB a core. Reviews measured 14 cycles with CPU-Z on
    // this core (Kentsfield).
    l2: CacheShape::new(32_768, 16, 14),
    llc: None,
    nodes: 1,
    // Our choice: 110 ns, in the middle of what was measured with the FB-DIMMs and the bus of these
    // servers.
    memory_cycles: 293,
    remote_cycles: 0,
    // Baumann et al., "The Multikernel" (2009), measured this CPU: a message, two movements of a
    // line, takes 180 cycles between cores of a pair and 570 between others. (90 + 6 * 285) / 7.
    transfer_cycles: 257,
    // The same measurement: the sender's half is an invalidation over the bus.
    upgrade_cycles: 257,
    // Our choice: two clocks of the bus (333 MHz), the spacing of snoops.
    occupancy_cycles: 16,
    // Alameldeen and Wood's 4 ns.
    perturbation: 11,
    // Porter: 8 GB.
    memory_bytes: 8 << 30,
    // Our choice: as on the simulated machine. A seek and half a turn of a server's disk of 10,000
    // rpm take about as long.
    disk_ns: 5_500_000,
    // Linux 2.6.23 and 2.6.24 with CFS: HZ 250; a scheduling latency of 20 ms on one CPU, four
    // times that on eight, divided among the runnable tasks: two.
    tick_ns: 4_000_000,
    slice_ns: 40_000_000,
    // Our choice: 1 us; and 1.3 us, as lmbench measures two small processes on these cores.
    tick_cycles: 2_660,
    switch_cycles: 3_500,
    // Our choice: 0.6 us.
    ipi_cycles: 1_600,
    // Our choice: about half of cli and popf as the instruction tables (Fog) give them.
    mask_cycles: 10,
    // uops.info and Fog's tables: some 20 cycles for a locked instruction that hits.
    atomic_cycles: 20,
    // Our choice: 16 bytes a cycle, the width of this core's stores; eight fill buffers of the
    // first level, by Intel's optimization manual.
    clear_line_cycles: 4,
    fill_buffers: 8,
    // The i7's figure, and a third more: what memory and core take longer in cycles for the same
    // work (our estimate).
    page_fault_cycles: I7_FAULT * 4 / 3,
};

/// Dumazet's machine of 2008: "8 ways HP BL460c G1", whose processor his profiler calls "Core 2,
/// speed 3000.1 MHz". So two Xeons with four cores each, of the X5300 or X5400 series.
///
/// The same cores and bus as [`XEON_X5355`], a little faster; what passes the bus takes as many
/// nanoseconds. As there, pairs of cores that share a second level (of 4 or 6 MB) are not modelled:
/// each CPU has half of the smaller one to itself.
const BL460C_G1: Profile = Profile {
    name: "bl460c-g1",
    about: "an HP BL460c G1 of 2007, 2 x 4 cores at 3 GHz (Dumazet's machine)",
    megahertz: 3_000,
    // 110 ns, 96.6 ns, 6 ns and 4 ns.
    memory_cycles: 330,
    transfer_cycles: 290,
    upgrade_cycles: 290,
    occupancy_cycles: 18,
    perturbation: 12,
    // 1 us, 1.3 us and 0.6 us.
    tick_cycles: 3_000,
    switch_cycles: 3_900,
    ipi_cycles: 1_800,
    // The same share of a second.
    page_fault_cycles: XEON_X5355.page_fault_cycles * 3_000 / XEON_X5355.megahertz,
    ..XEON_X5355
};

/// What is left of a page fault of 2013 without what is charged separately.
///
/// Gorman's pft with one thread: 953,441 faults a second of CPU time, so 3,566 cycles. With a
/// mapping of 64 MiB, which no cache holds, on one simulated CPU with per-CPU lists, the
/// allocation, the frame's record and the clearing take 2,334 of them. So this is a fit and no
/// measurement; `simulate/tests/pft.rs` checks that it fits.
const I7_FAULT: u64 = 1_232;

/// Gorman's machine of 2013: "a single socket i7 with 16G RAM". The model is not named; ours has
/// the size and clock of a Core i7-4770 or 3770.
///
/// From five CPUs on, two of them are threads of one core: they share its caches, its fill buffers
/// and its execution units.
const I7_2013: Profile = Profile {
    name: "i7-2013",
    about: "a desktop i7 of 2013, 4 cores with 8 threads at 3.4 GHz (Gorman's machine)",
    cpus: 8,
    // Vendor: four cores with two threads each.
    threads_per_core: 2,
    // Our choice: two threads of a core get a quarter more done than one alone.
    shared_core_percent: 160,
    // Vendor: 3.4 GHz.
    megahertz: 3_400,
    line_bytes: 64,
    // Vendor: 32 KB and 256 KB in 8 ways; 8 MB in 16 ways.
    l1: CacheShape::new(512, 8, 0),
    // 7-cpu.com, Haswell: 12 cycles; 36 for the last level.
    l2: CacheShape::new(4_096, 8, 12),
    llc: Some(CacheShape::new(131_072, 16, 36)),
    nodes: 1,
    // 7-cpu.com, Haswell: 36 cycles and 57 ns.
    memory_cycles: 230,
    remote_cycles: 0,
    // Intel, "Performance Analysis Guide for Core i7": a line modified in another core takes 75
    // cycles, one that is shared 65.
    transfer_cycles: 75,
    upgrade_cycles: 65,
    // Our choice: a few cycles of the last level's slice and its ring stop.
    occupancy_cycles: 8,
    // Alameldeen and Wood's 4 ns.
    perturbation: 14,
    // Gorman: 16G.
    memory_bytes: 16 << 30,
    // Our choice: a seek of a desktop disk.
    disk_ns: 8_000_000,
    // Linux 3.9 with HZ 250; a scheduling latency of 24 ms on eight CPUs, divided among the
    // runnable tasks: two.
    tick_ns: 4_000_000,
    slice_ns: 12_000_000,
    // Our choice: 0.7 us and 1 us.
    tick_cycles: 2_400,
    switch_cycles: 3_400,
    // Our choice: 0.4 us.
    ipi_cycles: 1_400,
    // Our choice, as for the Xeon.
    mask_cycles: 10,
    // uops.info, Haswell: 18 to 20 cycles for a locked instruction that hits, of which one is the
    // instruction.
    atomic_cycles: 18,
    // Intel's optimization manual: a store of 32 bytes a cycle; ten fill buffers of the first
    // level.
    clear_line_cycles: 2,
    fill_buffers: 10,
    page_fault_cycles: I7_FAULT,
};

/// A large server of 2023: two sockets of 64 cores (the size of a Xeon Platinum 8592+), each with a
/// last level of 320 MB. No core runs two threads.
///
/// The last level is in front of its node's memory: a line is looked up at its home node only. Real
/// ones cache remote lines as well.
const MANY_CORE: Profile = Profile {
    name: "many-core",
    about: "a server of 2023, two sockets of 64 cores, each with one last level",
    // Vendor: 2 x 64 cores; 48 KB in 12 ways, 2 MB in 16 ways, 5 MB a core in 20 ways.
    cpus: 128,
    threads_per_core: 1,
    shared_core_percent: 100,
    // Vendor: 2.9 GHz with all cores at work.
    megahertz: 2_900,
    line_bytes: 64,
    l1: CacheShape::new(768, 12, 0),
    // Measured by reviewers on these cores (Sapphire Rapids and after): 14 to 16 cycles.
    l2: CacheShape::new(32_768, 16, 15),
    // The same reviews: some 30 ns, since the mesh is large.
    llc: Some(CacheShape::new(5_242_880, 20, 90)),
    nodes: 2,
    // The same reviews: about 110 ns, and 60 to 70 ns more from the other socket.
    memory_cycles: 320,
    remote_cycles: 190,
    // The same reviews: compare-and-swap between two cores of a socket takes 50 to 80 ns for the
    // round trip, and one way with its snoop half of that to all of it.
    transfer_cycles: 170,
    // Our choice: the path to the last level and a snoop from there, without the data.
    upgrade_cycles: 130,
    // Our choice: a slice takes one request for a line every few cycles of its slower clock.
    occupancy_cycles: 8,
    // Alameldeen and Wood's 4 ns.
    perturbation: 12,
    // Our choice: 2 GiB a core.
    memory_bytes: 256 << 30,
    // Our choice: a read of a flash drive.
    disk_ns: 80_000,
    // Linux 6.12: HZ 250; EEVDF's base slice of 0.7 ms, four times that on eight or more CPUs.
    tick_ns: 4_000_000,
    slice_ns: 2_800_000,
    // Our choice: 0.5 us and 1 us, with the mitigations of these years.
    tick_cycles: 1_450,
    switch_cycles: 2_900,
    // Our choice: 0.7 us.
    ipi_cycles: 2_000,
    // Our choice, as for the Xeon of 2007.
    mask_cycles: 10,
    // uops.info, Alder Lake-P (the same core): 19 cycles for a locked instruction that hits.
    atomic_cycles: 18,
    // The same manual: two stores of 32 bytes a cycle; 16 fill buffers of the first level.
    clear_line_cycles: 1,
    fill_buffers: 16,
    // Our choice: the i7's. Faster cores and more expensive traps have about cancelled out.
    page_fault_cycles: I7_FAULT,
};

impl Profile {
    /// Every profile, oldest first.
    pub const ALL: [&'static Self; 5] = [
        Self::METATM_2007,
        Self::XEON_X5355,
        Self::BL460C_G1,
        Self::I7_2013,
        &MANY_CORE,
    ];

    /// The simulator of 2007.
    pub const METATM_2007: &'static Self = &METATM_2007;

    /// The real machine of its author.
    pub const XEON_X5355: &'static Self = &XEON_X5355;

    /// The server of 2008.
    pub const BL460C_G1: &'static Self = &BL460C_G1;

    /// A desktop of 2013.
    pub const I7_2013: &'static Self = &I7_2013;

    /// Returns the profile of that name.
    ///
    /// ```
    /// use brickyard_machine::Profile;
    ///
    /// assert_eq!(Profile::by_name("metatm-2007")?.memory_cycles, 200);
    /// assert!(Profile::by_name("cray").is_err());
    /// # Ok::<(), brickyard_machine::UnknownProfile>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnknownProfile`] where there is none; its message lists the known names.
    pub fn by_name(name: &str) -> Result<&'static Self, UnknownProfile> {
        let found = Self::ALL.into_iter().find(|profile| profile.name == name);
        found.ok_or_else(|| UnknownProfile { name: name.into() })
    }

    /// Converts nanoseconds to cycles, rounded down and saturating.
    #[must_use]
    pub fn cycles(&self, ns: u64) -> u64 {
        let cycles = u128::from(ns) * u128::from(self.megahertz) / 1_000;
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// Returns how many cores a machine of `cpus` CPUs has: as many as published, or one for each
    /// CPU where there are fewer, or more where two threads each are not enough.
    #[must_use]
    pub const fn cores(&self, cpus: usize) -> usize {
        if self.threads_per_core < 2 {
            return cpus;
        }
        let published = self.cpus / 2;
        let most = if cpus < published { cpus } else { published };
        let least = cpus.div_ceil(2);
        if least > most { least } else { most }
    }

    /// Returns the core of a CPU on a machine of `cpus` CPUs. As Linux numbers them: first one
    /// thread of each core, then the others, so CPU `i` shares its core with CPU `i + cores`.
    #[must_use]
    pub const fn core_of(&self, cpu: usize, cpus: usize) -> usize {
        let cores = self.cores(cpus);
        if cpu < cores { cpu } else { cpu - cores }
    }

    /// Returns the node of a CPU on a machine of `cpus` CPUs, which are divided evenly in order of
    /// their numbers. 0 where `cpus` is 0.
    #[must_use]
    pub const fn node_of(&self, cpu: usize, cpus: usize) -> usize {
        if cpus == 0 {
            return 0;
        }
        cpu * self.nodes / cpus
    }
}

/// There is no profile of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no machine is called `{name}`; there are {}", names())]
#[non_exhaustive]
pub struct UnknownProfile {
    /// The name that was requested.
    pub name: String,
}

fn names() -> String {
    Profile::ALL.map(|profile| profile.name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metatm_is_the_papers() {
        let metatm = Profile::by_name("metatm-2007").unwrap();
        let shape = |shape: CacheShape| (shape.lines, shape.ways, shape.cycles);
        assert_eq!(shape(metatm.l1), (256, 4, 0));
        assert_eq!(shape(metatm.l2), (65_536, 8, 16));
        assert_eq!((metatm.line_bytes, metatm.megahertz), (64, 1_000));
        assert_eq!((metatm.memory_cycles, metatm.llc), (200, None));
        assert_eq!((metatm.memory_bytes, metatm.disk_ns), (1 << 30, 5_500_000));
    }

    #[test]
    fn every_shape_is_exact() {
        for profile in Profile::ALL {
            for shape in [Some(profile.l1), Some(profile.l2), profile.llc] {
                let Some(shape) = shape else { continue };
                assert_eq!(shape.sets() * shape.ways, shape.lines, "{}", profile.name);
            }
            assert!(profile.l1.lines <= profile.l2.lines, "{}", profile.name);
        }
    }

    #[test]
    fn odd_shapes_are_rounded_down() {
        let sets = |lines, ways| CacheShape::new(lines, ways, 0).sets();
        assert_eq!(sets(48, 4), 8);
        assert_eq!(sets(3, 4), 1);
        assert_eq!(sets(0, 0), 1);
    }

    #[test]
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        let unknown = Profile::by_name("cray").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "no machine is called `cray`; there are metatm-2007, xeon-x5355, bl460c-g1, i7-2013, many-core"
        );
    }

    #[test]
    fn nanoseconds_become_cycles() {
        let xeon = Profile::by_name("xeon-x5355").unwrap();
        assert_eq!(xeon.cycles(1_000), 2_660);
        assert_eq!(xeon.cycles(1), 2);
        assert_eq!(xeon.cycles(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_second_thread_comes_after_the_first_of_each_core() {
        let i7 = Profile::by_name("i7-2013").unwrap();
        let cores = |cpus| {
            (0..cpus)
                .map(|cpu| i7.core_of(cpu, cpus))
                .collect::<Vec<_>>()
        };
        assert_eq!(cores(3), [0, 1, 2]);
        assert_eq!(cores(6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(cores(8), [0, 1, 2, 3, 0, 1, 2, 3]);
        // More than were published: as many cores as are needed.
        assert_eq!(i7.cores(32), 16);
        for profile in Profile::ALL {
            assert!(
                (1..=2).contains(&profile.threads_per_core),
                "{}",
                profile.name
            );
            if profile.threads_per_core == 1 {
                assert_eq!((profile.cores(7), profile.core_of(6, 7)), (7, 6));
            }
        }
    }

    #[test]
    fn cpus_are_divided_evenly() {
        let many = Profile::by_name("many-core").unwrap();
        assert_eq!(many.node_of(0, 128), 0);
        assert_eq!(many.node_of(63, 128), 0);
        assert_eq!(many.node_of(64, 128), 1);
        assert_eq!(many.node_of(127, 128), 1);
        assert_eq!(many.node_of(1, 3), 0);
        assert_eq!(many.node_of(2, 3), 1);
    }
}
