// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Brickyard inside Linux, beside its own page allocator and SLUB: loading the module takes memory from
 * the running kernel and makes a machine of it, tests who owns what, measures; unloading it gives all
 * of it back. Results are lines of the log.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include "brickyard_module.h"

static unsigned int megabytes;
module_param(megabytes, uint, 0444);
MODULE_PARM_DESC(megabytes, "how much memory to take; 0: half of what is free");
static unsigned int seconds = 5;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long threads and interrupts test ownership; 0: not at all");
static unsigned int plant;
module_param(plant, uint, 0444);
MODULE_PARM_DESC(plant, "a fault to be found: 1 double free, 2 use after free, 3 loss");
static unsigned int rows = 2;
module_param(rows, uint, 0444);
MODULE_PARM_DESC(rows, "what to measure: 0 nothing, 1 a few rows, 2 all");

static int __init brickyard_init(void)
{
	struct sysinfo info;
	int error;

	if (plant >= PLANTS)
		return -EINVAL;
	si_meminfo(&info);
	if (!megabytes) /* less 64 MB, for what Linux and the tables here need themselves */
		megabytes = (info.freeram / 2 >> (20 - PAGE_SHIFT)) - 32;
	error = take_memory(megabytes);
	if (!error && seconds)
		error = test_owners(seconds, plant);
	if (!error && rows)
		error = all_rows(rows == 1);
	if (!error) {
		by_slabs_drain(slabs);
		by_drain(machine);
		error = check_machine("after all", managed);
	}
	if (error)
		give_memory();
	say("%s", error ? "FAIL" : "PASS");
	return error;
}

static void __exit brickyard_exit(void)
{
	say("%s", give_memory() ? "FAIL at unloading" : "unloaded");
}

module_init(brickyard_init);
module_exit(brickyard_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_AUTHOR("The Brickyard authors");
MODULE_DESCRIPTION("Brickyard beside Linux's page allocator and SLUB");
