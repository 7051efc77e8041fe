//! The report's text about the tables of 2008.

use crate::document::Mistake;

pub(super) const ASKED: &str = "SLQB keeps a queue of free objects for each CPU. Is it fast for a program that opens and closes sockets, alone and as eight tasks on eight CPUs, and where does its time go? The document says: no bad effect, the same as SLUB, where SLAB is \"really really bad\"; most of the time goes into clearing the object, then into masking interrupts, \
    and caches that interrupts never use need no masking.";

pub(super) const CLAIMED: &str = "SLQB is as fast as SLUB when eight tasks on eight CPUs open and close sockets, where SLAB is far slower; clearing objects and masking interrupts take the time.";

pub(super) const DECIDES: &str = "Simulated on the document's kind of machine, with SLAB and SLUB of 2.6.28 rebuilt beside SLQB.";

pub(super) const MISTAKES: [Mistake; 5] = [
    Mistake::conclusion(
        "\"No bad effect\": with eight tasks on eight CPUs each takes 1.686 s instead of 1.300, 30 % longer, and 30 % more CPU time. Whether SLQB or the rest of the kernel is the cause is not said.",
    ),
    Mistake::conclusion(
        "\"Same than SLUB\", and SLAB \"really really bad\": no figure of either is given. An hour and a half later, in the same thread, its author withdraws what he says of SLAB: he measured it with an older kernel, before a patch of Lameter's by which files are freed at once (\"silly me\"). With that patch, which the figures of SLQB are with, SLAB takes 1.201 s alone and 1.616 s with eight tasks: less than SLQB.",
    ),
    Mistake::conclusion(
        "\"Most of the time\" is most of the time of one function. Zeroing is 53 % of kmem_cache_alloc, which has 10.8 % of all samples: 5.8 % of the run. Masking is 3.1 % of the run.",
    ),
    Mistake::print(
        "The two listings are of different profiles: kmem_cache_alloc has 136,537 samples (10.8300 %) in one and 140,659 (10.8277 %) in the other.",
    ),
    Mistake::conclusion(
        "The profile is not of the timed runs: 1.26 million samples of 100,000 cycles at 3 GHz are 42 s of CPU time; both runs together have 14.6.",
    ),
];

pub(super) const TIME: &str = "On a simulated machine of the document's kind (two Xeons with four cores each, 3 GHz), the rebuilt SLQB allocates and frees the objects of sockets (1216, 640, 256 and 192 bytes), whose lines are all written. What the kernel does beside this takes a fixed time: 84.7 % of the published 1.300 us, since the profile has 15.3 % in the allocator. So \"alone\" comes out near the published figure by construction, and says nothing. \
    A run is a million sockets (the program is given in a later mail: `close(socket(AF_INET, SOCK_STREAM, 0))` in a loop), so seconds and microseconds can be compared. With eight tasks the published time is 30 % longer, and 30 % more CPU time; here it is not, since nothing but the allocator is shared: what else the tasks share, such as counters, is not modelled. The document says nothing about the cause, so that difference is not judged. The last column is computed from the published figures: 0.078 + 1.207 s alone, (0.614 + 12.737) / 8 with eight.";

pub(super) const DESIGNS: &str = "The document's only comparison, on the simulated machine: SLAB and SLUB as in Linux 2.6.28, rebuilt beside SLQB, under the same load, interrupts masked in every call. \"Freed at once\" is the kernel of the figures for SLQB. \"Deferred\" is the kernel before Lameter's patch, with which SLAB was measured: a file is freed by read-copy-update, so many come back together, after others have been allocated. How many is an assumption: those of one timer tick, 770 with 1000 ticks a second, 3080 (\"by 4 ms\") with 250, and 7700 (\"by 10 ms\") with 100. That SLAB is bad is judged over all three. \
    \"Same\" is judged with a margin of 2.8 %, by which SLQB's debugging code changed its own figure (1.686 and 1.640 s with eight tasks). The document gives no margin, and this one was chosen when the measured difference was known: by the rule for differences below 1 % this would be \"a difference here alone\". \"Really really bad\" has no figure: half the speed is assumed, so its direction can be judged, its size cannot. Between two accesses to shared memory come four instructions, for all designs: also an assumption. Both claims are judged over one, two and eight as well. The small differences between the lines of \"at once\" grow with them, since they are accesses; those of \"deferred\" are cache lines and waiting for locks.";

