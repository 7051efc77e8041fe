/* Brickyard for C: a page allocator and slabs for kernels. MIT OR Apache-2.0. */

#ifndef BRICKYARD_H
#define BRICKYARD_H

/* Made from the sources by cbindgen (see README.md). Do not edit.
 *
 * The pointers `machine`, `slabs` and `cache` of functions are never null. A result of type ptrdiff_t
 * is not negative, or one of the codes below, whose text is by_error_text(code).
 */

#ifdef __KERNEL__ /* Linux */
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/**
 * Too little memory is free.
 */
#define BY_EXHAUSTED -1

/**
 * Enough memory is free, but in pieces that are too small.
 */
#define BY_FRAGMENTED -2

/**
 * Nothing is free below the limit of the request.
 */
#define BY_ABOVE_LIMIT -3

/**
 * No zone ever has a block of this order.
 */
#define BY_ORDER_TOO_LARGE -4

/**
 * The frame is not memory that this machine handed out.
 */
#define BY_NOT_OWNED -5

/**
 * The frame is free already.
 */
#define BY_DOUBLE_FREE -6

/**
 * The block is not as large as that, or begins elsewhere.
 */
#define BY_WRONG_ORDER -7

/**
 * The range reaches outside the zone.
 */
#define BY_OUTSIDE -8

/**
 * A frame of the range is in use, or another zone's; or the cache is in use; or another CPU writes
 * a text.
 */
#define BY_BUSY -9

/**
 * A frame of the range is not memory of the zone.
 */
#define BY_ABSENT -10

/**
 * The range is isolated, or too many are.
 */
#define BY_ISOLATED -11

/**
 * An argument makes no sense: a null pointer, an unknown flag, a range or object without size, an
 * alignment that is not a power of two, or a zone that the machine does not have.
 */
#define BY_INVALID -12

/**
 * The memory is too small; the function for its size tells how much is needed.
 */
#define BY_TOO_LITTLE_MEMORY -13

/**
 * No zone can be as large as that or end as high, or no machine have as many zones, CPUs or
 * caches.
 */
#define BY_TOO_LARGE -14

/**
 * Zones must be sorted by node, then by kind (BY_DMA, BY_DMA32, BY_NORMAL, BY_HIGHMEM,
 * BY_ZONE_MOVABLE), then by start; those of one node and kind must not overlap; nodes are numbered
 * from 0 without a gap.
 */
#define BY_UNSORTED -15

/**
 * The platform has no address for a frame that slabs were to use.
 */
#define BY_UNMAPPED -16

/**
 * An interrupt used a cache for tasks only.
 */
#define BY_TASK_ONLY -17

/**
 * The address is no object of this cache.
 */
#define BY_NOT_AN_OBJECT -18

/**
 * An object was written to while it was not its user's.
 */
#define BY_DAMAGED -19

/**
 * An invariant does not hold: metadata were overwritten, or the platform broke a promise.
 */
#define BY_BROKEN -20

/**
 * The pages stay in place until they are freed: page tables, kernel stacks, most slabs.
 */
#define BY_UNMOVABLE 0

/**
 * The pages can be migrated or written out.
 */
#define BY_MOVABLE 1

/**
 * The pages cannot be moved, but can be reclaimed on request.
 */
#define BY_RECLAIMABLE 2

/**
 * The caller may not wait.
 */
#define BY_ATOMIC 4

/**
 * The caller is an interrupt, and may have interrupted anything. It cannot wait either. (Frees
 * have no flags: the platform's `in_interrupt` speaks for them.)
 */
#define BY_INTERRUPT 8

/**
 * From zones of kind BY_DMA only.
 */
#define BY_FROM_DMA 16

/**
 * From zones up to kind BY_DMA32.
 */
#define BY_FROM_DMA32 32

/**
 * From zones up to kind BY_NORMAL. The default for what is not movable.
 */
#define BY_FROM_NORMAL 48

/**
 * From zones up to kind BY_HIGHMEM.
 */
#define BY_FROM_HIGHMEM 64

