// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Which measurements there are. A phase is one loop, written by a macro, so that both sides differ in
 * the call alone, and the compiler knows which call it is.
 */
#include <linux/gfp.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include "brickyard_module.h"

/* Allocates `count` handles by `CALL`, which gives one; `BAD(handle)` says that it gave none. */
#define TAKE(name, CALL, BAD, UNDO)                                                             \
	static noinline notrace u64 name(struct batch *batch)                                   \
	{                                                                                       \
		unsigned long *handles = batch->handles;                                        \
		unsigned int count = batch->count, order = batch->order, i;                     \
		u64 begun = rdtsc_ordered();                                                    \
                                                                                                \
		for (i = 0; i < count; i++) {                                                   \
			unsigned long handle = (unsigned long)(CALL);                           \
                                                                                                \
			if (unlikely(BAD(handle)))                                              \
				goto failed;                                                    \
			handles[i] = handle;                                                    \
		}                                                                               \
		(void)order;                                                                    \
		return rdtsc_ordered() - begun;                                                 \
	failed:                                                                                 \
		while (i--) {                                                                   \
			unsigned long handle = handles[i];                                      \
                                                                                                \
			UNDO;                                                                   \
		}                                                                               \
		return FAILED;                                                                  \
	}

/* Frees them one by one, in the order of allocation. */
#define GIVE(name, CALL)                                                                        \
	static noinline notrace u64 name(struct batch *batch)                                   \
	{                                                                                       \
		unsigned long *handles = batch->handles;                                        \
		unsigned int count = batch->count, order = batch->order, i;                     \
		u64 begun = rdtsc_ordered();                                                    \
                                                                                                \
		for (i = 0; i < count; i++) {                                                   \
			unsigned long handle = handles[i];                                      \
                                                                                                \
			CALL;                                                                   \
		}                                                                               \
		(void)order;                                                                    \
		return rdtsc_ordered() - begun;                                                 \
	}

/* Takes or frees all of them by one call, which says how many it did, until all are done. */
#define BULK(name, BEFORE, CALL, UNDO)                                                          \
	static noinline notrace u64 name(struct batch *batch)                                   \
	{                                                                                       \
		unsigned long *handles = batch->handles;                                        \
		unsigned int count = batch->count;                                              \
		long done = 0;                                                                  \
		u64 begun, ended;                                                               \
                                                                                                \
		BEFORE;                                                                         \
		begun = rdtsc_ordered();                                                        \
		while (done < count) {                                                          \
			long more = (CALL);                                                     \
                                                                                                \
			if (more <= 0)                                                          \
				break;                                                          \
			done += more;                                                           \
		}                                                                               \
		ended = rdtsc_ordered();                                                        \
		if (done == count)                                                              \
			return ended - begun;                                                   \
		UNDO;                                                                           \
		return FAILED;                                                                  \
	}

#define PAIR(name, ALLOC, BAD, FREE) TAKE(take_##name, ALLOC, BAD, FREE) GIVE(give_##name, FREE)

#define NEVER(handle) false
#define NULL_POINTER(handle) ((handle) == 0)
#define NEGATIVE(handle) ((long)(handle) < 0)
#define PAGE ((struct page *)handle)

static __always_inline unsigned long hidden(unsigned long value)
{
	asm volatile("" : "+r"(value));
	return value;
}

PAIR(nothing, hidden(i), NEVER, hidden(handle))
PAIR(linux, alloc_pages(GFP_KERNEL, order), NULL_POINTER, __free_pages(PAGE, order))
PAIR(brickyard, by_alloc(machine, order, BY_UNMOVABLE), NEGATIVE, by_free(machine, handle, order))
static const struct way pages = {
	{ take_nothing, take_linux, take_brickyard }, { give_nothing, give_linux, give_brickyard },
};

/* By node, which spares Linux the look at the task's policy. */
PAIR(linux_node, __alloc_pages(GFP_KERNEL, order, 0, NULL), NULL_POINTER, __free_pages(PAGE, order))
PAIR(brickyard_node, by_alloc_from(machine, 0, order, BY_UNMOVABLE, 0), NEGATIVE,
     by_free(machine, handle, order))
static const struct way pages_by_node = {
	{ take_nothing, take_linux_node, take_brickyard_node },
	{ give_nothing, give_linux_node, give_brickyard_node },
};

/* Charged to the task's group, which Brickyard has no notion of. */
PAIR(linux_charged, alloc_pages(GFP_KERNEL_ACCOUNT, order), NULL_POINTER, __free_pages(PAGE, order))
static const struct way pages_charged = {
	{ take_nothing, take_linux_charged, take_brickyard },
	{ give_nothing, give_linux_charged, give_brickyard },
};

