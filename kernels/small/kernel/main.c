/* The order in which the kernel comes up, what a hart does without a process, and the end: whether a
 * page was lost, and whether the allocator is sound. */
#include "kernel.h"

/* Returns how much of the stack of the boot was used, and ends the kernel if that is more than there
 * is: there is a guard below it. */
static size_t boot_stack_used(void)
{
	extern char boot_guard[];
	size_t used = stack_used(boot_guard, BOOT_GUARD_BYTES + BOOT_STACK_BYTES);

	if (used > BOOT_STACK_BYTES)
		panic("the stack at boot overflowed: %ld of %ld bytes", (long)used,
		      (long)BOOT_STACK_BYTES);
	return used;
}

/* ---- the end ---- */

static size_t free_at_boot;

/* To be called before the first process is made. */
static void remember_at_boot(void)
{
	objects_give_back();
	free_at_boot = page_count();
}

/* Ends all when the first process has ended, with its code and what is found here. */
static __attribute__((noreturn)) void end(void)
{
	bool good = finished->code == 0;
	size_t free, used;

	process_free(finished);
	objects_give_back();
	free = page_count();
	used = page_check();
	print("kernel: %ld processes; stacks used: %ld of %ld bytes of a process, %ld of a hart, "
	      "%ld at boot\n",
	      (long)processes_made, (long)most_stack_used, (long)STACK, (long)idle_stack_used(),
	      (long)boot_stack_used());
	print("kernel: %ld pages free, %ld at boot, %ld in use; by_check: every invariant holds\n",
	      (long)free, (long)free_at_boot, (long)used);
	good = good && free == free_at_boot;
	print("%s\n", good ? "PASS" : "FAIL");
	power_off(good ? 0 : 1);
}

/* What a hart does without a process. */
static __attribute__((noreturn)) void idle(void)
{
	for (;;) {
		if (finished)
			end();
		schedule();
		if (finished)
			continue;
		kernel_unlock();
		do {
			__asm__ volatile("wfi"); /* a pending interrupt ends it, masked or not */
			timer_arm();
		} while (!may_have_work());
		kernel_lock();
	}
}

/* ---- the begin ---- */

/* The first hart. `tree` is the physical address of the device tree. */
void boot(size_t number, size_t tree)
{
	extern char boot_guard[], image_end[];
	size_t end_of_memory;
	char here;

	/* Below this function's own frame. */
	stack_paint(boot_guard, (size_t)(&here - boot_guard - 256) & ~7ul);
	hart_init(number);
	kernel_lock();
	while (hart_count < HARTS && sbi_hart_exists(hart_count))
		hart_count++;
	end_of_memory = memory_end(direct(tree));
	if (!end_of_memory)
		panic("OpenSBI gave no device tree, or one without memory");
	page_init(physical(image_end), end_of_memory);
	boot_stack_used();
	object_init();
	remember_at_boot();
	print("kernel: harts: %ld; free pages of %ld bytes: %ld\n", (long)hart_count, (long)PAGE,
	      (long)page_count());
	harts_start();
	process_first();
	idle();
}

/* Any other hart. */
void boot_other(size_t number)
{
	hart_init(number);
	kernel_lock();
	idle();
}