/**
 * From zones of any kind. The default for BY_MOVABLE.
 */
#define BY_FROM_ANY 80

/**
 * The contents are in the new place, which is the owner's now; the old place is the allocator's.
 */
#define BY_MOVED 0

/**
 * The owner needs neither place: both are the allocator's.
 */
#define BY_NOT_NEEDED 1

/**
 * Not now: another try is worthwhile.
 */
#define BY_LATER 2

/**
 * This block can never be moved.
 */
#define BY_NEVER 3

/**
 * The owner does not know the block. Neither place changes hands.
 */
#define BY_UNKNOWN 4

/**
 * The page was freed, by `by_free`.
 */
#define BY_FREED 0

/**
 * The page was active, and is inactive now.
 */
#define BY_DEACTIVATED 1

/**
 * The page cannot be taken now.
 */
#define BY_PAGE_BUSY 2

/**
 * There is no such page, or it is not of that activity.
 */
#define BY_UNSUITABLE 3

/**
 * There is no memory here: the lump ends.
 */
#define BY_HOLE 4

/**
 * All memory that the kernel maps.
 */
#define BY_NORMAL 0

/**
 * Below 16 MiB on x86.
 */
#define BY_DMA 1

/**
 * Below 4 GiB.
 */
#define BY_DMA32 2

/**
 * Memory that the kernel does not map permanently.
 */
#define BY_HIGHMEM 3

/**
 * Only for pages that can be moved.
 */
#define BY_ZONE_MOVABLE 4

/**
 * Compaction, but no lumpy reclaim. The default.
 */
#define BY_COMPACT 0

/**
 * Lumpy reclaim, but no compaction.
 */
#define BY_LUMPY 1

/**
 * Neither.
 */
#define BY_PLAIN 2

/**
 * The cache is used in interrupts too, so that calls mask them: not in those that nothing masks.
 */
#define BY_CACHE_INTERRUPTS 1

/**
 * The objects can be given back on request: their pages are grouped.
 */
#define BY_CACHE_RECLAIMABLE 2

/**
 * `/proc/buddyinfo`.
 */
#define BY_BUDDYINFO 0

/**
 * `/proc/pagetypeinfo`.
 */
#define BY_PAGETYPEINFO 1

/**
 * `/sys/kernel/debug/extfrag/unusable_index`.
 */
#define BY_UNUSABLE_INDEX 2

/**
 * `/sys/kernel/debug/extfrag/extfrag_index`.
 */
#define BY_EXTFRAG_INDEX 3

/**
 * All memory of an embedder: zones by node, with their platform and hooks. Opaque, and in the
 * embedder's memory.
 */
typedef struct by_machine by_machine;

/**
 * All caches of a machine. Opaque, and in the embedder's memory.
 */
typedef struct by_slabs by_slabs;

/**
 * A zone. Frames are numbers: a physical address divided by the size of a page.
 */
typedef struct by_zone_plan {
  /**
   * The first frame that the zone can ever hold.
   */
  size_t start;
  /**
   * The frame after the last one, at most PTRDIFF_MAX: results are frame numbers or negative
   * codes.
   */
  size_t end;
  /**
   * The node, counted from 0.
   */
  uint32_t node;
  /**
   * BY_NORMAL, BY_DMA, BY_DMA32, BY_HIGHMEM or BY_ZONE_MOVABLE.
   */
  uint32_t kind;
  /**
   * The highest order that is handed out, at most 18. 0: 10.
   */
  uint32_t max_order;
  /**
   * The order of a page block, at most max_order. 0: 9, or max_order if that is less.
   */
  uint32_t page_block_order;
  /**
   * The share of the zone's memory that may wait in CPUs' stashes, in percent; each CPU has an
   * equal part of it. 0: 2.
   */
  uint32_t stash_percent;
  /**
   * The share that may be set aside for atomic requests above order 0, in percent. 0: 1; above
   * 100: nothing.
   */
  uint32_t set_aside_percent;
} by_zone_plan;

/**
 * Work for another CPU: to be called once, there, with its argument.
 */
typedef void (*by_work)(void *argument);

