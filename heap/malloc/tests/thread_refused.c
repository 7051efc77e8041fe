/* A process that gets no thread for a while: whether the library asks again, and not too often. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 40, BYTES = 500000, SECONDS = 60, REFUSALS = 10 };

static _Atomic int refuses, refused, made;

/* In place of the C library's: the library finds this one first. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		   void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	if (refuses) {
		refused++;
		return EAGAIN;
	}
	made++;
	return real(thread, attributes, start, argument);
}

static void *wait_only(void *nothing)
{
	pause();
	return nothing;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Allocates and frees until so many threads were refused, or made. */
static int until(_Atomic int *count, int least)
{
	static void *blocks[BLOCKS];

	for (double start = now(); *count < least;) {
		if (now() > start + SECONDS)
			return 0;
		for (int i = 0; i < BLOCKS; i++) {
			blocks[i] = malloc(BYTES);
			memset(blocks[i], 1, BYTES);
		}
		for (int i = 0; i < BLOCKS; i++)
			free(blocks[i]);
	}
	return 1;
}

int main(void)
{
	pthread_t thread;
	double start = now(), passed;

	if (pthread_create(&thread, NULL, wait_only, NULL) != 0)
		return 2;
	refuses = 1;
	if (!until(&refused, REFUSALS)) {
		fprintf(stderr, "asked for a thread %d times\n", refused);
		return 1;
	}
	/* Once in each sixteenth of a second, and a few times at first, when there is more to do. */
	passed = now() - start;
	if (refused > 6 + 16 * passed) {
		fprintf(stderr, "asked for a thread %d times in %f s\n", refused, passed);
		return 1;
	}
	refuses = 0;
	if (!until(&made, 2)) {
		fprintf(stderr, "no thread was asked for when one could be had\n");
		return 1;
	}
	return 0;
}