/* Movable memory, as of user space. */
PAIR(linux_movable, alloc_pages(GFP_HIGHUSER_MOVABLE, order), NULL_POINTER, __free_pages(PAGE, order))
PAIR(brickyard_movable, by_alloc(machine, order, BY_MOVABLE), NEGATIVE,
     by_free(machine, handle, order))
static const struct way pages_movable = {
	{ take_nothing, take_linux_movable, take_brickyard_movable },
	{ give_nothing, give_linux_movable, give_brickyard_movable },
};

/* Many single pages by one call. Linux wants an array of nulls, which is made outside the time. */
static __always_inline long release(unsigned long *handles, unsigned int count)
{
	release_pages((struct page **)handles, count);
	return count;
}

static __always_inline long free_bulk(unsigned long *handles, unsigned int count)
{
	return by_free_bulk(machine, handles, count, NULL) ? -1 : count;
}

static __always_inline long linux_took(unsigned long *handles, unsigned int count, long before)
{
	long now = alloc_pages_bulk_array(GFP_KERNEL, count, (struct page **)handles);

	return now - before; /* it counts those that were there already */
}

BULK(bulk_nothing, (void)handles, hidden(count - done), )
BULK(take_linux_bulk, memset(handles, 0, count * sizeof(*handles)),
     linux_took(handles, count, done), release(handles, done))
BULK(take_brickyard_bulk, , by_alloc_bulk(machine, 0, BY_UNMOVABLE, handles + done, count - done),
     free_bulk(handles, done))
BULK(give_linux_bulk, , release(handles, count), )
BULK(give_brickyard_bulk, , free_bulk(handles, count), )
static const struct way bulk = {
	{ bulk_nothing, take_linux_bulk, take_brickyard_bulk },
	{ bulk_nothing, give_linux_bulk, give_brickyard_bulk },
};
static const struct way bulk_then_single = {
	{ bulk_nothing, take_linux_bulk, take_brickyard_bulk },
	{ give_nothing, give_linux, give_brickyard },
};

/* Objects. */
#define CACHE(side) (batch->caches[side])
PAIR(linux_object, kmem_cache_alloc(CACHE(LINUX), GFP_KERNEL), NULL_POINTER,
     kmem_cache_free(CACHE(LINUX), (void *)handle))
PAIR(brickyard_object, by_cache_alloc(CACHE(BRICKYARD)), NULL_POINTER,
     by_cache_free(CACHE(BRICKYARD), (void *)handle))
static const struct way objects = {
	{ take_nothing, take_linux_object, take_brickyard_object },
	{ give_nothing, give_linux_object, give_brickyard_object },
};

/* Memory by size; `order` holds the bytes. */
PAIR(linux_malloc, kmalloc(order, GFP_KERNEL), NULL_POINTER, kfree((void *)handle))
PAIR(brickyard_malloc, by_malloc(slabs, order, 0), NULL_POINTER, by_mfree(slabs, (void *)handle))
static const struct way mallocs = {
	{ take_nothing, take_linux_malloc, take_brickyard_malloc },
	{ give_nothing, give_linux_malloc, give_brickyard_malloc },
};

/* ---- the rows ---- */

#define LARGEST_BATCH 16384

static unsigned long *handles;
static bool quick;
static const struct place here = { 0, 0 }, apart = { 0, 1 };

static unsigned int total_of(unsigned int count)
{
	return max(count, quick ? 256U : 1024U);
}

static bool fits(unsigned int order, unsigned int count)
{
	return ((size_t)count << order) <= managed - managed / 4;
}

static void page_row(const char *kind, const struct way *way, unsigned int order, unsigned int count,
		     struct place place)
{
	struct batch batch = { .handles = handles, .count = count, .order = order };
	char what[24];

	if (!fits(order, count))
		return;
	snprintf(what, sizeof(what), "order %u", order);
	measure(kind, what, way, &batch, total_of(count), place);
}

static void single_rows(void)
{
	static const unsigned int counts[] = { 1, 16, 64, 256, 512, 1024, 16384 };
	unsigned int order, i;

	for (order = 0; order <= 9; order++)
		for (i = 0; i < ARRAY_SIZE(counts); i++)
			if (!quick || ((order % 3 == 0) && (counts[i] == 1 || counts[i] == 64)))
				page_row("pages", &pages, order, counts[i], here);
	page_row("by node", &pages_by_node, 0, 64, here);
	page_row("movable", &pages_movable, 0, 64, here);
	if (quick)
		return;
	page_row("by node", &pages_by_node, 3, 64, here);
	page_row("movable", &pages_movable, 9, 16, here);
	page_row("charged", &pages_charged, 0, 64, here);
}

static void bulk_rows(const char *kind, const char *then_single)
{
	static const unsigned int counts[] = { 16, 64, 128, 512, 1024 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		if (quick && counts[i] != 128 && counts[i] != 512)
			continue;
		page_row(kind, &bulk, 0, counts[i], here);
		if (then_single && !quick)
			page_row(then_single, &bulk_then_single, 0, counts[i], here);
	}
}

