/* The order in which the kernel comes up. */
#include "kernel.h"

/* The first hart. `tree` is the physical address of the device tree. */
void boot(size_t number, size_t tree)
{
	extern char boot_guard[], image_end[];
	char here;

	/* Below this function's own frame. */
	stack_paint(boot_guard, (size_t)(&here - boot_guard - 256) & ~7ul);
	hart_init(number);
	kernel_lock();
	while (hart_count < HARTS && sbi_hart_exists(hart_count))
		hart_count++;
	page_init(physical(image_end), memory_end(direct(tree)));
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
