/* Writes a heap profile of made-up samples of itself: live and dead objects, and code that was
 * inlined. */
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
#define HERE __builtin_return_address(0)
/* Keeps a call from being the last of its function, which then were not on the stack. */
#define STAY __asm__ volatile("" ::: "memory")

NOINLINE void sampled(unsigned live, unsigned long bytes, unsigned all, unsigned long all_bytes,
                      void *caller, void *above)
{
    printf("  %u: %lu [%u: %lu] @ %p %p %p\n", live, bytes, all, all_bytes, HERE, caller, above);
    STAY;
}

static inline __attribute__((always_inline)) void insert(void *caller, void *above)
{
    sampled(1, 400, 4, 1600, caller, above); /* line 20 */
    STAY;
}

NOINLINE void grow_table(void *above)
{
    insert(HERE, above);
    STAY;
}

NOINLINE void read_file(void *above)
{
    sampled(2, 2097152, 3, 3145728, HERE, above);
    STAY;
}

NOINLINE void forget(void *above)
{
    sampled(0, 0, 5, 5000, HERE, above);
    STAY;
}

NOINLINE void serve(void)
{
    grow_table(HERE);
    read_file(HERE);
    forget(HERE);
    STAY;
}

int main(void)
{
    char line[4096];
    printf("heap profile: 3: 2097552 [12: 3152328] @ heap_v2/524288\n");
    serve();
    printf("\nMAPPED_LIBRARIES:\n");
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        fputs(line, stdout);
    return maps ? fclose(maps) : 1;
}
