/* Lines on the console, a panic, and how much of a kernel stack was ever used. */
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
