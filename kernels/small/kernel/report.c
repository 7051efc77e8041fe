/* What the kernel says: lines on the console, a panic, and at the end its own findings: how much
 * of a kernel stack was ever used, whether a page was lost, and whether the allocator is sound. */
#include "format.h"
#include "kernel.h"

enum { LINE = 160 };

static void print_line(const char *text, va_list arguments)
{
	char line[LINE];

	console_write(line, format(line, sizeof line, text, arguments));
}

void print(const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	print_line(text, arguments);
	va_end(arguments);
}

/* Says what is wrong, and ends all. Other harts stop at the lock, which the caller has or needs
 * not. */
void panic(const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	print("panic: ");
	print_line(text, arguments);
	va_end(arguments);
	print("\n");
	power_off(3);
}

/* ---- how much of a stack was used: what is not painted any more ---- */

static const uint64_t paint = 0x7061696e74656421; /* painted! */

void stack_paint(void *stack, size_t bytes)
{
	uint64_t *word = stack, *end = word + bytes / sizeof paint;

	while (word < end)
		*word++ = paint;
}

size_t stack_used(const void *stack, size_t bytes)
{
	const uint64_t *word = stack;

	while (bytes > 0 && *word == paint)
		word++, bytes -= sizeof paint;
	return bytes;
}

/* Ends the kernel if a stack overflowed, as far as its last words tell. */
void stack_check(const void *stack)
{
	const uint64_t *word = stack;

	if (word[0] != paint || word[1] != paint)
		panic("a kernel stack overflowed");
}

/* Returns how much of the stack of the boot was used, and ends the kernel if that is more than there
 * is: there is a guard below it. */
size_t boot_stack_used(void)
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
void remember_at_boot(void)
{
	objects_give_back();
	free_at_boot = page_count();
}

/* Ends all when the first process has ended, with its code and what is found here. */
void end(void)
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
