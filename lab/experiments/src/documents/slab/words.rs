//! The report's text about the tables of 2008.

use crate::document::Mistake;

pub(super) const ASKED: &str = "SLQB keeps a queue of free objects for each CPU. Is it fast for a program that opens and closes sockets, alone and as eight tasks on eight CPUs, and where does its time go? The document says: no bad effect, the same as SLUB; most of the time goes into clearing the object, then into masking interrupts, \
    and caches that interrupts never use need no masking.";

pub(super) const CLAIMED: &str = "Eight tasks on eight CPUs have no bad effect with SLQB; clearing objects and masking interrupts take the time.";

pub(super) const DECIDES: &str = "CPU time on this host, whose CPUs the eight tasks share.";

pub(super) const MISTAKES: [Mistake; 5] = [
    Mistake::conclusion(
        "\"No bad effect\": with eight tasks on eight CPUs each takes 1.686 s instead of 1.300, 30 % longer, and 30 % more CPU time. Whether SLQB or the rest of the kernel is the cause is not said.",
    ),
    Mistake::conclusion(
        "\"Same than SLUB\", and SLAB \"really really bad\": no figure of either is given.",
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

pub(super) const TIME: &str = "Timed on this host: the objects of one socket (1216 zeroed, 640, 256 and 192 bytes) are allocated and freed in turn by the rebuilt SLQB, alone and by eight tasks. The document times a whole program with system calls, for which this is only the part of the allocator; seconds and nanoseconds cannot be compared, the two lines can. \
    The document's eight tasks have a CPU each; here they share those of this host, so \"real\" mostly shows how many there are, and the direction is judged by CPU time of one task. That column is computed from the published figures: 0.078 + 1.207 s alone, (0.614 + 12.737) / 8 with eight. In a process user and system time cannot be separated.";

pub(super) const PARTS: &str = "The published samples, added up. A sample falls on the instruction after the slow one, since the interrupt is taken when that one has ended (\"skid\"): the 26,385 samples of a `testl` are those of the `popf` before it, the 5,975 of a `nop` those of `cli`, the 4,888 of a `popl` those of `pushf`. So masking is counted as these three instructions and the one \
    after each. `rep stos` can be interrupted while it runs, so its samples are its own. Measured: the share, in CPU time, of an allocation and its free (the published one is of the allocation alone). Zeroing is the difference between the cost with it and without it, and masking is what saving and restoring the flags would add: a process cannot mask interrupts. So zeroing and the rest are 100 %, and masking comes on top; in the published column all three are 100 %.";

pub(super) const INSTRUCTIONS: &str = "As printed; instructions without samples are left out. None of this can be measured here: processor, compiler and program are different.";

pub(super) const SYMBOLS: &str = "As printed. The network stack, files and system calls are not modelled; of these symbols only kmem_cache_alloc and kmem_cache_free are the allocator, with 15.3 % of the samples together.";

pub(super) const TODAY: &str = "The same objects by each heap, timed on this host, and the gain over `slqb-2008` (positive is better). `system` is the C library's malloc; `brickyard-pinned` and `slqb-2008` are the library's two designs as in a kernel, with a thread in place of a CPU; `brickyard` is the heap of a process. Zeroing and the rest add up to the CPU time; masking would come on top.";

pub(super) const TAIL: &str = "Each allocation is timed with the processor's time stamp counter, which advances in steps. The median of all calls, and the slowest of a hundred, are below one step and cannot be measured. Shown are the median and the largest over the rounds: in the worst round the host was busy with something else.";
