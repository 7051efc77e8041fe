/* As answer.c, but of many pages, so that exec needs many. */
#include "libc.h"

static volatile char zeros[96 * 4096], data[20000] = { 1 };

int main(const char *argument);

int main(const char *argument)
{
	size_t i;
	long sum = 0;

	for (i = 0; i < sizeof zeros; i++)
		sum += zeros[i];
	for (i = 0; i < sizeof data; i++)
		sum += data[i];
	return sum == 1 ? (int)number(argument) : -1;
}