#if !defined(BY_LINKED)
/**
 * What the embedder says of its CPUs. A function that is null is not needed: with one CPU, and no
 * interrupts that use Brickyard, all of them may be (slabs need `address`). With such interrupts,
 * `in_interrupt`, `mask_interrupts` and `restore_interrupts` must be there. Each is called with
 * `context`, from every CPU, and must not call Brickyard.
 *
 * `cpu`, `pin`, `unpin` and `in_interrupt` are called by every request and free.
 */
typedef struct by_platform {
  /**
   * Passed to every function.
   */
  void *context;
  /**
   * Returns the CPU that runs the caller, counted from 0. Null: always 0.
   */
  size_t (*cpu)(void *context);
  /**
   * Keeps the caller on its CPU, and all other tasks from it, until `unpin`; returns the CPU.
   * Pins nest. Null: there is nothing to do.
   */
  size_t (*pin)(void *context);
  /**
   * Ends a `pin`.
   */
  void (*unpin)(void *context);
  /**
   * Returns true if the caller may have interrupted other code on this CPU. Null: never.
   */
  bool (*in_interrupt)(void *context);
  /**
   * Masks interrupts on this CPU, and returns the state found.
   */
  size_t (*mask_interrupts)(void *context);
  /**
   * Restores the state that `mask_interrupts` found.
   */
  void (*restore_interrupts)(void *context, size_t found);
  /**
   * Called while waiting for another CPU. Null: the processor's instruction for that.
   */
  void (*relax)(void *context);
  /**
   * Calls `work(argument)` once, as a task on `cpu`, waits for its end and returns true. Returns
   * false without calling it if that cannot be done. `cpu` may be the caller's own. Called only
   * by callers that may sleep. Null: it never can.
   */
  bool (*run_on)(void *context, size_t cpu, by_work work, void *argument);
  /**
   * Returns the address of a frame, or null if it has none; for slabs only.
   */
  void *(*address)(void *context, size_t frame);
} by_platform;
#endif

#if defined(BY_LINKED)
/**
 * The platform is the functions `by_cpu`, `by_pin` and the others that the embedder links.
 */
typedef struct by_platform {
  /**
   * Not used: a structure of C has a member.
   */
  uint8_t unused;
} by_platform;
#endif

/**
 * What a request that found nothing would need.
 */
typedef struct by_need {
  /**
   * The least number of frames to free.
   */
  size_t frames;
  /**
   * The order requested.
   */
  uint32_t order;
  /**
   * The highest kind of zone that helps.
   */
  uint32_t highest;
} by_need;

/**
 * What the embedder can do when memory is short. A function that is null is not offered. They are
 * called without any lock, for requests that may sleep (`wake`: for all). They may free. What they
 * allocate, they request as BY_ATOMIC. An answer that means nothing counts as BY_UNKNOWN,
 * of `evict` as BY_UNSUITABLE.
 */
typedef struct by_hooks {
  /**
   * Passed to every function.
   */
  void *context;
  /**
   * Frees at least `need->frames` frames if it can, oldest first. Returns the number freed; 0
   * ends the attempt.
   */
  size_t (*reclaim)(void *context, const struct by_need *need);
  /**
   * Wakes what frees pages in the background, since a zone fell below its low watermark. Must
   * not wait.
   */
  void (*wake)(void *context, const struct by_need *need);
  /**
   * Returns true if the block could be moved, as far as can be told without trying. Null: all
   * can.
   */
  bool (*can_move)(void *context, size_t frame, uint32_t order);
  /**
   * Moves the contents of the block at `from` to the one at `to`. Returns BY_MOVED,
   * BY_NOT_NEEDED, BY_LATER, BY_NEVER or BY_UNKNOWN. The owner may be freeing the block at this
   * moment, so a lock of the owner's must make sure that BY_MOVED and BY_NOT_NEEDED are returned
   * only for a block that is still its own and of this order, and that it is not freed any more.
   * The limit of a request is not remembered: a page that must stay below one must not be moved.
   * Null: nothing is compacted.
   */
  uint32_t (*migrate)(void *context, size_t from, uint32_t order, size_t to);
  /**
   * Tells the page of the frames `start` to `end` that would be taken next, and whether it is
   * active; returns false if there is none. For lumpy reclaim; null: not offered.
   */
  bool (*oldest)(void *context, size_t start, size_t end, size_t *frame, bool *active);
  /**
   * Takes this page away if it is as active as told. Returns BY_FREED, BY_DEACTIVATED,
   * BY_PAGE_BUSY, BY_UNSUITABLE or BY_HOLE. For lumpy reclaim.
   */
  uint32_t (*evict)(void *context, size_t frame, bool active);
} by_hooks;

