//! What is said about the tables of 2007.

pub(super) const ASKED: &str = "Two ways to keep large blocks of memory free: group pages of like mobility on lists of their own (list-based), or give a part of memory to pages that can be moved (zone-based). How many more huge pages do grouping by lists, by a zone, and by both bring on five machines, and do they cost time? \
    The document says: much more memory as huge pages, with list-based and with both, at no loss of time.";

pub(super) const MISTAKES: [&str; 7] = [
    "bl6-13 under the combined kernel: the 0 in both tables of huge pages is a missing value. The machine was deleted before that run, and the tables of time have a dash in the same place.",
    "It keeps bl6-13 as a machine with \"reliable performance improvements\". Its list-based elapsed time is 37.78 against 36.32 s: 4 % slower, with 2 % less CPU time.",
    "It says that less than 40 % of memory means reclaim is at fault, and that the reclaim patches mend it. With them 8 of the 12 figures of patched kernels under load still lie below 40 %, and 2 of 12 at rest.",
    "The reclaim patches change the unpatched kernel too, and not for the better everywhere: elm3b14 at rest falls from 69 to 52 %. The text does not mention it.",
    "Times are means of three builds, huge pages one run; no deviation of either is printed. Differences of 0.1 % cannot be told from noise.",
    "The patches that go with the mail (v28) count the free pieces they have moved, not their pages, when they decide whether a page block changes hands, so it does too readily. The merged version counts pages. The rules rebuilt here are the merged ones.",
    "The same patches look one page past the end of a block, so the last block of a zone that borders on another is never moved.",
];

pub(super) const KERNBENCH: &str = "Simulated: a small build on as many CPUs as CPU time over elapsed time of the published figures gives. The machine's caches are those of the simulated machine of 2007; memory is not given in the mail and was assumed. Seconds cannot be compared, ratios can. \
    User time is what the recording holds and can hardly differ, so ratios lie close to 1. The document calls times that differ by less than a percent similar, so there the question is whether there is no difference here either; larger ones are judged by their direction. bl6-13, elm3b14 and elm3b245 differ here by their memory alone, which this build does not fill, so they give the same times: three published figures are then held against one measured one. The zone-based and combined kernels keep 60 % of memory for all requests and 40 % for movable ones.";

pub(super) const KERNBENCH_RECLAIM: &str = "The reclaim patches act when memory is short, which it is not in this build; so the measured figures are those of the tables without the patches, and stand beside what was published with them. Their directions are judged there, once.";

pub(super) const HUGE_PAGES: &str = "Replayed: seven builds of a recorded compile on each machine, huge pages asked for one each tenth of a second, then reclaim at rest and once more. Counted, not timed, and exact. Machines' memory is not in the mail and was assumed, small enough that seven trees do not fit; huge pages are 2 MiB on x86 and 16 MiB on ppc64. \
    Under load the figure depends on how full memory is, so its height cannot be compared, directions can. At rest a model kernel keeps less behind than a real one. Judged is each kernel against vanilla. bl6-13's combined 0 is a missing value and is not judged.";

pub(super) const HUGE_PAGES_RECLAIM: &str = "The same with Whitcroft's lumpy reclaim: it takes the neighbours of an old page along, so that whole blocks become free. Rebuilt from its rules. bl6-13 has no figures.";

pub(super) const TODAY_HUGE: &str = "Percent of memory, and points over `vanilla`. \"Possible\" is what would be there if all that can be given back or moved were gone: what the pages that can do neither leave over. Replayed, exact.";

pub(super) const TODAY_KERNBENCH: &str =
    "The simulated build of the tables above, and the gain over `vanilla` (positive is better).";

pub(super) const PLOT_MACHINES: &str =
    "Counted on a replayed trace, in which nothing is left to chance.";

pub(super) const PLOT_TIME: &str = "Builds start one after the other; then huge pages are asked for under load; then the load ends, and they are asked for at rest. The videos of the document, of four machines, show the same. Two are filmed here in full runs: elm3b245, of x86-64 with small huge pages, and gekko-lp4, of ppc64 with large ones, of whose figures the document makes its point: every film makes the page larger by megabytes. Quick runs have the first alone.";
