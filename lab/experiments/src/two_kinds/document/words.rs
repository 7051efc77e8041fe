//! The report's text about the tables of 2005.

pub(super) const ASKED: &str = "After a while a machine's free memory is in small pieces, and large blocks cannot be allocated. If pages of user programs, which can be reclaimed, are kept apart from the kernel's own by one flag per page, are there more large blocks, and what does it cost? \
    The document says: nearly three times as many at rest, a quarter more under load, and no measurable loss of speed.";

pub(super) const CLAIMED: &str = "Nearly three times as many large blocks at rest and a quarter more under load, at no measurable cost.";

pub(super) const DECIDES: &str = "Blocks counted on a replayed trace, with the load varied where the posting does not give it; times are simulated or of this host.";

pub(super) const SUMMARY: &str = "Six measurements of different kinds. Kernel extract and build: a recorded `tar` and recorded compiles, on one CPU of the simulated machine; elapsed seconds of a smaller job, so only the ratio can be compared. AIM9: loops timed on this host. That of page_test allocates and frees pages as the test does; that of brk_test moves a counter, with neither a system call nor a page fault. Huge pages: the protocol of the document on a replayed trace \
    (seven builds; 275 tries for a block of order 10, one each tenth of a second; then at rest), which is counted, not timed, on an assumed machine; a run is a phase, and each has other moments of the builds that coincide. The document's kernel is 2.6.15 on a machine of 1.5 GiB with a disk; the memory follows from its 296 blocks of 4 MiB, which are 78 % of it.";

pub(super) const BUILD: &str = "Simulated, on one CPU as with make -j1. The trees and the compiler are of today, and the trees are smaller, so seconds cannot be compared. The document prints whole seconds: a difference of less than 3 % of the extract could not show.";

pub(super) const AIM9: &str = "Two of the tests are about pages, and are run here as loops: page_test moves a program break down and up and touches each new page; brk_test moves it and touches none, so that here, without a system call or a page fault, it is just a counter. Rates are of this host; elapsed time and counts are the document's. \
    The others time files, jumps, signals, programs and tasks of a kernel, which is not modelled here; they are shown as printed, though fork_test and exec_test allocate pages too.";

pub(super) const AIM9_DIFFERENCE: &str = "As before; the gain in percent is positive where the kernel with two kinds does more operations. All published differences are below 1 %, from one run each, so what was published is noise; the question here is whether there is more than that.";

pub(super) const CACHE: &str = "The document renders a large file ten times, to see whether the allocator evicts what a program keeps in its caches. Here a loop of the same kind runs on this host: a working set of about the size of the second-level cache is read again and again, with pages allocated and freed in between. \
    \"User\" is the loop's own time, \"sys\" the time in the allocator. Seconds cannot be compared, the difference between the lines can.";

pub(super) const HIGH_ORDER: &str = "Replayed: seven builds, as the document describes, on a machine of 1.5 GiB with memory that the kernel does not map; 275 tries for 4 MiB under load, then as many blocks as can be allocated at rest. Counted, not timed, on an assumed machine; a run is a phase, and each has other moments of the builds that coincide. The operations of a build come from a recording of a smaller one, stretched; reclaim is that of Linux 2.6.20, which had the rules of 2.6.15, and per-CPU lists are drained only where the patch did so. The machine has booted and built once before. \
    Which zone a block came from is not counted here, and tries and failures follow from the successes: those lines are shown as printed.";

pub(super) const TODAY_HUGE: &str =
    "The same protocol for each configuration, and the gain over `vanilla`. Replayed.";

pub(super) const TODAY_RENDER: &str = "The loop of the table above for some configurations, and the gain over `vanilla` (positive is better). Times of this host.";

pub(super) const TODAY_TIME: &str = "The other measurements, and the gain over `vanilla` (positive is better). Simulated runs differ only in their seed, which changes their cache misses slightly; the others are times of this host.";