/**
 * All that a machine is built from.
 */
typedef struct by_plan {
  /**
   * The zones, sorted by node, then by kind (BY_DMA, BY_DMA32, BY_NORMAL, BY_HIGHMEM,
   * BY_ZONE_MOVABLE), then by start. Those of one node and kind must not overlap. The spans of
   * others may, as where nodes interleave; each frame still belongs to one zone, by by_add.
   */
  const struct by_zone_plan *zones;
  /**
   * The number of zones.
   */
  size_t zone_count;
  /**
   * The number of CPUs that have stashes of their own. 0: 1.
   */
  size_t cpus;
  /**
   * BY_COMPACT, BY_LUMPY or BY_PLAIN.
   */
  uint32_t slow_path;
  /**
   * The CPUs.
   */
  struct by_platform platform;
  /**
   * What can be done when memory is short.
   */
  struct by_hooks hooks;
} by_plan;

/**
 * Adjacent frames, any number.
 */
typedef struct by_contiguous {
  /**
   * The number of frames; need not be a power of two.
   */
  size_t frames;
  /**
   * The first frame's number is a multiple of this power of two. 0: 1.
   */
  size_t align;
  /**
   * No multiple of this power of two lies inside. 0: no boundary.
   */
  size_t boundary;
  /**
   * All frames are at or above this one.
   */
  size_t start;
  /**
   * All frames are below this one. 0: no limit.
   */
  size_t end;
} by_contiguous;

/**
 * What slabs are built from.
 */
typedef struct by_slab_plan {
  /**
   * The machine that pages come from. Its users must leave alone what slabs took. The platform's
   * `address` must be linear over all zones up to BY_NORMAL: page i after the first frame of
   * them is at its address plus i pages. That frame, rounded down to the largest block of any
   * zone, must have an address, too, which is aligned to such a block; else BY_UNMAPPED. Tables
   * of 65 bytes a page cover all from there to the last of these zones, holes included.
   */
  const struct by_machine *machine;
  /**
   * log2 of the bytes of a page, 10 to 16. 0: 12.
   */
  uint32_t page_shift;
  /**
   * The most caches at a time beside the general sizes, at most 200. 0: 64.
   */
  uint32_t caches;
  /**
   * The number of CPUs that have queues of their own; others use slabs without. 0: 1.
   */
  size_t cpus;
  /**
   * Checks by names of caches, such as "FZPU,inode;U,dentry", as Linux's slab_debug. Null: none.
   * UTF-8; the text stays as it is while the slabs are used.
   */
  const char *checks;
  /**
   * Told what is found, with checks or without (some double frees), as a text of `length` bytes,
   * at most 511, without a zero behind it. May be called by any user of slabs, also in
   * interrupts. Must not use the cache that it is about. Null: nobody is told.
   */
  void (*report)(const char *text, size_t length);
} by_slab_plan;

/**
 * What a cache is made from.
 */
typedef struct by_cache_spec {
  /**
   * The name in statistics and checks, in UTF-8. The text stays as it is while the cache lives.
   */
  const char *name;
  /**
   * The bytes of an object.
   */
  size_t size;
  /**
   * A power of two up to a page. 0: a word.
   */
  size_t align;
  /**
   * BY_CACHE_INTERRUPTS, BY_CACHE_RECLAIMABLE, both or neither.
   */
  uint32_t flags;
  /**
   * Called for each object when its slab is made; an object that is freed is as this left it.
   * Must not use its own cache: each object would need another slab. Null: none.
   */
  void (*constructor)(void *object);
} by_cache_spec;

