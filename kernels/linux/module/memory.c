// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The memory: blocks of Linux's largest order, taken from the running kernel, sorted by number, and a
 * machine of one zone over them. What Linux keeps in between is a hole in the zone.
 */
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>
#include "brickyard_module.h"

const by_machine *machine;
const by_slabs *slabs;
size_t managed, first_frame, last_frame;

static unsigned long *blocks; /* first frame numbers */
static size_t block_count;
static void *machine_memory, *slab_memory;

static int by_number(const void *left, const void *right)
{
	unsigned long a = *(const unsigned long *)left, b = *(const unsigned long *)right;

	return a < b ? -1 : a > b;
}

static int take_blocks(size_t wanted)
{
	blocks = vzalloc(wanted * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	while (block_count < wanted) {
		struct page *page = alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY, LINUX_BLOCK);

		if (!page)
			break;
		blocks[block_count++] = page_to_pfn(page);
	}
	if (!block_count)
		return -ENOMEM;
	sort(blocks, block_count, sizeof(*blocks), by_number, NULL);
	first_frame = blocks[0];
	last_frame = blocks[block_count - 1] + LINUX_BLOCK_PAGES;
	return 0;
}

struct init {
	by_plan plan;
	ptrdiff_t bytes, code;
};

static void init_machine(void *argument)
{
	struct init *init = argument;

	init->code = by_machine_init(&init->plan, machine_memory, init->bytes, &machine);
}

static int make_slabs(void)
{
	by_slab_plan plan = { .machine = machine, .cpus = nr_cpu_ids };
	ptrdiff_t bytes = by_slabs_bytes(&plan), code;

	if (bytes < 0) {
		say("FAIL: by_slabs_bytes: %s", by_error_text(bytes));
		return -EINVAL;
	}
	slab_memory = vzalloc(bytes);
	if (!slab_memory)
		return -ENOMEM;
	code = by_slabs_init(&plan, slab_memory, bytes, &slabs);
	if (code) {
		say("FAIL: by_slabs_init: %s", by_error_text(code));
		slabs = NULL;
		return -EINVAL;
	}
	return 0;
}

int take_memory(size_t megabytes)
{
	by_zone_plan zone = { .kind = BY_NORMAL };
	struct init init = { .plan = { .zones = &zone, .zone_count = 1, .cpus = nr_cpu_ids } };
	size_t i, runs = 1, stack;
	int error;

	error = take_blocks(max_t(size_t, megabytes >> 2, 1));
	if (error)
		return error;
	zone.start = first_frame;
	zone.end = last_frame;
	init.bytes = by_machine_bytes(&init.plan);
	if (init.bytes < 0) {
		say("FAIL: by_machine_bytes: %s", by_error_text(init.bytes));
		return -EINVAL;
	}
	machine_memory = vmalloc(init.bytes);
	if (!machine_memory)
		return -ENOMEM;
	stack = stack_of(init_machine, &init);
	if (init.code) {
		say("FAIL: by_machine_init: %s", by_error_text(init.code));
		machine = NULL;
		return -EINVAL;
	}
	for (i = 0; i < block_count; i++) {
		ptrdiff_t added = by_add(machine, 0, blocks[i], blocks[i] + LINUX_BLOCK_PAGES);

		if (added < 0) {
			say("FAIL: by_add: %s", by_error_text(added));
			return -EINVAL;
		}
		managed += added;
		runs += i && blocks[i] != blocks[i - 1] + LINUX_BLOCK_PAGES;
	}
	say("%zu MiB in %zu runs, frames %#zx to %#zx, %zd bytes of metadata, %u CPUs",
	    managed >> (20 - PAGE_SHIFT), runs, first_frame, last_frame, init.bytes, nr_cpu_ids);
	row("stack,by_machine_init,1,,,%zu,", stack);
	return make_slabs();
}

/* Tests all invariants, and that so many frames are free. Returns 0 if all is well. */
int check_machine(const char *when, size_t expected_free)
{
	by_census *census = vzalloc(sizeof(*census));
	ptrdiff_t code;
	int error = 0;

	if (!census)
		return -ENOMEM;
	code = by_check(machine, census);
	if (code) {
		say("FAIL: %s: %s: %s", when, by_error_text(code), census->broken);
		error = -EINVAL;
	} else if (census->free + census->cached != expected_free) {
		say("FAIL: %s: %zu frames are free, expected %zu", when, census->free + census->cached,
		    expected_free);
		error = -EINVAL;
	} else {
		say("%s: every invariant holds, %zu frames are free", when, expected_free);
	}
	vfree(census);
	return error;
}

int give_memory(void)
{
	size_t i, back = 0;
	int error = 0;

	if (slabs)
		by_slabs_drain(slabs);
	if (machine) {
		by_drain(machine);
		error = check_machine("at the end", managed);
	}
	for (i = 0; i < block_count; i++) {
		if (machine) {
			ptrdiff_t removed = by_remove(machine, 0, blocks[i], blocks[i] + LINUX_BLOCK_PAGES);

			if (removed != LINUX_BLOCK_PAGES) { /* rather lost than given back in use */
				say("FAIL: by_remove of %#lx: %s", blocks[i], by_error_text(removed));
				error = -EBUSY;
				continue;
			}
		}
		__free_pages(pfn_to_page(blocks[i]), LINUX_BLOCK);
		back++;
	}
	say("%zu of %zu blocks given back to Linux", back, block_count);
	vfree(slab_memory);
	vfree(machine_memory);
	vfree(blocks);
	return error;
}
