// Libraries that come and go, and memory that crosses the border. With -DPLUGIN: such a library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef PLUGIN

static char *kept;
static __thread char *of_thread;

__attribute__((constructor)) static void begins(void) {
    kept = malloc(3000);
    if (kept) strcpy(kept, "kept");
}

__attribute__((destructor)) static void ends(void) {
    free(kept);
}

void *plugin_give(size_t bytes) {
    if (!of_thread) of_thread = malloc(10); // Stays, as in many a library.
    return memset(malloc(bytes), 7, bytes);
}

void plugin_take(void *memory) { free(memory); }

// Allocates and frees memory of its own. Returns 1 if all was right.
int plugin_own(void) {
    for (size_t bytes = 1; bytes < (1 << 20); bytes = bytes * 3 + 1) {
        char *memory = realloc(memset(malloc(bytes), 1, bytes), bytes * 2), *zeros = calloc(bytes, 1);
        if (!memory || !zeros || memory[0] != 1 || memory[bytes - 1] != 1 || zeros[bytes - 1] != 0) return 0;
        free(memory), free(zeros);
    }
    return strcmp(kept, "kept") == 0;
}

#else

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

#ifdef STATIC

int main(void) {
    for (size_t bytes = 1; bytes < (1 << 20); bytes = bytes * 3 + 1) {
        char *memory = malloc(bytes);
        CHECK(memory && (memory = realloc(memory, bytes * 2)));
        free(memory);
    }
    printf("done\n");
    return 0;
}

#else

static const char *plugin;
static int flags;

// Opens the library, moves memory both ways, frees some after it is gone.
static void *opens_and_closes(void *rounds) {
    static __thread void *late[64];
    for (long round = 0; round < (long)rounds; round++) {
        void *library = dlopen(plugin, RTLD_NOW | flags);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        void *(*give)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_give");
        void (*take)(void *) = (void (*)(void *))dlsym(library, "plugin_take");
        int (*own)(void) = (int (*)(void))dlsym(library, "plugin_own");
        CHECK(give && take && own && own());
        for (int i = 0; i < 200; i++) {
            char *memory = give(1 + i * 77);
            CHECK(memory[0] == 7 && memory[i * 77] == 7);
            free(memory);
            take(malloc(1 + i * 770));
        }
        void **place = &late[round % 64];
        free(*place);
        *place = give(1 + round * 100 % 9000);
        CHECK(dlclose(library) == 0);
    }
    for (int i = 0; i < 64; i++) free(late[i]);
    memset(late, 0, sizeof late);
    return NULL;
}

static pthread_key_t key;
static int cleaned;

static void cleans(void *memory) {
    free(memory);
    __atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
}

static void at_end(void *memory) {
    free(memory);
    free(malloc(100));
}

// Ends by itself, or waits to be cancelled. What cleans up gives memory back in both cases.
static void *ends_early(void *is_cancelled) {
    pthread_cleanup_push(cleans, malloc(3000));
    CHECK(pthread_setspecific(key, malloc(200)) == 0);
    if (!is_cancelled) pthread_exit(NULL);
    while (1) pause();
    pthread_cleanup_pop(0);
    return NULL;
}

// The C library opens the unwinder for the first of these threads, if it is not there.
static int threads_that_end_early(void) {
    pthread_t thread[16];
    CHECK(pthread_key_create(&key, at_end) == 0);
    for (long round = 0; round < 4; round++) {
        for (long i = 0; i < 16; i++) CHECK(pthread_create(&thread[i], NULL, ends_early, (void *)(i % 2)) == 0);
        for (int i = 0; i < 16; i++) CHECK(i % 2 == 0 || pthread_cancel(thread[i]) == 0);
        for (int i = 0; i < 16; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    }
    // A thread that is cancelled before it begins has nothing to clean.
    CHECK(cleaned >= 32 && cleaned <= 64);
    return 0;
}

static int may_end[2];

// Has used the library when it is closed, and goes on.
static void *stays(void *own) {
    CHECK(((int (*)(void))own)());
    CHECK(write(may_end[1], "", 1) == 1);
    for (int i = 0; i < 100; i++) usleep(1000);
    return NULL;
}

// Opens and closes a library that brings the heap along: nobody else uses that.
static int brings_it_along(const char *name) {
    char byte;
    long bytes = 0;
    CHECK(pipe(may_end) == 0);
    for (int round = 0; round < 100; round++) {
        void *library = dlopen(name, RTLD_NOW | RTLD_DEEPBIND);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*own)(void) = (int (*)(void))dlsym(library, "plugin_own");
        pthread_t thread;
        if (round == 0) {
            CHECK(pthread_create(&thread, NULL, stays, (void *)own) == 0);
            CHECK(read(may_end[0], &byte, 1) == 1);
        }
        CHECK(own());
        CHECK(dlclose(library) == 0);
        if (round == 0) CHECK(pthread_join(thread, NULL) == 0);
        // Not a heap more for each (in KiB).
        char line[256];
        FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof line, status)) sscanf(line, "VmSize: %ld", &bytes);
        fclose(status);
        static long first;
        if (round == 0) first = bytes;
        CHECK(bytes < first + (1 << 20));
    }
    return 0;
}

int main(int count, char **argument) {
    if (count > 2 && strcmp(argument[1], "along") == 0) return brings_it_along(argument[2]);
    if (count > 1 && strcmp(argument[1], "threads") == 0) return threads_that_end_early();
    if (count > 2 && strcmp(argument[1], "cross") == 0) {
        // Memory of the C library's own malloc, given to this program's free.
        void *library = dlopen(argument[2], RTLD_NOW | RTLD_DEEPBIND);
        CHECK(library);
        free(((void *(*)(size_t))dlsym(library, "plugin_give"))(100));
        return 0;
    }
    if (count > 2) {
        plugin = argument[2];
        flags = strcmp(argument[1], "deep") == 0 ? RTLD_DEEPBIND : 0;
        opens_and_closes((void *)200L);
        pthread_t thread[3];
        for (int i = 0; i < 3; i++) CHECK(pthread_create(&thread[i], NULL, opens_and_closes, (void *)100L) == 0);
        opens_and_closes((void *)100L);
        for (int i = 0; i < 3; i++) CHECK(pthread_join(thread[i], NULL) == 0);
        return 0;
    }
    return 2;
}

#endif
#endif