/**
 * A cache: in memory of the embedder, who must not copy it. All zeros are no cache, and so is what
 * by_cache_destroy leaves: nothing can be requested from it.
 */
typedef struct by_cache {
  /**
   * Not for the embedder.
   */
  size_t opaque[6];
} by_cache;

/**
 * Counts of a zone, in frames. They are hints while others use the zone.
 */
typedef struct by_counts {
  /**
   * Added, less those reserved.
   */
  size_t managed;
  /**
   * Free in the zone.
   */
  size_t free;
  /**
   * Free in CPUs' stashes.
   */
  size_t cached;
  /**
   * Double frees that were noticed late, when a stash was flushed.
   */
  size_t refused_late;
  /**
   * The min watermark.
   */
  size_t min;
  /**
   * The low watermark.
   */
  size_t low;
  /**
   * The high watermark.
   */
  size_t high;
  /**
   * Requests that fell back on a page block of another mobility, without claiming it.
   */
  uint64_t fallbacks;
  /**
   * Requests that claimed a page block of another mobility.
   */
  uint64_t claims;
} by_counts;

/**
 * What the check found.
 */
typedef struct by_census {
  /**
   * Frames that are free.
   */
  size_t free;
  /**
   * Frames that are free in an isolated range.
   */
  size_t isolated;
  /**
   * Frames in use.
   */
  size_t allocated;
  /**
   * Frames that are free in CPUs' stashes.
   */
  size_t cached;
  /**
   * Frames reserved.
   */
  size_t reserved;
  /**
   * If an invariant does not hold: a frame that shows it, or SIZE_MAX.
   */
  size_t frame;
  /**
   * If an invariant does not hold: its name and what was found, with a zero behind.
   */
  char broken[160];
} by_census;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the text of a code, for people. Never null. A result that is no error is "success".
 */
const char *by_error_text(ptrdiff_t code);

/**
 * Returns the bytes of memory that a machine of this plan needs, at any address; or BY_INVALID,
 * BY_UNSORTED, BY_TOO_LARGE. `zones` of the plan is read, its functions are not called.
 *
 * # Safety
 * `plan` points to a plan, or is null; `zones` of the plan points to `zone_count` of them, or is
 * null.
 */
ptrdiff_t by_machine_bytes(const struct by_plan *plan);

/**
 * Builds a machine in `memory`, without memory to hand out (see by_add), and writes where it is to
 * `*machine`. Returns 0; or what by_machine_bytes returns, or BY_TOO_LITTLE_MEMORY. The plan is
 * not needed any more afterwards.
 *
 * # Safety
 * `plan` points to a plan whose functions keep the promises told there; `memory` is `bytes` bytes
 * that nobody else uses from now on, as long as the machine is used; `machine` can be written.
 */
ptrdiff_t by_machine_init(const struct by_plan *plan,
                          void *memory,
                          size_t bytes,
                          const struct by_machine **machine);

/**
 * Takes a block of 2^order frames, from node 0 if possible. Returns its first frame; or
 * BY_EXHAUSTED, BY_FRAGMENTED, BY_ORDER_TOO_LARGE, or BY_INVALID for unknown flags. A request that
 * is neither BY_ATOMIC nor BY_INTERRUPT may call all hooks.
 */
ptrdiff_t by_alloc(const struct by_machine *machine, uint32_t order, uint32_t flags);

/**
 * Takes 2^order frames from this node if possible, every frame below `limit` unless that is 0.
 * Returns what by_alloc does, or BY_ABOVE_LIMIT. A node that the machine does not have is node 0,
 * here and below.
 */
ptrdiff_t by_alloc_from(const struct by_machine *machine,
                        uint32_t node,
                        uint32_t order,
                        uint32_t flags,
                        size_t limit);

