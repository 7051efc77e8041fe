//! The report's text about the tables of 2007 and 2008.

pub(super) const ASKED: &str = "Linux took pages from a zone, and gave them back, in bulks, and held the zone's lock for a whole bulk. Does a parallel program run faster if the lock is released after each page, \
    because small requests then wait less for large ones? The document says: slightly in most cases, and more with more CPUs. In January 2008 it examined ticket locks, where the lock is released only \
    if another CPU waits, and a lock in its own cache line.";

pub(super) const CLAIMED: &str = "Programs run up to a few per cent faster, most of all on many CPUs, if the zone lock is released after each page.";

pub(super) const DECIDES: &str = "Simulated on the paper's machines, with pairs of runs of one seed: the interval of their ratio.";

pub(super) const SIMULATED: &str = "Simulated here too: the library's own source on a machine with the paper's figures (caches, 200 cycles to memory, 1 GHz, an instruction a cycle, disk of 5.5 ms, lists of 7 and 42 pages). The workloads are cut from \
    recordings of today's commands and multiplied as in the paper, so seconds cannot be compared, only ratios; the two that the author marked `*` as too noisy to print are shown as measured. The files of `find` are in memory: at 5.5 ms, the printed 1.059 s are 192 waits for the disk, and each instance reads 333 to 751 files. \
    More than 27 CPUs cannot help `pmake`: it has 27 files, and ends with the longest. `dpunish` has 32 instances on any number of CPUs, which is assumed, so its time halves when the CPUs are doubled. The printed times (5.773, 4.436, 3.630) fall by less: they are close to 3.1 s in which one CPU works at a time, and 21.4 s of work that the CPUs \
    share. The benchmark was written to stress the locks of the directory cache, and these are not modelled. That the times of MAB and `config` fall with the number of CPUs does not follow from their description (see where the document is wrong); here they do not. The author ran Linux 2.6.16 on a full-system simulator. Here computing evicts the allocator's lines from the caches after as many \
    instructions as a compiler takes to touch as many lines as a cache has, which was measured. The archived page has lost its columns; each printed figure is placed where the asterisks in the head, the ratio of the means and the other CPU counts agree that it belongs.";

pub(super) const REAL: &str = "The author measured on a Dell PowerEdge 2900. Here the same machine is simulated (its caches, 2.66 GHz, 8 CPUs), with the recorded commands as work: ratios can be compared, seconds cannot. `objdump` is one command, alone on the machine. The two kernel compiles are two recordings: files compiled with the default configuration, \
    and other files with the smallest one. Not modelled: hdparm, whose time goes into the disk and the bus (the row is shown as printed, in MB/s), and lmbench, which was run but of which nothing was printed. A difference that is significant here and less than a tenth of the published one counts as none: in that case it was not this lock that moved \
    the published figure. The time at this lock on this machine, in a table of its own, is the most that any change to it can save.";

pub(super) const BULKS: &str = "Counted, not timed: how much, and of which order, each bulk operation moved. The number of CPUs is not given; here it is 8. Blocks of higher order bypass the per-CPU lists and are operations of their own, as in the author's kernel. The printed counts show what he counted. Out of the zone (`rmqueue_bulk`) \
    it must be the pages requested, 2^n for a block of order n: if each block of higher order counted 1, no mean could exceed the batch of 7, but three of four do, and if each operation counted 7 whatever its order, none would have a deviation. Some mix of orders comes within 3 % of all four figures of each workload that way, and of no workload the other ways. Into the zone (`free_pages_bulk`) it is the argument `count`, so blocks: \
    if 3 % of the frees have order 1 and count 1, count and order are 6.82 (1.02) and 0.03 (0.17), as printed for MAB. What differs is the requests of today's kernel, which was recorded: more high orders for slabs, fewer stacks of two pages. Files and the memory of processes are taken in single frames, as then.";

pub(super) const TICKET: &str = "Columns: unmod is a test-and-set lock held for the bulk; ts is a ticket lock held for the bulk; ts+opt releases it after a page if another CPU waits; +cl gives the lock a cache line of its own. Each speedup is over the column before. Simulated on the same \
    machine as the table of October; hdparm is not modelled. `objdump` and dd are single commands, alone on the machine. What ts changes alone cannot be tested: it made every spin lock of the kernel a ticket lock, and the zone lock is the only one here. What a line of its own costs is modelled: the lists of free blocks begin in the lock's line, as in Linux 2.6, so a CPU that takes the lock has one line more to \
    fetch if the lock is alone in its line. That is one line for each bulk of 31 pages.";

pub(super) const WORST: &str = "The conclusion of October is that the patch does no significant harm even in the worst case. Here that is the smallest speedup of all workloads, which a row behind each figure names; a loss of less than 1 % counts as none.";

pub(super) const TODAY: &str = "Time of the simulated machine, and the gain over `hold` (positive is better). The first five columns are one allocator, `vanilla`, with the policies of the document; the others are whole allocators, with ticket locks held for a bulk where they have locks. No document has figures for them.";

pub(super) const TODAY_REAL: &str = "The same on the simulated Xeon of the tables of October and January, with the workloads of those tables. The gain is over `hold` (positive is better).";

pub(super) const WAITS: &str = "How long a CPU waited for the zone lock each time it took it, how long it then held it, and the share of all CPUs' busy time that went into waiting, and into waiting or holding. The first share is no bound on what a policy can gain: a run ends with its slowest CPU. A nanosecond is a cycle of this machine.";

pub(super) const BOUND: &str = "The share of all CPUs' busy time that goes into waiting for the zone lock or holding it. If everything under the lock took no time at all, the CPUs would have this much less to do. For `objdump` and dd, which use one CPU, that is the most that the time can fall; elsewhere it is no strict bound, since a run ends with its slowest CPU. A published difference far above it has another cause than this lock: the other locks, or the layout of code and data of another kernel.";

pub(super) const EVICTED: &str = "The author's argument against his patch: in the non-contended case the lock may be evicted, so that each further acquisition costs a miss. Computing evicts the allocator's lines here after as many instructions as a compiler takes to touch as many lines as the cache has; the second line of each pair is without that. The lock is evicted between two bulk operations, but not within one, so the patch should cost no further miss: then its gain is about the same in both lines of a pair, which the table shows or refutes.";

pub(super) const OTHER_LOCKS: &str = "the change made every spin lock of the kernel a ticket lock; here the zone lock is the only lock";

pub(super) const THREADS: &str = "Real threads of this host allocate bursts of pages and free them, so that they take the zone lock as often as possible. This is not a workload of the document: it shows what the policies cost on real caches. On a host with two CPUs a ticket lock suffers when its next owner is not running.";

pub(super) const PLOT_CPUS: &str = "The same work on more CPUs. The share of their time that the CPUs wait for the lock is in the table of waits. Quick runs have fewer points and curves.";

pub(super) const PLOT_WAIT: &str = "Releasing the lock early shortens some waits; its effect on the longest, and on the time of the whole run, may differ.";

pub(super) const PLOT_WAITING: &str =
    "The share of all CPUs' busy time that goes into waiting for the zone lock.";
