//! The report's text about the tables of 2007.

pub(super) const ASKED: &str = "Two ways to keep large blocks of memory free: group pages of the same mobility on lists of their own (list-based), or reserve a part of memory for pages that can be moved (zone-based). How many more huge pages do grouping by lists, by a zone, and by both give on five machines, and do they cost time? \
    The document says: much more memory as huge pages, with lists and with both, at no loss of time.";

pub(super) const CLAIMED: &str = "Grouping by lists, alone or with a zone, makes much more memory available as huge pages, at no loss of time.";

pub(super) const DECIDES: &str = "Huge pages counted on replayed traces, with the memory and the load varied where the mail does not give them; times are simulated.";

pub(super) const KERNBENCH: &str = "Simulated: a small build on as many CPUs as the published CPU time divided by elapsed time gives. The machine's caches are those of the simulated machine of 2007; memory is not given in the mail, and was calibrated on another table. Seconds cannot be compared, ratios can. \
    User time comes from the recording and can hardly differ, so ratios are close to 1. The document calls times that differ by less than a percent similar, so there the question is whether there is no difference here either; larger ones are judged by their direction. bl6-13, elm3b14 and elm3b245 differ here only in their memory, which this build does not fill, so they give the same times: three published figures are then compared with one measured figure. The zone-based and combined kernels keep 60 % of memory for all requests and 40 % for movable ones.";

pub(super) const KERNBENCH_RECLAIM: &str = "The reclaim patches act when memory is short, which it is not in this build; so the measured figures are those of the tables without the patches, shown beside what was published with them. The published differences from vanilla are all below 1 %, as most are without the patches, and are not judged a second time.";

pub(super) const HUGE_PAGES: &str = "Replayed: seven builds of a recorded compile on each machine, with one huge page requested each tenth of a second; then reclaim at rest, and the requests once more. The mail does not describe its load: it is that of the posting of 2005. Counted, not timed, on assumed machines; a run is a phase, and each has other moments of the builds that coincide. The machines' memory is not in the mail: it is the multiple of 128 MiB with which vanilla has its published huge pages under load, so that column is no check, and all others are; a tenth more and less is varied. Huge pages are 2 MiB on x86 and 16 MiB on ppc64. Reclaim and the way of a request are those of Linux 2.6.20: one call of direct reclaim for a huge page, background reclaim told the order. Each run begins with a booted kernel and a build before the load. \
    At rest a model kernel retains fewer pages than a real one: what the walk has read is evicted by a file as large as memory, and only the kernel's own pages stay. Each kernel is compared with vanilla. bl6-13's combined 0 is a missing value and is not judged.";

pub(super) const HUGE_PAGES_RECLAIM: &str = "The same with Whitcroft's lumpy reclaim: it also reclaims the neighbours of an old page, so that whole blocks become free. Rebuilt from version 3, which was posted two days before the mail. bl6-13 has no figures.";

pub(super) const MIN_FREE: &str = "The mail says: a high min_free_kbytes makes large allocations work for a time, since what is kept free was in one piece to begin with, until memory pressure splits it; raised once the system has run for some time, it does not help. Replayed on the unpatched kernel of 2.6.20: by default, with four huge pages' worth from boot (3 % of this machine's memory; the mail's video had 2 %), and with the same set after a minute under load. Counted are the huge pages that are free above the min mark, without any reclaim. Pressure is four bursts, in each of which a device takes all that requests which cannot wait may have; bursts and their length are assumed. The player has the last two runs.";

pub(super) const RECLAIM_EFFECT: &str = "Each kernel with the reclaim patches over the same kernel without: times as many huge pages, and in parentheses the two printed percentages, which are whole numbers. The mail says that the patches fix what reclaim leaves; here lumpy reclaim is compared with plain reclaim of the same kernel. bl6-13 has no figures with the patches.";

pub(super) const FORTY: &str = "\"The success rates ... should always be at least 40 %\"; with the patches, the mail says, the zone-based kernel comes closer to that. Of its own figures, in parentheses, three of eight reach it. Here the claim is judged by the measured share of memory, and only at those three: elsewhere the document's own table contradicts it, so what is measured there speaks neither for it nor against it, and is not counted.";

pub(super) const TODAY_HUGE: &str = "Percent of memory, and the difference from `vanilla` in percentage points. \"Possible\" is the share that would be free as huge pages if everything that can be reclaimed or moved were gone: what the remaining pages leave. Replayed.";

pub(super) const TODAY_KERNBENCH: &str =
    "The simulated build of the tables above, and the gain over `vanilla` (positive is better).";

pub(super) const PLOT_MACHINES: &str = "Counted on a replayed trace, in which nothing is random.";

pub(super) const PLOT_TIME: &str = "Builds start one after the other; then huge pages are requested under load; then the load ends, and they are requested at rest. The document's videos, of four machines, show the same. Full runs film two here, since every film makes the page larger by megabytes: elm3b245, an x86-64 machine with small huge pages, and gekko-lp4, a ppc64 machine with large ones, on which the document bases its argument. Quick runs have only the first.";
