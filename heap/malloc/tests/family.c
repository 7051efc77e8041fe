// What a C program may expect of malloc and its family. Each check prints a line and ends the program if it fails.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

static int is(const void *memory, size_t bytes, unsigned char value) {
    const unsigned char *byte = memory;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i] != value) return 0;
    return 1;
}

static unsigned long next(unsigned long *state) {
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return *state >> 33;
}

static void family(void) {
    errno = 77;
    for (size_t bytes = 0; bytes < 70000; bytes += bytes < 300 ? 1 : 997) {
        unsigned char *a = malloc(bytes), *b = calloc(1, bytes), *c = realloc(NULL, bytes);
        CHECK(a && b && c && a != b && b != c && a != c);
        CHECK(((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16 == 0);
        CHECK(malloc_usable_size(a) >= bytes && is(b, bytes, 0));
        memset(a, 1, malloc_usable_size(a)), memset(b, 2, bytes), memset(c, 3, bytes);
        CHECK(is(a, bytes, 1) && is(b, bytes, 2) && is(c, bytes, 3));
        free(a), free(b), free(c);
    }
    free(NULL);
    CHECK(errno == 77);
    CHECK(malloc_usable_size(NULL) == 0);
    // Zeros also where something else was before.
    for (size_t bytes = 100; bytes < 8 << 20; bytes *= 3) {
        void *used = malloc(bytes);
        memset(used, 0xff, bytes);
        free(used);
        void *zeros = calloc(bytes / 4, 4);
        CHECK(is(zeros, bytes / 4 * 4, 0));
        free(zeros);
    }
}

static void alignments(void) {
    for (size_t align = 1; align <= 8 << 20; align *= 2)
        for (size_t bytes = 1; bytes < 5 << 20; bytes = bytes * 7 + 1) {
            void *a = aligned_alloc(align, bytes), *b = memalign(align, bytes), *c = NULL;
            CHECK(a && b && (uintptr_t)a % align == 0 && (uintptr_t)b % align == 0);
            int done = posix_memalign(&c, align, bytes);
            if (align < sizeof(void *))
                CHECK(done == EINVAL && c == NULL);
            else
                CHECK(done == 0 && (uintptr_t)c % align == 0);
            CHECK(malloc_usable_size(a) >= bytes);
            memset(a, 5, bytes), memset(b, 6, bytes);
            CHECK(is(a, bytes, 5));
            free(a), free(b), free(c);
        }
    long page = sysconf(_SC_PAGESIZE);
    void *v = valloc(10), *p = pvalloc(page + 1);
    CHECK((uintptr_t)v % page == 0 && (uintptr_t)p % page == 0 && malloc_usable_size(p) >= 2u * page);
    free(v), free(p);
    errno = 0;
    CHECK(aligned_alloc(48, 100) == NULL && errno == EINVAL);
    void *untouched = &untouched;
    CHECK(posix_memalign(&untouched, 24, 8) == EINVAL && untouched == (void *)&untouched);
}

static void exhaustion(void) {
    volatile size_t most = SIZE_MAX;
    size_t sizes[] = {most, most - 15, most / 2, PTRDIFF_MAX, (size_t)1 << 60};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        errno = 0;
        CHECK(malloc(sizes[i]) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(calloc(sizes[i] / 16, 32) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(aligned_alloc(4096, sizes[i]) == NULL && errno == ENOMEM);
        void *kept = malloc(100);
        memset(kept, 9, 100);
        errno = 0;
        CHECK(realloc(kept, sizes[i]) == NULL && errno == ENOMEM && is(kept, 100, 9));
        errno = 0;
        CHECK(reallocarray(kept, sizes[i], 3) == NULL && errno == ENOMEM && is(kept, 100, 9));
        free(kept);
    }
    CHECK(calloc(most / 2, 3) == NULL);
}

static void resizing(void) {
    unsigned long state = 1;
    for (int chain = 0; chain < 200; chain++) {
        size_t had = 1 + next(&state) % 100;
        unsigned char *memory = malloc(had), value = chain;
        memset(memory, value, had);
        for (int step = 0; step < 30; step++) {
            size_t bytes = 1 + next(&state) % ((size_t)1 << (4 + next(&state) % 19));
            memory = realloc(memory, bytes);
            CHECK(memory && is(memory, had < bytes ? had : bytes, value));
            memset(memory, value, bytes);
            had = bytes;
        }
        CHECK(realloc(memory, 0) == NULL);
    }
}

// Threads that come and go, and free what others allocated.
enum { SLOTS = 512 };
static _Atomic(unsigned char *) slots[SLOTS];

static void *swaps(void *seed) {
    unsigned long state = (uintptr_t)seed;
    for (int i = 0; i < 20000; i++) {
        size_t bytes = 8 + next(&state) % (i % 100 ? 2000 : 200000);
        unsigned char *mine = malloc(bytes);
        memcpy(mine, &bytes, sizeof bytes);
        memset(mine + sizeof bytes, (unsigned char)bytes, bytes - sizeof bytes);
        unsigned char *other = atomic_exchange(&slots[next(&state) % SLOTS], mine);
        if (other) {
            memcpy(&bytes, other, sizeof bytes);
            CHECK(is(other + sizeof bytes, bytes - sizeof bytes, (unsigned char)bytes));
            free(other);
        }
    }
    return NULL;
}

static void threads(void) {
    for (int round = 0; round < 4; round++) {
        pthread_t thread[8];
        for (uintptr_t i = 0; i < 8; i++) CHECK(pthread_create(&thread[i], NULL, swaps, (void *)(i + 8 * round)) == 0);
        for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < SLOTS; i++) free(atomic_exchange(&slots[i], NULL));
}

static void *short_life(void *unused) {
    (void)unused;
    for (int i = 0; i < 50; i++) free(malloc(i * 40));
    return malloc(100);
}

static void many_threads(void) {
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        void *made;
        CHECK(pthread_create(&thread, NULL, short_life, NULL) == 0);
        pthread_join(thread, &made);
        free(made);
    }
}

static atomic_int stop;

static void *busy(void *seed) {
    unsigned long state = (uintptr_t)seed;
    void *held[64] = {0};
    while (!atomic_load(&stop)) {
        int i = next(&state) % 64;
        free(held[i]);
        held[i] = malloc(next(&state) % 40000);
    }
    for (int i = 0; i < 64; i++) free(held[i]);
    return NULL;
}

// Children that allocate, while other threads of the parent are in the middle of it.
static void forks(void) {
    pthread_t thread[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, busy, (void *)i);
    for (int i = 0; i < 100; i++) {
        unsigned char *mine = malloc(5000);
        memset(mine, i, 5000);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            unsigned long state = i;
            CHECK(is(mine, 5000, i));
            free(mine);
            for (int j = 0; j < 2000; j++) {
                size_t bytes = next(&state) % 50000;
                void *memory = malloc(bytes);
                CHECK(memory);
                memset(memory, 1, bytes);
                free(memory);
            }
            pthread_t own;
            CHECK(pthread_create(&own, NULL, short_life, NULL) == 0 && pthread_join(own, NULL) == 0);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        free(mine);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
}

static void *checks_its_own(void *number) {
    enum { PIECES = 300 };
    unsigned char value = (uintptr_t)number + 1, *held[PIECES] = {0};
    size_t bytes[PIECES];
    unsigned long state = value;
    while (!atomic_load(&stop)) {
        int i = next(&state) % PIECES;
        if (held[i]) CHECK(is(held[i], bytes[i], value));
        free(held[i]);
        bytes[i] = next(&state) % 200 + 1;
        memset(held[i] = malloc(bytes[i]), value, bytes[i]);
    }
    for (int i = 0; i < PIECES; i++) free(held[i]);
    return NULL;
}

// A child of vfork runs in this memory, and allocates though it may not: others lose nothing.
static void vforks(void) {
    pthread_t thread[4];
    atomic_store(&stop, 0);
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, checks_its_own, (void *)i);
    for (int i = 0; i < 400; i++) {
        pid_t child = vfork();
        CHECK(child >= 0);
        if (child == 0) {
            for (volatile int j = 0; j < 3000; j++) {
                char *memory = malloc(j % 200 + 1);
                *memory = 1;
                free(memory);
            }
            if (i % 10 == 0) execl("/bin/true", "true", NULL);
            if (i % 10 == 2) {
                // A limit of its own, which is not this memory's.
                struct rlimit limit = {.rlim_cur = (rlim_t)1 << 30, .rlim_max = RLIM_INFINITY};
                CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
                free(malloc(3 << 20));
            }
            if (i % 10 == 1) {
                // Its own child ends first, and it goes on as before.
                pid_t own = vfork();
                if (own == 0) _exit(0);
                for (volatile int j = 0; j < 3000; j++) free(malloc(j % 200 + 1));
            }
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    atomic_store(&stop, 0);
}

static void *limits_itself(void *unused) {
    struct rlimit limit = {.rlim_cur = (rlim_t)2 << 30, .rlim_max = RLIM_INFINITY};
    while (!atomic_load(&stop)) {
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        free(malloc(40000000));
    }
    return unused;
}

// Children that are forked while another thread gives addresses up get more all the same.
static void forks_and_limits(void) {
    pid_t alone = fork();
    if (alone == 0) {
        pthread_t thread;
        atomic_store(&stop, 0);
        CHECK(pthread_create(&thread, NULL, limits_itself, NULL) == 0);
        for (int i = 0; i < 200; i++) {
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                alarm(20);
                for (int j = 0; j < 60; j++) CHECK(malloc(1000000));
                _exit(0);
            }
            int status;
            CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        _exit(0);
    }
    int status;
    CHECK(waitpid(alone, &status, 0) == alone && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static size_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t all, pages;
    CHECK(file && fscanf(file, "%zu %zu", &all, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

// What is resident once that is less than `bytes`, or after half a minute: memory goes back at once only if nobody else is giving some back at that moment.
static size_t resident_below(size_t bytes) {
    size_t left = resident();
    for (int tenths = 0; tenths < 300 && left >= bytes; tenths++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        left = resident();
    }
    return left;
}

// Everything freed: the memory is the system's again after a while, though no thread of the program does anything.
static void gives_back(void) {
    enum { COUNT = 400000 };
    size_t before = resident();
    void **held = malloc(COUNT * sizeof *held);
    unsigned long state = 5;
    for (int i = 0; i < COUNT; i++) {
        size_t bytes = 16 + next(&state) % 500;
        held[i] = malloc(bytes);
        memset(held[i], 1, bytes);
    }
    size_t full = resident();
    for (int i = COUNT - 1; i > 0; i--) {
        int j = next(&state) % (i + 1);
        void *other = held[i];
        held[i] = held[j], held[j] = other;
    }
    for (int i = 0; i < COUNT; i++) free(held[i]);
    free(held);
    // Where threads have rows, this one keeps what lies in its own.
    const char *rows = getenv("BRICKYARD_ROWS");
    size_t kept = before + (full - before) / (rows && !strcmp(rows, "thread") ? 10 : 20);
    size_t left = resident_below(kept);
    fprintf(stderr, "resident: %zu MiB, then %zu, at last %zu\n", before >> 20, full >> 20, left >> 20);
    CHECK(left < kept);
}

// As much as the process may have, and then no more, without a crash.
static void limited(void) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = (size_t)900 << 20, .rlim_max = RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        errno = 0;
        CHECK(malloc((size_t)1 << 30) == NULL && errno == ENOMEM);
        CHECK(malloc(100) != NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void passes(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// The same where the limit is one of what can be written: pages that are not in use yet do not count, and where they are refused there is no memory.
static void limited_data(void) {
    pid_t child = fork();
    if (child == 0) {
        char line[256];
        size_t data = 0;
        FILE *file = fopen("/proc/self/status", "r");
        CHECK(file);
        while (fgets(line, sizeof line, file)) sscanf(line, "VmData: %zu", &data);
        fclose(file);
        struct rlimit limit = {.rlim_cur = (data << 10) + (70 << 20), .rlim_max = RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
        size_t given = 0;
        errno = 0;
        while (given < (size_t)400 << 20 && malloc(1000)) given += 1000;
        CHECK(given < (size_t)400 << 20 && given > 30 << 20 && errno == ENOMEM);
        _exit(0);
    }
    passes(child);
}

// A limit of addresses that the program sets itself leaves room for all that it needs: what was only reserved goes.
static void limited_later(void) {
    pid_t child = fork();
    if (child == 0) {
        size_t limit = (size_t)512 << 20;
        struct rlimit addresses = {.rlim_cur = limit, .rlim_max = RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_AS, &addresses) == 0);
        enum { PIECES = 1000, BYTES = 100000 };
        static unsigned char *piece[PIECES];
        for (int i = 0; i < PIECES; i++) {
            CHECK(piece[i] = malloc(BYTES));
            memset(piece[i], i, BYTES);
        }
        unsigned char *large = malloc(50 << 20);
        CHECK(large);
        memset(large, 1, 50 << 20);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, short_life, NULL) == 0 && pthread_join(thread, NULL) == 0);
        for (int i = 0; i < PIECES; i++) {
            CHECK(is(piece[i], BYTES, i));
            free(piece[i]);
        }
        // What is mapped where the heap's addresses were is not taken for its own.
        for (int i = 0; i < 20; i++) {
            unsigned char *others = malloc((3 + i) << 20);
            CHECK(others && malloc_usable_size(others) >= (size_t)(3 + i) << 20);
            free(others);
        }
        free(large);
        int given = 0;
        while (given < 1000000 && malloc(1000)) given++;
        CHECK(given > 50000 && given < 1000000 && errno == ENOMEM);
        // Once the limit is gone there is more.
        addresses.rlim_cur = RLIM_INFINITY;
        CHECK(setrlimit(RLIMIT_AS, &addresses) == 0);
        for (given = 0; given < 300000; given++) CHECK(malloc(1000));
        _exit(0);
    }
    passes(child);
}

// All memory can be locked where no more may be than is used.
static void locked(void) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit;
        CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
        rlim_t least = limit.rlim_max < (64 << 20) ? limit.rlim_max : (64 << 20);
        limit.rlim_cur = least;
        CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
        // Whoever may lock all is asked as somebody else.
        if (getuid() == 0 && (setgid(65534) || setuid(65534))) _exit(0);
        FILE *file = fopen("/proc/self/statm", "r");
        size_t all, pages;
        CHECK(file && fscanf(file, "%zu %zu", &all, &pages) == 2);
        fclose(file);
        int done = mlockall(MCL_CURRENT);
        file = fopen("/proc/self/statm", "r");
        CHECK(file && fscanf(file, "%zu %zu", &all, &pages) == 2);
        fclose(file);
        // The program alone may have too much.
        CHECK(done == 0 || all * sysconf(_SC_PAGESIZE) < ((size_t)1 << 30));
        void *memory = malloc(1000);
        CHECK(memory);
        free(memory);
        _exit(0);
    }
    passes(child);
}

// Runs that become short give their tails' memory back, though nothing else is freed.
static void shrinking(void) {
    enum { RUNS = 100, LONG = 1900 << 10, SHORT = 40 << 10 };
    malloc_trim(0);
    size_t before = resident();
    unsigned char *run[RUNS];
    for (int i = 0; i < RUNS; i++) memset(run[i] = malloc(LONG), i, LONG);
    CHECK(resident() - before > (size_t)RUNS * LONG / 10 * 9);
    for (int i = 0; i < RUNS; i++) run[i] = realloc(run[i], SHORT);
    size_t kept = before + RUNS * SHORT + (16 << 20);
    CHECK(resident_below(kept) < kept);
    for (int i = 0; i < RUNS; i++) {
        CHECK(is(run[i], SHORT, i));
        free(run[i]);
    }
}

// Where the process may have no more mappings, a block that cannot be unmapped loses its memory all the same.
static void crowded(void) {
    pid_t child = fork();
    if (child == 0) {
        // Above the blocks of two megabytes: mappings of their own, which the system merges.
        enum { BLOCKS = 8, BYTES = 5 << 20, PAGES = 1 << 18 };
        char *block[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) memset(block[i] = malloc(BYTES), 1, BYTES);
        long page = sysconf(_SC_PAGESIZE);
        char *pages = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(pages != MAP_FAILED);
        for (long i = 0; i < PAGES; i += 2)
            if (mprotect(pages + i * page, page, PROT_READ) != 0) break;
        size_t full = resident();
        for (int i = 1; i < BLOCKS; i += 2) free(block[i]);
        malloc_trim(0); // what is kept for the next blocks goes too
        CHECK(resident() < full - BLOCKS / 2 * (size_t)BYTES / 10 * 9);
        _exit(0);
    }
    passes(child);
}

// Threads of this process, without allocating.
static int tasks(void) {
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY), count = 0;
    CHECK(file >= 0);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    CHECK(length > 0);
    text[length] = 0;
    const char *line = strstr(text, "\nThreads:");
    CHECK(line && sscanf(line, "\nThreads: %d", &count) == 1);
    return count;
}

enum { HELD = 60000 };
static void **held;

static void *frees_half(void *unused) {
    for (int i = 0; i < HELD / 2; i++) free(held[i]);
    return unused;
}

// A process of one thread stays one, and gives memory back in passing: whatever it has freed, less than 1 MiB is idle once it has gone on for some seconds.
static void alone(void) {
    held = malloc(HELD * sizeof *held);
    for (int i = 0; i < HELD; i++) memset(held[i] = malloc(1000), 1, 1000);
    pid_t child = fork();
    if (child == 0) {
        size_t before = resident();
        frees_half(NULL);
        for (int tenths = 0; tenths < 600 && mallinfo2().keepcost >= 1 << 20; tenths++) {
            for (int i = 0; i < 300; i++) free(malloc(200000 + i * 10)); // runs: no hits
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        }
        CHECK(mallinfo2().keepcost < 1 << 20 && resident() < before - HELD / 4 * 1000);
        CHECK(tasks() == 1);
        _exit(0);
    }
    passes(child);
    for (int i = 0; i < HELD; i++) free(held[i]);
    free(held);
}

// A child that only frees, in two threads, has a thread to give its memory back; and that ends, so the process does too when its main thread has.
static void quiet(void) {
    held = malloc(HELD * sizeof *held);
    for (int i = 0; i < HELD; i++) memset(held[i] = malloc(1000), 1, 1000);
    pid_t child = fork();
    if (child == 0) {
        CHECK(tasks() == 1);
        for (int i = HELD / 2; i < HELD; i++) free(held[i]);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, frees_half, NULL) == 0);
        pthread_join(thread, NULL);
#ifdef __x86_64__
        // A thread that was joined may still be ending.
        for (int tries = 0; tries < 1000 && tasks() > 2; tries++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        CHECK(tasks() == 2);
#endif
        pthread_exit(NULL);
    }
    pid_t ended = 0;
    int status = 0;
    for (int tenths = 0; tenths < 600 && !ended; tenths++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        ended = waitpid(child, &status, WNOHANG);
    }
    if (!ended) kill(child, SIGKILL);
    CHECK(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < HELD; i++) free(held[i]);
    free(held);
}

static void *waits(void *unused) {
    while (!atomic_load(&stop)) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return unused;
}

// The loader frees what belongs to ended threads with a lock held that a new thread needs: what it frees must not start the thread that looks after memory.
static void ended_threads(void) {
    enum { THREADS = 24 };
    char *held = malloc(1 << 20), *more[16];
    for (int i = 0; i < 16; i++) more[i] = malloc(1 << 20);
    atomic_store(&stop, 0);
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread[i], NULL, waits, NULL) == 0);
    // Until there are no others; it may take longer where it is not the only one to hold memory.
    for (int tenths = 0; tenths < 300 && tasks() > THREADS + 1; tenths++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    atomic_store(&stop, 1);
    // More stacks than the C library keeps.
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 16; i++) free(more[i]);
    free(held);
}

// What the library tells of itself follows what the program does, to the byte where nobody else is at work.
static void told(void) {
    enum { COUNT = 1000 };
    static void *object[COUNT], *run, *block;
    malloc_trim(0);
    struct mallinfo2 before = mallinfo2();
    CHECK(before.arena == before.uordblks + before.fordblks);
    for (int i = 0; i < COUNT; i++) object[i] = malloc(500); // 512 bytes each
    run = malloc(200000);                                    // 49 pages
    block = malloc(5 << 20);
    struct mallinfo2 with = mallinfo2();
    // The hardened heap keeps what is freed for a while, and has room for ends.
    const char *mode = getenv("BRICKYARD_HARDEN");
    int plain = !mode || !strcmp(mode, "0");
    // What is sampled has pages of its own.
    int sampled = getenv("BRICKYARD_PROFILE") || getenv("BRICKYARD_SAMPLE");
    CHECK(with.uordblks - before.uordblks >= COUNT * 512 + (size_t)49 * 4096);
    CHECK(with.hblks - before.hblks == 1 && with.hblkhd - before.hblkhd >= 5 << 20);
    if (plain && !sampled) CHECK(with.uordblks - before.uordblks == COUNT * 512 + (size_t)49 * 4096 && with.hblkhd - before.hblkhd == 5 << 20);
    CHECK(with.arena == with.uordblks + with.fordblks && with.fordblks >= with.fsmblks);
    struct mallinfo narrow = mallinfo();
    CHECK(narrow.hblks == (int)with.hblks && narrow.uordblks == (int)with.uordblks);
    for (int i = 0; i < COUNT; i++) free(object[i]);
    free(run), free(block);
    malloc_trim(0);
    struct mallinfo2 after = mallinfo2();
    CHECK(after.uordblks == before.uordblks && after.hblks == before.hblks && after.hblkhd == before.hblkhd);
    // The text of `malloc_info` has the same numbers, and as many elements end as begin.
    char *text = NULL, line[200];
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    CHECK(stream && malloc_info(0, stream) == 0 && fclose(stream) == 0);
    errno = 0;
    CHECK(malloc_info(1, stdout) == -1 && errno == EINVAL);
    snprintf(line, sizeof line, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>", after.hblks, after.hblkhd);
    CHECK(strstr(text, line) && !strncmp(text, "<malloc version=", 16) && strstr(text, "</heap>") && strstr(text, "</malloc>"));
    free(text);
    // Settings that it has, and those that it has not.
    CHECK(mallopt(M_TRIM_THRESHOLD, 64 << 20) == 1 && mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    CHECK(mallopt(M_MXFAST, 80) == 1 && mallopt(M_MXFAST, 1 << 20) == 0 && mallopt(12345, 1) == 0);
    CHECK(mallopt(M_TRIM_THRESHOLD, 0) == 1);
    // The C library's other names are the library's too.
    void *(*other)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "__libc_malloc");
    CHECK(other);
    void *memory = other(100);
    CHECK(malloc_usable_size(memory) == (plain ? 112 : 100) || sampled);
    free(memory);
}

// A thread that forks may wait for another that waits for memory: here in a handler that is called after the library's own, since it was registered before.
static atomic_int waits_for_others, others_done;

static void wait_for_others(void) {
    if (!atomic_exchange(&waits_for_others, 0)) return;
    for (int done = atomic_load(&others_done); atomic_load(&others_done) == done;) sched_yield();
}

static void before_all(void) {
    pthread_atfork(wait_for_others, NULL, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const at_start)(void) = before_all;

static void *allocates(void *unused) {
    while (!atomic_load(&stop)) {
        // Misses of every kind, while the other thread forks too: each waits 20 ms there.
        enum { COUNT = 12 };
        unsigned char *memory[COUNT];
        size_t bytes[COUNT];
        for (int i = 0; i < COUNT; i++) {
            bytes[i] = i % 6 == 5 ? 3 << 20 : i % 6 == 4 ? 200000 : 20 + (size_t)i * 2000;
            CHECK(memory[i] = malloc(bytes[i]));
            memset(memory[i], i, 20);
        }
        for (int i = 0; i < COUNT; i++) {
            bytes[i] *= 2;
            CHECK(memory[i] = realloc(memory[i], bytes[i]));
            CHECK(is(memory[i], 20, i) && malloc_usable_size(memory[i]) >= bytes[i]);
            memset(memory[i] + bytes[i] - 20, i, 20);
        }
        for (int i = 0; i < COUNT; i++) {
            CHECK(is(memory[i], 20, i) && is(memory[i] + bytes[i] - 20, 20, i));
            free(memory[i]);
        }
        atomic_fetch_add(&others_done, 1);
    }
    return unused;
}

static void fork_that_waits(void) {
    pthread_t thread[2];
    atomic_store(&stop, 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, allocates, NULL) == 0);
    for (int i = 0; i < 5; i++) {
        atomic_store(&waits_for_others, 1);
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 2000; i++) free(malloc(i * 40));
            free(malloc(5 << 20));
            _exit(0);
        }
        passes(child);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

// The library loaded late, beside the C library's own malloc: its functions by name.
static void loaded_late(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    void *(*its_malloc)(size_t) = (void *(*)(size_t))dlsym(handle, "malloc");
    void (*its_free)(void *) = (void (*)(void *))dlsym(handle, "free");
    CHECK(its_malloc && its_free);
    for (size_t bytes = 1; bytes < 10 << 20; bytes *= 3) {
        void *memory = its_malloc(bytes);
        CHECK(memory);
        memset(memory, 1, bytes);
        its_free(memory);
    }
}

// Frees three addresses, and has all that is free put back into slabs.
static void free_and_trim(void *memory, void *second, void *third) {
    free(memory), free(second), free(third);
    malloc_trim(0);
}

static void bad_free(const char *how) {
    char *memory = malloc(64), *other = malloc(64);
    if (!strcmp(how, "interleaved, later")) free_and_trim(memory, other, memory);
    if (!strcmp(how, "sixteen inside, later")) free_and_trim(memory + 16, NULL, NULL);
    if (!strcmp(how, "eight inside")) free(memory + 8);
    if (!strcmp(how, "by realloc, unaligned")) memory = realloc(memory + 8, 70);
    if (!strcmp(how, "no bytes twice")) memory = malloc(0), free(memory), free(memory);
    if (!strcmp(how, "interleaved")) free(memory), free(other), free(memory);
    if (!strcmp(how, "large twice")) memory = malloc(5 << 20), free(memory), free(memory);
    if (!strcmp(how, "run interleaved")) memory = malloc(200000), other = malloc(200000), free(memory), free(other), free(memory);
    if (!strcmp(how, "unaligned")) free(memory + 1);
    if (!strcmp(how, "sixteen inside")) free(memory + 16);
    if (!strcmp(how, "inside a run")) free((char *)malloc(200000) + 4096);
    if (!strcmp(how, "pages inside an object")) free((char *)malloc(100000) + 4096);
    if (!strcmp(how, "inside a large")) free((char *)malloc(5 << 20) + 4096);
    if (!strcmp(how, "static")) free((void *)bad_free);
    // Behind what was asked for, and not only behind the object. Changed: what lies there is random.
    if (!strcmp(how, "one behind")) memory = malloc(50), memory[50] ^= 1, free(memory);
    if (!strcmp(how, "a zero behind")) memory = malloc(24), memory[24] = 0, free(memory);
    if (!strcmp(how, "one behind a run")) memory = malloc(200000), memory[200000] ^= 1, free(memory);
    if (!strcmp(how, "one behind a large")) memory = malloc(5 << 20), memory[5 << 20] ^= 1, free(memory);
    if (!strcmp(how, "behind, by realloc")) memory = malloc(50), memory[50] ^= 1, other = realloc(memory, 1000);
    if (!strcmp(how, "one before")) memory[-1] ^= 1, free(memory);
    if (!strcmp(how, "one before a run")) memory = malloc(200000), memory[-1] ^= 1, free(memory);
    if (!strcmp(how, "after, and reused"))
        for (free(memory), memory[40] = 1;;) free(malloc(64));
    if (!strcmp(how, "the size of free memory")) free(memory), printf("%zu\n", malloc_usable_size(memory));
    if (!strcmp(how, "twice")) free(memory), free(memory);
    if (!strcmp(how, "foreign")) free((char *)&how);
    if (!strcmp(how, "run")) memory = malloc(200000), free(memory), free(memory);
    if (!strcmp(how, "inside")) free(malloc(5 << 20)), free((char *)malloc(200000) + 4096);
    if (!strcmp(how, "overflow")) memory[64] ^= 1, free(memory);
    if (!strcmp(how, "after")) {
        free(memory), memory[20] = 1;
        // The damaged object is found when its turn comes.
        for (int i = 0; i < 1000; i++) other = realloc(malloc(64), 60);
    }
    free(other);
    printf("%p\n", (void *)memory);
}

// Accesses that end the process by a signal of their own.
static void trapped(const char *how) {
    volatile char *memory = malloc(0), *run = NULL, *large = malloc(5 << 20);
    if (strcmp(how, "far behind") && strcmp(how, "far before")) run = malloc(500000);
    if (!strcmp(how, "no bytes")) memory[0] = 1;
    if (!strcmp(how, "no bytes, zeroed")) ((volatile char *)calloc(3, 0))[0] = 1;
    if (!strcmp(how, "far behind")) ((volatile char *)malloc(100))[1 << 20] = 1;
    if (!strcmp(how, "far before")) ((volatile char *)malloc(100))[-(1 << 20)] = 1;
    if (!strcmp(how, "a freed run")) free((void *)run), run[1000] = 1;
    if (!strcmp(how, "a freed large block")) free((void *)large), large[1000] = 1;
    if (!strcmp(how, "behind a large block")) large[(5 << 20) + 4096] = 1;
}

// New and freed memory hold the values that were asked for, and everything works on.
static void perturbed(void) {
    unsigned char *before = malloc(100);
    CHECK(mallopt(M_PERTURB, 0xa5) == 1);
    for (size_t bytes = 1; bytes < 3 << 20; bytes = bytes * 3 + 1) {
        unsigned char *memory = malloc(bytes);
        CHECK(is(memory, bytes, 0x5a));
        memset(memory, 1, bytes);
        CHECK(memory = realloc(memory, bytes * 2));
        CHECK(is(memory, bytes, 1));
        free(memory);
        if (bytes <= 1000) CHECK(is(memory, bytes, 0xa5)); // still the heap's page
        unsigned char *zeros = calloc(1, bytes);
        CHECK(is(zeros, bytes, 0));
        free(zeros);
    }
    free(before);
    family(), resizing(), threads();
    CHECK(mallopt(M_PERTURB, 0) == 1);
    family(), threads();
}

// What a program may rely on with the hardened heap, beside what it may rely on anyway.
static void hardened(void) {
    enum { COUNT = 3000 };
    static unsigned char *held[COUNT];
    unsigned long state = 1;
    for (int round = 0; round < 40; round++)
        for (int i = 0; i < COUNT; i++) {
            size_t bytes = next(&state) % (i % 100 ? 2000 : 200000);
            free(held[i]);
            held[i] = malloc(bytes);
            // New memory is zero, has exactly so many bytes, and is not what was freed just now.
            CHECK(held[i] && is(held[i], bytes, 0) && malloc_usable_size(held[i]) == bytes);
            memset(held[i], i, bytes);
            if (i % 3 == 0) {
                size_t more = bytes + next(&state) % 300;
                CHECK(held[i] = realloc(held[i], more));
                CHECK(is(held[i], bytes, i) && is(held[i] + bytes, more - bytes, 0));
                CHECK(malloc_usable_size(held[i]) == more);
                memset(held[i], i, more);
            }
            if (i % 7 == 0) {
                size_t fewer = malloc_usable_size(held[i]) / 2;
                CHECK(held[i] = realloc(held[i], fewer + 1));
                CHECK(is(held[i], fewer, i) && malloc_usable_size(held[i]) == fewer + 1);
            }
        }
    for (int i = 0; i < COUNT; i++) free(held[i]);
    for (size_t align = 32; align <= 1 << 22; align *= 2)
        for (size_t bytes = 1; bytes < 3 << 20; bytes = bytes * 5 + 3) {
            unsigned char *memory = aligned_alloc(align, bytes);
            CHECK(memory && (uintptr_t)memory % align == 0 && is(memory, bytes, 0));
            memset(memory, 7, bytes);
            CHECK(malloc_usable_size(memory) == bytes);
            free(memory);
        }
    // Pieces of no bytes are apart, and are freed once.
    void *first = malloc(0), *second = calloc(0, 8);
    CHECK(first && second && first != second && malloc_usable_size(first) == 0);
    CHECK(second = realloc(second, 10));
    free(first), free(second);
    for (size_t align = 16; align <= 1 << 20; align *= 2) {
        void *memory = aligned_alloc(align, 0);
        CHECK(memory && (uintptr_t)memory % align == 0);
        free(memory);
    }
    enum { MANY = (1 << 20) + 1000 };
    void **many = malloc(MANY * sizeof *many);
    for (int i = 0; i < MANY; i++) CHECK(many[i] = malloc(0));
    for (int i = 0; i < MANY; i++) free(many[i]);
    free(many);
    // A large block grows and shrinks by moving pages: quickly, and what is new is zero.
    unsigned char *large = malloc(3 << 20);
    memset(large, 1, 3 << 20);
    for (size_t had = 3 << 20, bytes = had; bytes < 300 << 20; had = bytes) {
        CHECK(large = realloc(large, bytes += bytes / 3 + 12345));
        CHECK(malloc_usable_size(large) == bytes && is(large + had - 100, 100, 1) && is(large + had, bytes - had, 0));
        memset(large + had, 1, bytes - had);
    }
    CHECK(large = realloc(large, (4 << 20) + 5));
    CHECK(is(large, (4 << 20) + 5, 1));
    CHECK(large = realloc(large, 6 << 20));
    CHECK(is(large, (4 << 20) + 5, 1) && is(large + (4 << 20) + 5, (2 << 20) - 5, 0));
    free(large);
    // The same memory is not had again at once.
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        void *memory = malloc(100);
        free(memory);
        void *again = malloc(100);
        same += memory == again;
        free(again);
    }
    CHECK(same < 100);
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "late")) return loaded_late(words[2]), 0;
    if (count == 3 && !strcmp(words[1], "bad")) return bad_free(words[2]), 0;
    if (count == 3 && !strcmp(words[1], "traps")) return trapped(words[2]), 0;
    if (count == 2 && !strcmp(words[1], "hardened")) return hardened(), 0;
    if (count == 2 && !strcmp(words[1], "perturbed")) return perturbed(), 0;
    struct {
        const char *name;
        void (*check)(void);
    } checks[] = {{"family", family},         {"alignments", alignments}, {"exhaustion", exhaustion},
                  {"resizing", resizing},     {"threads", threads},       {"many threads", many_threads},
                  {"forks", forks},           {"limited", limited},       {"limited data", limited_data},
                  {"shrinking", shrinking},   {"crowded", crowded},       {"gives back", gives_back},
                  {"alone", alone},           {"quiet", quiet},           {"ended threads", ended_threads},
                  {"told", told},             {"fork that waits", fork_that_waits},
                  {"vforks", vforks},         {"limited later", limited_later},
                  {"locked", locked},         {"forks and limits", forks_and_limits}};
    // Those that mostly wait, and do not hang on settings.
    int quickly = count == 2 && !strcmp(words[1], "quickly");
    for (unsigned i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (!quickly || (checks[i].check != quiet && checks[i].check != ended_threads)) checks[i].check();
        printf("%s\n", checks[i].name);
        fflush(stdout);
    }
    return 0;
}
