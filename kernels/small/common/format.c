/* printf's formatting, as much as the kernel and its programs need: %ld, %lx, %s, and a width for
 * columns, as in %-20s and %6ld. What does not fit is cut off. */
#include "format.h"

struct output {
	char *to;
	size_t room, length;
};

static void put(struct output *output, char letter)
{
	if (output->length < output->room)
		output->to[output->length++] = letter;
}

static void put_field(struct output *output, const char *text, size_t length, size_t width,
		      int left)
{
	size_t spaces = length < width ? width - length : 0, i;

	for (i = 0; !left && i < spaces; i++)
		put(output, ' ');
	for (i = 0; i < length; i++)
		put(output, text[i]);
	for (i = 0; left && i < spaces; i++)
		put(output, ' ');
}

static void put_number(struct output *output, unsigned long number, unsigned base, int negative,
		       size_t width, int left)
{
	char digits[24];
	size_t at = sizeof digits;

	do
		digits[--at] = "0123456789abcdef"[number % base];
	while ((number /= base) > 0);
	if (negative)
		digits[--at] = '-';
	put_field(output, digits + at, sizeof digits - at, width, left);
}

/* Writes to `to`, without a zero behind. Returns how many bytes. */
size_t format(char *to, size_t room, const char *text, va_list arguments)
{
	struct output output = { to, room, 0 };

	for (; *text; text++) {
		size_t width = 0, length = 0;
		int left = 0;
		const char *string;
		unsigned long value;
		long number;

		if (*text != '%') {
			put(&output, *text);
			continue;
		}
		if (*++text == '-')
			left = 1, text++;
		for (; *text >= '0' && *text <= '9'; text++)
			width = width * 10 + (size_t)(*text - '0');
		if (*text == 's') {
			string = va_arg(arguments, const char *);
			while (string[length])
				length++;
			put_field(&output, string, length, width, left);
			continue;
		}
		number = va_arg(arguments, long); /* ld, lx */
		value = (unsigned long)number;
		if (*++text == 'x')
			put_number(&output, value, 16, 0, width, left);
		else
			put_number(&output, number < 0 ? 0 - value : value, 10, number < 0, width,
				   left);
	}
	return output.length;
}
