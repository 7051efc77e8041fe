/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the module share. */
#ifndef BRICKYARD_MODULE_H
#define BRICKYARD_MODULE_H

#include <linux/mm.h>
#include <linux/printk.h>
#include "brickyard.h"

#define say(format, ...) pr_notice("brickyard: " format "\n", ##__VA_ARGS__)
/* One line of a table: `run` collects them. */
#define row(format, ...) pr_notice("brickyard-row," format "\n", ##__VA_ARGS__)

#define LINUX_BLOCK (MAX_ORDER - 1) /* the largest order of Linux, of 4 MiB */
#define LINUX_BLOCK_PAGES (1UL << LINUX_BLOCK)

/* memory.c: the machine, over memory of the running kernel. */
extern const by_machine *machine;
extern const by_slabs *slabs;
extern size_t managed; /* frames */
extern size_t first_frame, last_frame; /* the span */
int take_memory(size_t megabytes);
int give_memory(void); /* 0 if all of it came back */
int check_machine(const char *when, size_t expected_free);

/* owners.c: every frame and object has one owner, on all CPUs and in interrupts. */
enum plant { PLANT_NOTHING, PLANT_DOUBLE_FREE, PLANT_USE_AFTER_FREE, PLANT_LOSS, PLANTS };
int test_owners(unsigned int seconds, enum plant plant);

/* bench.c: one measurement, of both allocators by the same loop. */
enum { NOTHING, LINUX, BRICKYARD, SIDES };

struct batch {
	unsigned long *handles; /* what was allocated: pages, frame numbers, objects */
	unsigned int count;
	unsigned int order;
	void *caches[SIDES];
};

/* Returns the ticks taken, or FAILED; frees nothing that it failed on. */
typedef u64 phase(struct batch *batch);
#define FAILED (~0ULL)

struct way { /* of allocating and freeing, for each side */
	phase *take[SIDES];
	phase *give[SIDES];
};

struct place { /* what runs where */
	int take_cpu, give_cpu;
};

int prepare_bench(unsigned int rounds);
void finish_bench(void);
void measure(const char *kind, const char *what, const struct way *way, struct batch *batch,
	     unsigned int total, struct place place);
void measure_threads(const char *kind, const char *what, const struct way *way,
		     const struct batch *batch, unsigned int total, unsigned int cpus);
u32 next_random(u64 *state);

/* rows.c: which measurements there are. */
int all_rows(bool quick);

/* full.c: half of the memory of each side in use, at random. */
int fill_half(void);
void empty_half(void);

/* stack.c: how much stack calls take. */
void all_stacks(void);
size_t stack_of(void (*call)(void *), void *argument);

#endif