/**
 * Takes exactly the block of 2^order frames at `frame`, of whatever zone. Returns 0; or BY_BUSY,
 * BY_ABSENT, BY_OUTSIDE, BY_ISOLATED, BY_ORDER_TOO_LARGE, or BY_INVALID, also if no such block
 * begins there.
 */
ptrdiff_t by_alloc_at(const struct by_machine *machine,
                      size_t frame,
                      uint32_t order,
                      uint32_t flags);

/**
 * Takes up to `count` single frames, from this node if possible, and writes their numbers. Returns
 * how many; or the reason why there was none, as by_alloc.
 *
 * # Safety
 * `frames` has room for `count`.
 */
ptrdiff_t by_alloc_bulk(const struct by_machine *machine,
                        uint32_t node,
                        uint32_t flags,
                        size_t *frames,
                        size_t count);

/**
 * Takes back the 2^order frames at `frame`: a whole block, or any aligned part of one. Returns 0;
 * or BY_NOT_OWNED, BY_DOUBLE_FREE, BY_WRONG_ORDER, and then nothing has changed.
 */
ptrdiff_t by_free(const struct by_machine *machine, size_t frame, uint32_t order);

/**
 * Takes back `count` single frames. Returns 0; or the reason why one was refused, as by_free.
 * Those before it are freed then; it and those after it are not. Writes how many were freed to
 * `*freed`, unless that is null.
 *
 * # Safety
 * `frames` points to `count` of them; `freed` can be written, or is null.
 */
ptrdiff_t by_free_bulk(const struct by_machine *machine,
                       const size_t *frames,
                       size_t count,
                       size_t *freed);

/**
 * Takes back the frames from `start` up to, but not including, `end`, of one zone: any number, all
 * in use. Returns 0; or as by_free, or BY_INVALID for no frames, and then nothing has changed.
 */
ptrdiff_t by_free_range(const struct by_machine *machine, size_t start, size_t end);

/**
 * Takes adjacent frames, from this node if possible. What is movable is moved out of the way, by
 * the hook `migrate`. Free them by by_free_range, whole or in parts. Returns the first frame; or,
 * of the first zone that has such a place, BY_BUSY, BY_ISOLATED (also if too much is being moved
 * at this moment: try again) or BY_EXHAUSTED (it would fall below its watermark); BY_OUTSIDE if
 * none has; or BY_INVALID, also for BY_ATOMIC and BY_INTERRUPT, since it is for callers that may
 * sleep. O(zones).
 *
 * # Safety
 * `wanted` points to such a request, or is null.
 */
ptrdiff_t by_alloc_contiguous(const struct by_machine *machine,
                              uint32_t node,
                              const struct by_contiguous *wanted,
                              uint32_t flags);

/**
 * Returns the number of the zone that has the frame, in the order of the plan; if none has it, the
 * first whose span contains it; or BY_NOT_OWNED.
 */
ptrdiff_t by_zone_of(const struct by_machine *machine, size_t frame);

/**
 * Returns the frames of every reachable CPU's stash to the zones. Returns how many.
 */
ptrdiff_t by_drain(const struct by_machine *machine);

/**
 * Compacts a zone, by the hook `migrate`. Returns the number of frames that were moved, or
 * BY_INVALID. For callers that may sleep.
 */
ptrdiff_t by_compact(const struct by_machine *machine, size_t zone);

/**
 * Sets all watermarks and reserves by Linux's rules, from `min_free_kbytes` and the memory that
 * the zones have now. Call it again when memory comes or goes. Until it is called, nothing is held
 * back. Pages of 0 bytes change nothing.
 */
void by_set_min_free_kbytes(const struct by_machine *machine, size_t kbytes, size_t page_bytes);

/**
 * Returns Linux's choice of `min_free_kbytes` for the memory that the machine has now.
 */
size_t by_min_free_kbytes(const struct by_machine *machine, size_t page_bytes);

/**
 * Adds the frames from `start` up to, but not including, `end` to a zone. What it has already
 * stays as it is. Returns the number of new frames; or BY_OUTSIDE, BY_INVALID, or BY_BUSY if
 * another zone has one of the frames, and then nothing has changed; or BY_BUSY if another CPU is
 * removing or reserving one at this moment, and then those before may have been added. Where the
 * spans of zones overlap, only one CPU may be adding at a time.
 */
