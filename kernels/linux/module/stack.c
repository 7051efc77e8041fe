// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How much stack a call takes: the free part of this task's stack is filled with a pattern, and looked
 * at after the call. An interrupt in between adds its first frame, some 200 bytes.
 */
#include <linux/gfp.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include "brickyard_module.h"

#define PATTERN 0x5bad57ac5bad57acUL
#define MARGIN 256 /* bytes below the stack pointer that this file itself may use */

static noinline unsigned long *lowest(void)
{
	return end_of_stack(current) + 16; /* behind the kernel's own mark of its end */
}

static noinline size_t deepest(unsigned long top)
{
	unsigned long *p = lowest();

	while ((unsigned long)p < top && READ_ONCE(*p) == PATTERN)
		p++;
	return top - (unsigned long)p;
}

static noinline unsigned long paint(void)
{
	unsigned long top = current_stack_pointer;
	unsigned long *p;

	for (p = lowest(); (unsigned long)p < top - MARGIN; p++)
		WRITE_ONCE(*p, PATTERN);
	return top;
}

static noinline size_t one_try(void (*call)(void *), void *argument)
{
	unsigned long top = paint();

	call(argument);
	return deepest(top);
}

static noinline void nothing(void *argument)
{
}

/* Returns the bytes of stack below the caller of `call`. Less than MARGIN cannot be told apart. */
size_t stack_of(void (*call)(void *), void *argument)
{
	size_t used = one_try(call, argument);

	return used <= MARGIN ? MARGIN : used;
}

/* ---- calls beside Linux's ---- */

struct some {
	unsigned int order, count;
	unsigned long *handles;
};

static void linux_pages(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		some->handles[i] = (unsigned long)alloc_pages(GFP_KERNEL, some->order);
}

static void linux_pages_back(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		__free_pages((struct page *)some->handles[i], some->order);
}

static void brickyard_pages(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		some->handles[i] = by_alloc(machine, some->order, BY_UNMOVABLE);
}

static void brickyard_pages_back(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		by_free(machine, some->handles[i], some->order);
}

static void linux_bulk(void *argument)
{
	struct some *some = argument;

	memset(some->handles, 0, some->count * sizeof(*some->handles));
	alloc_pages_bulk_array(GFP_KERNEL, some->count, (struct page **)some->handles);
}

static void linux_bulk_back(void *argument)
{
	struct some *some = argument;

	release_pages((struct page **)some->handles, some->count);
}

static void brickyard_bulk(void *argument)
{
	struct some *some = argument;

	by_alloc_bulk(machine, 0, BY_UNMOVABLE, some->handles, some->count);
}

static void brickyard_bulk_back(void *argument)
{
	struct some *some = argument;

	by_free_bulk(machine, some->handles, some->count, NULL);
}

static void linux_objects(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		some->handles[i] = (unsigned long)kmalloc(256, GFP_KERNEL);
}

static void linux_objects_back(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		kfree((void *)some->handles[i]);
}

static void brickyard_objects(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		some->handles[i] = (unsigned long)by_malloc(slabs, 256, 0);
}

static void brickyard_objects_back(void *argument)
{
	struct some *some = argument;
	unsigned int i;

	for (i = 0; i < some->count; i++)
		by_mfree(slabs, (void *)some->handles[i]);
}

static void both_stacks(const char *what, struct some *some, void (*const calls[2][2])(void *))
{
	size_t most[2][2] = {};
	int side, phase, i;

	for (i = 0; i < 3; i++)
		for (side = 0; side < 2; side++)
			for (phase = 0; phase < 2; phase++)
				most[side][phase] = max(most[side][phase], stack_of(calls[side][phase], some));
	row("stack,%s,1,%zu,%zu,%zu,%zu", what, most[0][0], most[0][1], most[1][0], most[1][1]);
}

void all_stacks(void)
{
	static void (*const pages[2][2])(void *) = {
		{ linux_pages, linux_pages_back }, { brickyard_pages, brickyard_pages_back },
	};
	static void (*const bulk[2][2])(void *) = {
		{ linux_bulk, linux_bulk_back }, { brickyard_bulk, brickyard_bulk_back },
	};
	static void (*const objects[2][2])(void *) = {
		{ linux_objects, linux_objects_back }, { brickyard_objects, brickyard_objects_back },
	};
	struct some some = { .count = 1024 };

	some.handles = kvmalloc_array(some.count, sizeof(*some.handles), GFP_KERNEL);
	if (!some.handles)
		return;
	say("a call of nothing: %zu bytes of stack or less", stack_of(nothing, NULL));
	both_stacks("1024 single pages", &some, pages);
	some.order = 3;
	both_stacks("1024 blocks of order 3", &some, pages);
	some.count = 64;
	some.order = 9;
	both_stacks("64 blocks of order 9", &some, pages);
	some.count = 512;
	both_stacks("512 pages in bulk", &some, bulk);
	some.count = 1024;
	both_stacks("1024 objects of 256 bytes", &some, objects);
	kvfree(some.handles);
}
