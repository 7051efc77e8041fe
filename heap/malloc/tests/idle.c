/* A process whose other thread never allocates frees all it has, and then only waits: whether its
 * memory goes back. */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 200, BYTES = 500000, SECONDS = 60 };

static void *wait_only(void *nothing)
{
	pause();
	return nothing;
}

/* Resident bytes. Allocates nothing. */
static long resident(void)
{
	char text[200] = "";
	long all, pages;
	int fd = open("/proc/self/statm", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%ld %ld", &all, &pages) != 2)
		exit(2);
	close(fd);
	return pages * sysconf(_SC_PAGESIZE);
}

int main(void)
{
	static void *blocks[BLOCKS];
	pthread_t thread;
	long before;

	if (pthread_create(&thread, NULL, wait_only, NULL) != 0)
		return 2;
	before = resident();
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BYTES);
		memset(blocks[i], 1, BYTES);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	for (int second = 0; second < SECONDS; second++) {
		if (resident() < before + (2 << 20))
			return 0;
		sleep(1);
	}
	fprintf(stderr, "%ld bytes are left of what was freed\n", resident() - before);
	return 1;
}
