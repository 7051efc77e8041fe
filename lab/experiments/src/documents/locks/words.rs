//! What is said about the tables of 2007.

pub(super) const ASKED: &str = "Linux took pages from a zone, and gave them back, in bulks, and held the zone's lock for the whole of one. Does a parallel program run faster if the lock is given up after each page, \
    because small requests then wait less for large ones? The document says: by a little in most cases, and more with more CPUs. In January 2008 it asked the same of ticket locks, where the lock is given up only \
    if somebody waits, and of a lock in its own cache line.";

pub(super) const MISTAKES: [&str; 13] = [
    "The posted patch keeps the lock for ever where a refill finds nothing: the loop is left between the lock and the unlock. \"One hold for each item, on every path\" is what is modelled here.",
    "The posted patch resets `all_unreclaimable` and `pages_scanned` outside the lock, so it also does less under it than before.",
    "It says that all significant differences are positive. The one of the kernel compile, 0.992*, is significant and negative.",
    "It says that performance tends to improve with the number of CPUs. Of the five workloads with figures for several, `find` goes from 0.967 to 0.956; `config` from 1.005 to 1.018 to 1.005; MAB falls below 1 at 16 CPUs. Only `pmake` rises each time.",
    "None of the simulated differences can have a star: four runs cannot reach 5 % by the signed-rank test (the smallest p is 1/8). Nor can the compiles of January, with five (1/16).",
    "The speedups of hdparm divide MB per second as if they were seconds: the 1.002 of October is a loss of 0.2 %.",
    "14 of 27 tests have a star, with no correction for their number, and some point against each other: one kernel configuration compiles 0.8 % slower, the other 4.8 % faster.",
    "Simulated `config` on 8 CPUs: the interval is printed equal to the deviation (.096 and .466). By the formula that fits all other columns (1.96 deviations over the root of n) it is .094 and .457.",
    "`objdump`, unmodified, October: the interval of .180 does not fit the deviation of .255, from which .129 follows. One of the two is wrong.",
    "Kernel compile, January, ts+opt+cl: the deviation 4.489 is that of the column before; the interval of 3.963 belongs to 4.521.",
    "Bulks of `dpunish`: a mean order of 0.13 with a deviation of 0.14 cannot be. Orders are whole numbers, so the deviation is at least 0.33.",
    "It says that ticket locks cost 1 to 2 %. Of the workloads with a star, MAB lost 3.1 %, `config` 1.7 %, `objdump` 0.8 %.",
    "It says that an own cache line hurts. That holds for MAB, `config`, `objdump` and dd; both compiles are faster with it, 1.007 and 1.022.",
];

pub(super) const SIMULATED: &str = "Simulated here too: the library's own source on a machine with the paper's figures (caches, 200 cycles to memory, 1 GHz, an instruction a cycle, disk of 5.5 ms, lists of 7 and 42 pages). The workloads are cut from \
    recordings of today's commands and multiplied as in the paper, so seconds cannot be compared, only ratios; the two that he marked `*` as too noisy to print are shown as measured. More CPUs help `find` not at all: each of its 32 searches waits for the disk some 830 times, one after the other, and all searches wait at the same time. More than 27 cannot help `pmake`: it has 27 files, and ends with the longest. His kernel is Linux 2.6.16 on a full-system simulator; here nothing but the allocator \
    meets the caches. The page as it is kept has lost its columns; each printed figure stands where the asterisks in the head, the ratio of the means and the other CPU counts agree that it belongs.";

pub(super) const REAL: &str = "He measured on a Dell PowerEdge 2900. Here the same machine is simulated (its caches, 2.66 GHz, 8 CPUs), with the recorded commands as work: ratios can be compared, seconds cannot. Both kernel compiles are held against the same recorded compile. \
    Not modelled: hdparm, whose time goes into the disk and the bus (the row stands as printed, in MB/s), and lmbench, which was run but of which nothing was printed. A difference that is significant here and less than a tenth of the published one counts as noise: what moved the \
    published figure was then not this lock.";

pub(super) const BULKS: &str = "Counted, not timed: how many pages, of which order, each bulk operation moved. He does not say on how many CPUs; here on 8. Blocks of higher order go past the per-CPU lists and count as bulks of one, as in his kernel. \
    What differs is what today's kernel asked for while it was recorded: more high orders for slabs, fewer stacks of two pages.";

pub(super) const TICKET: &str = "Columns: unmod is a test-and-set lock held for the bulk; ts a ticket lock held for the bulk; ts+opt gives it up after a page if somebody waits; +cl puts the lock alone in its cache line. Each speedup is over the column before. Simulated on the same \
    machine as the table of October; hdparm is not modelled. The library keeps little that is hot beside the lock, so that an own line has little to change; in Linux 2.6 the free lists began in the lock's line.";

pub(super) const TODAY: &str = "Time of the simulated machine, and the gain over `hold` (positive is better). The first five columns are one allocator, `vanilla`, with the policies of the document; the others are whole allocators, with ticket locks held for a bulk where they have locks. No document has figures for them.";

pub(super) const TODAY_REAL: &str = "The same on the simulated Xeon of the tables of October and January, with the workloads that stand there. The gain is over `hold` (positive is better).";

pub(super) const WAITS: &str = "How long a CPU waited for the zone lock each time it came, how long it then held it, and which part of all CPUs' busy time went into waiting. That is no bound of what a policy can gain: a run ends with its slowest CPU. Nanoseconds are cycles of this machine.";

pub(super) const THREADS: &str = "Real threads of this host take bursts of pages and give them back, so that the zone lock is met as often as can be. This is no workload of the document: it shows what the policies cost on real caches. On a host with two CPUs a ticket lock suffers when its next owner does not run.";

pub(super) const PLOT_CPUS: &str = "The same work on more CPUs. Which part of their time the CPUs wait for the lock stands in the table of waits. Quick runs have fewer points and curves.";

pub(super) const PLOT_WAIT: &str = "Giving the lock up early shortens some waits; what it does to the longest, and to the time of the whole run, is another matter.";

pub(super) const PLOT_WAITING: &str =
    "Which part of all CPUs' busy time goes into waiting for the zone lock.";