static void remote_rows(void)
{
	static const struct { unsigned int order, count; } rows[] = {
		{ 0, 64 }, { 0, 16 }, { 0, 1024 }, { 0, 16384 }, { 3, 16 }, { 3, 256 }, { 9, 16 },
	};
	unsigned int i;

	for (i = 0; i < (quick ? 1 : ARRAY_SIZE(rows)); i++)
		page_row("freed elsewhere", &pages, rows[i].order, rows[i].count, apart);
	page_row("bulk, freed elsewhere", &bulk, 0, 512, apart);
}

static void thread_rows(void)
{
	static const struct { unsigned int order, count; } rows[] = { { 0, 64 }, { 0, 1024 }, { 3, 64 }, { 9, 4 } };
	unsigned int i, cpus;

	for (i = 0; i < (quick ? 1 : ARRAY_SIZE(rows)); i++)
		for (cpus = 1; cpus <= 4; cpus *= 2) {
			struct batch batch = { .count = rows[i].count, .order = rows[i].order };
			char kind[24], what[24];

			snprintf(kind, sizeof(kind), "on %u CPUs", cpus);
			snprintf(what, sizeof(what), "order %u", batch.order);
			measure_threads(kind, what, &pages, &batch, quick ? 4096 : 16384, cpus);
		}
}

static void half_full_rows(void)
{
	static const struct { unsigned int order, count; } rows[] = {
		{ 0, 64 }, { 3, 16 }, { 0, 1 }, { 0, 1024 }, { 0, 16384 }, { 1, 64 }, { 2, 64 }, { 3, 1 }, { 3, 256 },
		{ 4, 16 }, { 9, 1 }, { 9, 16 },
	};
	unsigned int i;

	if (fill_half()) {
		say("no rows with half of memory in use: too little of it");
		return;
	}
	for (i = 0; i < (quick ? 2 : ARRAY_SIZE(rows)); i++)
		page_row("half full", &pages, rows[i].order, rows[i].count, here);
	bulk_rows("half full, bulk", NULL);
	empty_half();
}

static int object_rows(void)
{
	static const unsigned int sizes[] = { 64, 256, 1024 }, counts[] = { 1, 64, 1024 };
	unsigned int size, i, kind;
	by_cache cache;

	for (kind = 0; kind < 2; kind++) /* for tasks and interrupts, as Linux's; for tasks only */
		for (size = 0; size < ARRAY_SIZE(sizes); size++) {
			by_cache_spec spec = { .name = "rows", .size = sizes[size], .flags = kind ? 0 : BY_CACHE_INTERRUPTS };
			struct kmem_cache *theirs = kmem_cache_create("brickyard-rows", sizes[size], 0, 0, NULL);
			struct batch batch = { .handles = handles, .caches = { NULL, theirs, &cache } };
			char what[24];

			if (!theirs || by_cache_init(slabs, &spec, &cache)) {
				kmem_cache_destroy(theirs);
				return -ENOMEM;
			}
			snprintf(what, sizeof(what), "%u bytes", sizes[size]);
			for (i = 0; i < ARRAY_SIZE(counts); i++) {
				batch.count = counts[i];
				if (quick && (size != 1 || i == 2 || kind))
					continue;
				measure(kind ? "objects, tasks only" : "objects", what, &objects, &batch, total_of(counts[i]), here);
				if (!kind)
					measure("objects, freed elsewhere", what, &objects, &batch, total_of(counts[i]), apart);
			}
			kmem_cache_destroy(theirs);
			if (by_cache_destroy(&cache)) {
				say("FAIL: objects of a cache are lost");
				return -EINVAL;
			}
		}
	for (size = 0; size < ARRAY_SIZE(sizes); size++)
		for (i = 0; i < ARRAY_SIZE(counts); i++) {
			struct batch batch = { .handles = handles, .count = counts[i], .order = sizes[size] };
			char what[24];

			snprintf(what, sizeof(what), "%u bytes", sizes[size]);
			if (!quick || (size == 1 && i == 1))
				measure("by size", what, &mallocs, &batch, total_of(counts[i]), here);
		}
	by_slabs_drain(slabs);
	return 0;
}

int all_rows(bool few)
{
	int error;

	quick = few;
	handles = vzalloc(LARGEST_BATCH * sizeof(*handles));
	if (!handles)
		return -ENOMEM;
	error = prepare_bench(few ? 3 : 7);
	if (!error) {
		single_rows();
		bulk_rows("bulk", "bulk, then one by one");
		remote_rows();
		half_full_rows();
		thread_rows();
		error = object_rows();
		all_stacks();
	}
	finish_bench();
	vfree(handles);
	return error;
}