ptrdiff_t by_add(const struct by_machine *machine, size_t zone, size_t start, size_t end);

/**
 * Keeps the free frames of a range from being handed out. Returns how many; or BY_BUSY (also if
 * another CPU is removing or reserving some at this moment), BY_ISOLATED (four CPUs are at that),
 * BY_OUTSIDE, BY_INVALID, and then nothing has changed.
 */
ptrdiff_t by_reserve(const struct by_machine *machine, size_t zone, size_t start, size_t end);

/**
 * Frees the reserved frames of a range. Returns how many; or BY_OUTSIDE, BY_INVALID, or BY_BUSY if
 * another CPU is removing or reserving one at this moment.
 */
ptrdiff_t by_unreserve(const struct by_machine *machine, size_t zone, size_t start, size_t end);

/**
 * Removes a range that nobody uses from a zone. Returns how many frames it had; or BY_BUSY,
 * BY_ISOLATED, BY_OUTSIDE, BY_INVALID, as by_reserve, and then nothing has changed.
 */
ptrdiff_t by_remove(const struct by_machine *machine, size_t zone, size_t start, size_t end);

/**
 * Removes a range after the hook `migrate` has moved what is movable there elsewhere in the zone.
 * Returns what by_remove does, or BY_ISOLATED. What was moved stays moved. For callers that may
 * sleep.
 */
ptrdiff_t by_offline(const struct by_machine *machine, size_t zone, size_t start, size_t end);

/**
 * Returns the bytes of memory that slabs of this plan need, at any address: 65 for each frame of
 * the zones up to BY_NORMAL, holes included, and some for each cache and CPU. Or BY_INVALID,
 * BY_TOO_LARGE, BY_UNMAPPED.
 *
 * # Safety
 * `plan` points to a plan, or is null.
 */
ptrdiff_t by_slabs_bytes(const struct by_slab_plan *plan);

/**
 * Builds slabs in `memory`, with a cache for each general size, and writes where they are to
 * `*slabs`. Returns 0; or what by_slabs_bytes returns, or BY_TOO_LITTLE_MEMORY.
 *
 * # Safety
 * `plan` points to a plan that keeps what is said there; `memory` is `bytes` bytes that nobody
 * else uses from now on; `slabs` can be written. The platform keeps its promises.
 */
ptrdiff_t by_slabs_init(const struct by_slab_plan *plan,
                        void *memory,
                        size_t bytes,
                        const struct by_slabs **slabs);

/**
 * Returns memory of at least `size` bytes, up to 32 KiB, aligned to `align` (a power of two up to
 * a page; 0: 16), with any content; or null, also for any other size or alignment. To be called by
 * tasks and interrupts, except those that nothing masks. For more, by_alloc.
 */
void *by_malloc(const struct by_slabs *slabs, size_t size, size_t align);

/**
 * Takes back what by_malloc returned; null is nothing. Returns 0; or BY_NOT_AN_OBJECT,
 * BY_DOUBLE_FREE, and then nothing has changed.
 *
 * # Safety
 * `memory` is null, or nobody uses it any more.
 */
ptrdiff_t by_mfree(const struct by_slabs *slabs, void *memory);

/**
 * Returns how many bytes can be used of what by_malloc returned; 0 for an address that lies in
 * none of its slabs.
 */
size_t by_usable(const struct by_slabs *slabs, void *memory);

/**
 * Makes a cache in `*cache`. Returns 0; or BY_INVALID, BY_TOO_LARGE, and then `*cache` is as it
 * was.
 *
 * # Safety
 * `spec` points to one whose constructor may be called; `cache` is memory of any content, but no
 * cache that still is to be used: it would be lost.
 */
ptrdiff_t by_cache_init(const struct by_slabs *slabs,
                        const struct by_cache_spec *spec,
                        struct by_cache *cache);

