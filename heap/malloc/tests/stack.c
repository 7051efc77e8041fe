/* The first request of a process, on a small stack: of a coroutine, say. Prints how many bytes of
 * the stack it took. The word says what is asked for; it is freed again on the same stack. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { BYTES = 256 << 10, PAINT = 0xa5 };

static ucontext_t usual, small;
static const char *word;
static int failed;

static void asks(void)
{
	void *memory = NULL;

	if (strcmp(word, "small") == 0)
		memory = malloc(100);
	else if (strcmp(word, "run") == 0)
		memory = calloc(1, 500000);
	else if (strcmp(word, "large") == 0)
		memory = malloc(5000000);
	else if (strcmp(word, "aligned") == 0)
		failed = posix_memalign(&memory, 1 << 16, 100);
	else if (strcmp(word, "resized") == 0)
		memory = realloc(NULL, 40000);
	failed |= !memory;
	free(memory);
}

int main(int count, char **words)
{
	unsigned char *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t untouched = 0;

	if (count != 2 || stack == MAP_FAILED || getcontext(&small) != 0)
		return 2;
	word = words[1];
	memset(stack, PAINT, BYTES);
	small.uc_stack.ss_sp = stack;
	small.uc_stack.ss_size = BYTES;
	small.uc_link = &usual;
	makecontext(&small, asks, 0);
	if (swapcontext(&usual, &small) != 0)
		return 2;
	while (untouched < BYTES && stack[untouched] == PAINT)
		untouched++;
	printf("%zu\n", BYTES - untouched);
	return failed;
}