pub(super) const BY_INSTRUCTIONS: &str = "Between two accesses to shared memory the designs compute: how long is an assumption, four instructions in all other tables. With fewer, the time that a design takes is that of its accesses; with more, a design with more accesses falls behind. The claims of the mail are judged over all four. The gain is over SLQB (positive is better).";

pub(super) const ALLOCATOR: &str = "The part of that time that is spent in the allocator, masking included. Alone, `deferred` costs what a full and an empty queue cost; with eight tasks, what is added is waiting for other CPUs.";

pub(super) const REMOTE: &str = "Piggin claims that SLQB does much for objects that another CPU frees than the one that allocated them; it was tuned on a database benchmark, which does so. Four CPUs of the simulated machine allocate objects of 256 bytes and write them, and each hands them to a neighbour, which reads and frees them, in bursts of 32. The lines are the object's own too: the first moves to the CPU that reads it, and all four move whenever another CPU than the last one writes the object.";

pub(super) const MEMORY: &str = "Piggin claims that the memory of SLQB, like that of SLUB, grows at most linearly with CPUs and nodes, where that of SLAB grows faster. Each CPU allocated 1000 of each object and freed those of its neighbour; then each trimmed ten times, as SLAB does every two seconds and SLQB every three. (SLUB does nothing periodically.) SLAB's queues are counted as Linux allocates them, with the length that the objects' size gives; nodes have four CPUs. On one CPU there is no array that a node's CPUs share, as in Linux. SLAB grows with the square of nodes, by an array of twelve objects for each ordered pair; no array is for a pair of a CPU and a node. SLUB's slabs are as large as on eight CPUs whatever the number; Linux takes the machine's.";

pub(super) const PARTS: &str = "The published samples, added up. A sample falls on the instruction after the slow one, since the interrupt is taken when that one has ended (\"skid\"): the 26,385 samples of a `testl` are those of the `popf` before it, the 5,975 of a `nop` those of `cli`, the 4,888 of a `popl` those of `pushf`. So masking is counted as these three instructions and the one \
    after each. `rep stos` can be interrupted while it runs, so its samples are its own. Measured: the share, in CPU time, of an allocation and its free (the published one is of the allocation alone). Zeroing is the difference between the cost with it and without it, and masking is what saving and restoring the flags would add: a process cannot mask interrupts. So zeroing and the rest are 100 %, and masking comes on top; in the published column all three are 100 %.";

pub(super) const INSTRUCTIONS: &str = "As printed; instructions without samples are left out. None of this can be measured here: processor, compiler and program are different.";

pub(super) const SYMBOLS: &str = "As printed. The network stack, files and system calls are not modelled; of these symbols only kmem_cache_alloc and kmem_cache_free are the allocator, with 15.3 % of the samples together.";

pub(super) const TODAY: &str = "The same objects by each heap, timed on this host, and the gain over `slqb-2008` (positive is better). `system` is the C library's malloc; `brickyard-pinned` and `slqb-2008` are the library's two designs as in a kernel, with a thread in place of a CPU. Zeroing and the rest add up to the CPU time; masking would come on top.";

pub(super) const TAIL: &str = "Each allocation is timed with the processor's time stamp counter, which advances in steps. The median of all calls, and the slowest of a hundred, are below one step and cannot be measured. Shown are the median and the largest over the rounds: in the worst round the host was busy with something else.";
