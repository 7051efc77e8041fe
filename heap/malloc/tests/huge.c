// How much of a program's memory is huge pages. Prints the kibibytes that are, and what is resident:
//   huge fills             with 192 MiB of small objects, all written, and a large block
//   huge disabled fills    the same in a process that disables huge pages first, when its heap is there
//   huge sparse N KIB STEP with N blocks of KIB, of which a page in each STEP KiB is written
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static long rollup(const char *what) {
    long kib = -1;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, what, strlen(what)) == 0) sscanf(line + strlen(what), ": %ld", &kib);
    if (file) fclose(file);
    return kib;
}

static int sparse(long blocks, size_t bytes, size_t step) {
    for (long i = 0; i < blocks; i++) {
        char *block = malloc(bytes);
        if (!block) return 1;
        for (size_t at = 0; at < bytes; at += step) memset(block + at, 1, 2000);
    }
    printf("%ld %ld\n", rollup("AnonHugePages"), rollup("Rss"));
    return 0;
}

int main(int count, char **words) {
    free(malloc(1));
    if (count == 5)
        return sparse(atol(words[2]), (size_t)atol(words[3]) << 10, (size_t)atol(words[4]) << 10);
    if (strcmp(words[1], "disabled") == 0 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 2;
    enum { OBJECT = 1000, OBJECTS = (192 << 20) / OBJECT, LARGE = 64 << 20 };
    char *all = NULL;
    for (int i = 0; i < OBJECTS; i++) {
        char *object = malloc(OBJECT);
        if (!object) return 1;
        memset(object, 1, OBJECT);
        *(char **)object = all;
        all = object;
    }
    char *large = malloc(LARGE);
    if (!large) return 1;
    memset(large, 1, LARGE);
    printf("%ld %ld\n", rollup("AnonHugePages"), rollup("Rss"));
    free(large);
    while (all) {
        char *next = *(char **)all;
        free(all);
        all = next;
    }
    return count < 2;
}