/**
 * Returns an object with any content, or with what the constructor made; or null. A cache without
 * BY_CACHE_INTERRUPTS requests pages as a caller that may sleep, and so may call all hooks; one
 * with it requests them as BY_ATOMIC.
 */
void *by_cache_alloc(const struct by_cache *cache);

/**
 * Returns an object of zeros; or null, always so if there is a constructor.
 */
void *by_cache_alloc_zeroed(const struct by_cache *cache);

/**
 * Takes an object back. Returns 0; or BY_NOT_AN_OBJECT, BY_DOUBLE_FREE, BY_DAMAGED, BY_TASK_ONLY,
 * or BY_INVALID without a cache, and then nothing has changed. Without checks not every bad free
 * is noticed.
 *
 * # Safety
 * `object` came from this cache, and nobody uses it any more.
 */
ptrdiff_t by_cache_free(const struct by_cache *cache, void *object);

/**
 * Gives back all pages of which no object is in use, as far as CPUs can be reached. For callers
 * that may sleep: an interrupt reaches no other CPU. Returns 0, or BY_INVALID without a cache.
 */
ptrdiff_t by_cache_shrink(const struct by_cache *cache);

/**
 * Ends a cache. Returns 0; BY_BUSY if objects are in use, or lie in the queues of CPUs that cannot
 * be reached (see by_slabs_drain), or if by_slabs_trim, by_slabs_drain or by_write_slabinfo is
 * just at this cache, and then the cache stays; or BY_INVALID if there is none.
 *
 * # Safety
 * No other CPU uses the cache.
 */
ptrdiff_t by_cache_destroy(struct by_cache *cache);

/**
 * Gives back some of what has lain unused on this CPU since the last call. To be called on every
 * CPU every few seconds.
 */
void by_slabs_trim(const struct by_slabs *slabs);

/**
 * Gives back all that lies in this CPU's queues, and in those that CPUs share.
 */
void by_slabs_drain(const struct by_slabs *slabs);

/**
 * Writes `/proc/slabinfo` to `buffer`, as by_write_text does.
 *
 * # Safety
 * What by_write_text requires.
 */
ptrdiff_t by_write_slabinfo(const struct by_slabs *slabs, char *buffer, size_t bytes);

/**
 * Writes the counts of a zone. Returns 0 or BY_INVALID.
 *
 * # Safety
 * `counts` can be written, or is null.
 */
ptrdiff_t by_zone_counts(const struct by_machine *machine, size_t zone, struct by_counts *counts);

/**
 * Writes one of Linux's texts about the machine to `buffer`, as much as fits, and a zero behind
 * it. Returns the length of all of it without the zero, as snprintf does; BY_BUSY if another CPU
 * writes one at this moment, or BY_INVALID. O(memory).
 *
 * # Safety
 * `buffer` has `bytes` bytes that can be written; it may be null if `bytes` is 0.
 */
ptrdiff_t by_write_text(const struct by_machine *machine,
                        uint32_t which,
                        char *buffer,
                        size_t bytes);

/**
 * Tests every invariant, while no other CPU uses the machine. O(memory). Returns 0, or BY_BROKEN.
 * Writes what was counted or found to `*census`, unless that is null.
 *
 * # Safety
 * `census` can be written, or is null.
 */
ptrdiff_t by_check(const struct by_machine *machine, struct by_census *census);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BRICKYARD_H */

/* What the embedder defines. */
#ifdef __cplusplus
extern "C" {
#endif
#ifdef BY_LINKED /* instead of the table by_platform; each does what is said there */
size_t by_cpu(void);
size_t by_pin(void);
void by_unpin(void);
bool by_in_interrupt(void);
size_t by_mask_interrupts(void);
void by_restore_interrupts(size_t found);
void by_relax(void);
bool by_run_on(size_t cpu, by_work work, void *argument);
void *by_address(size_t frame);
#endif
#ifdef BY_FREESTANDING
/* Called at a bug, with the place in the source: `length` bytes at `file`, and the line. Must not
 * return. */
__attribute__((noreturn)) void by_panic(const char *file, size_t length, uint32_t line);
#endif
#ifdef __cplusplus
}
#endif
