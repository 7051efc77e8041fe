/* The little that programs need beside system calls. */
#include "libc.h"

#include "format.h"

/* Returns how many pages are free. */
long pages(void) { return count(COUNT_FREE_PAGES); }

/* Prints one line at most, in one piece. */
void print(const char *text, ...)
{
	char line[160];
	va_list arguments;

	va_start(arguments, text);
	write(line, format(line, sizeof line, text, arguments));
	va_end(arguments);
}

/* Returns the number that a text of digits is. */
long number(const char *text)
{
	long number = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (*text - '0');
	return number;
}

/* For what the compiler makes of assignments. */
void *memset(void *to, int byte, size_t bytes)
{
	char *at = to;

	while (bytes-- > 0)
		*at++ = (char)byte;
	return to;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
	char *at = to;
	const char *read = from;

	while (bytes-- > 0)
		*at++ = *read++;
	return to;
}
