/* A program that a debugger steps through: it allocates and frees between two stops. With `trim` it
 * also gives all back that is free. */

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

volatile int done;
void *volatile kept;

static void allocate_and_free(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		kept = malloc(40);
		kept = realloc(kept, 400);
		free(kept);
		kept = calloc(1, 100);
		free(kept);
	}
}

__attribute__((noinline)) void begins(void)
{
	__asm__ volatile("");
}

int main(int count, char **words)
{
	const char *word = count > 1 ? words[1] : "";

	allocate_and_free(300);
	malloc_trim(0);
	allocate_and_free(300);
	begins();
	if (strcmp(word, "debugger") != 0)
		raise(SIGSTOP);
	allocate_and_free(strcmp(word, "debugger") == 0 ? 1 : 10);
	if (strcmp(word, "trim") == 0)
		malloc_trim(0);
	done = 1;
	if (strcmp(word, "debugger") != 0)
		raise(SIGSTOP);
	return 0;
}
