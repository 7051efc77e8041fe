// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Half of the memory in use, at random, on both sides: blocks of mixed orders are taken until a
 * twentieth is left, then random ones of them are freed until half of it is free. Linux has about as
 * much memory left as the machine here has.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include "brickyard_module.h"

struct filled {
	unsigned long handle;
	unsigned int order;
};

static struct filled *filled[SIDES];
static size_t filled_count[SIDES];

static size_t free_frames(int side)
{
	struct sysinfo info;
	by_counts counts;

	if (side == LINUX) {
		si_meminfo(&info);
		return info.freeram;
	}
	by_zone_counts(machine, 0, &counts);
	return counts.free + counts.cached;
}

/* Mostly single pages, as in a running system, but most memory in larger blocks. */
static unsigned int random_order(u64 *random)
{
	u32 dice = next_random(random);

	return dice & 1 ? 0 : dice & 2 ? 1 + (dice >> 8) % 3 : (dice >> 8) % 10;
}

static unsigned long take(int side, unsigned int order)
{
	ptrdiff_t frame;

	if (side == LINUX)
		return (unsigned long)alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY, order);
	frame = by_alloc(machine, order, BY_UNMOVABLE | BY_ATOMIC);
	return frame < 0 ? 0 : frame;
}

static void give(int side, struct filled block)
{
	if (side == LINUX)
		__free_pages((struct page *)block.handle, block.order);
	else
		by_free(machine, block.handle, block.order);
}

static int fill(int side)
{
	size_t all = free_frames(side), target = all / 20;
	struct filled *blocks;
	u64 random = 42;
	unsigned int misses = 0;

	blocks = vzalloc(all * sizeof(*blocks) / 2);
	if (!blocks)
		return -ENOMEM;
	filled[side] = blocks;
	while (free_frames(side) > target && filled_count[side] < all / 2 && misses < 100) {
		struct filled block = { .order = random_order(&random) };

		block.handle = take(side, block.order);
		if (!block.handle) {
			misses++;
			continue;
		}
		blocks[filled_count[side]++] = block;
		if (filled_count[side] % 1024 == 0)
			cond_resched();
	}
	while (free_frames(side) < all / 2 && filled_count[side]) {
		size_t which = next_random(&random) % filled_count[side];

		give(side, blocks[which]);
		blocks[which] = blocks[--filled_count[side]];
	}
	say("half full: %s has %zu of %zu frames free; %zu blocks are in use", side == LINUX ? "Linux" : "Brickyard",
	    free_frames(side), all, filled_count[side]);
	return 0;
}

int fill_half(void)
{
	int error = fill(LINUX);

	if (!error)
		error = fill(BRICKYARD);
	if (error)
		empty_half();
	return error;
}

void empty_half(void)
{
	int side;

	for (side = LINUX; side <= BRICKYARD; side++) {
		while (filled_count[side])
			give(side, filled[side][--filled_count[side]]);
		vfree(filled[side]);
		filled[side] = NULL;
	}
}
