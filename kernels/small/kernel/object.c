/* Objects of the kernel: processes, from a cache of Brickyard's slabs. */
#include "brickyard.h"

#include "kernel.h"

static const by_slabs *slabs;
static by_cache processes;

/* Makes the cache. The metadata are the first pages of a block, whose other pages are freed one by
 * one: any aligned part of a block can be. */
void object_init(void)
{
	const by_slab_plan plan = { .machine = machine, .caches = 1, .cpus = hart_count };
	const by_cache_spec spec = { .name = "process", .size = sizeof(struct process) };
	size_t bytes = (size_t)must(by_slabs_bytes(&plan)), at;
	unsigned order = 0;
	char *memory;

	while ((size_t)PAGE << order < bytes)
		order++;
	memory = page_alloc(order, FOR_KERNEL);
	if (!memory)
		panic("no memory for slabs");
	for (at = (bytes + PAGE - 1) / PAGE * PAGE; at < (size_t)PAGE << order; at += PAGE)
		page_free(memory + at, 0);
	must(by_slabs_init(&plan, memory, bytes, &slabs));
	must(by_cache_init(slabs, &spec, &processes));
}

/* Returns a process of zeros, or null. */
struct process *process_object(void) { return by_cache_alloc_zeroed(&processes); }

void process_object_free(struct process *process) { must(by_cache_free(&processes, process)); }

/* Gives back the pages of which no object is in use, from all harts' queues. */
void objects_give_back(void) { must(by_cache_shrink(&processes)); }
