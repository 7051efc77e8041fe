// Threads in crowds: thousands at once, memory from one freed by another; forks while threads come and go.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s (errno %d)\n", __LINE__, #what, errno); \
            _exit(1); \
        } \
    } while (0)

static unsigned long next(unsigned long *state) {
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return *state >> 33;
}

// Pieces lie in slots. Who puts one in frees the one that lay there, mostly another thread's.
enum { SLOTS = 4096 };
static _Atomic(size_t *) slot[SLOTS];

static void swaps(unsigned long seed, int rounds) {
    for (int round = 0; round < rounds; round++) {
        size_t bytes = sizeof(size_t) * 2 + next(&seed) % (round % 64 ? 1500 : 100000);
        size_t *mine = malloc(bytes);
        CHECK(mine);
        mine[0] = mine[bytes / sizeof(size_t) - 1] = bytes;
        size_t *other = atomic_exchange(&slot[next(&seed) % SLOTS], mine);
        if (other) {
            bytes = other[0];
            CHECK(bytes && other[bytes / sizeof(size_t) - 1] == bytes);
            free(other);
        }
    }
}

static long resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

// ---- at once ----

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int there, done;

static void *waits(void *seed) {
    swaps((uintptr_t)seed, 300);
    pthread_mutex_lock(&mutex);
    there++;
    pthread_cond_broadcast(&changed);
    while (!done) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    swaps((uintptr_t)seed + 1, 100);
    return NULL;
}

// So many threads are there at once. Prints how many, and the bytes that each takes beside its stack of at most 32 KiB.
static void at_once(int most) {
    pthread_t *thread = calloc(most, sizeof *thread);
    pthread_attr_t attributes;
    CHECK(thread && pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
    int count = 0;
    while (count < most && pthread_create(&thread[count], &attributes, waits, (void *)(uintptr_t)(count + 1)) == 0) count++;
    pthread_mutex_lock(&mutex);
    while (there < count) pthread_cond_wait(&changed, &mutex);
    // What lies in slots: about 4,096 pieces of 2,300 bytes on the average.
    long held = resident();
    done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < count; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++) free(atomic_exchange(&slot[i], NULL));
    free(thread);
    printf("%d %ld\n", count, held);
}

// ---- forks ----

static _Atomic int stop;

static void *briefly(void *seed) {
    swaps((uintptr_t)seed, 40);
    return NULL;
}

// Makes threads that end soon, until it is told to stop.
static void *makes(void *seed) {
    pthread_t thread[4];
    for (uintptr_t round = (uintptr_t)seed; !stop; round += 4) {
        int count = 0;
        while (count < 4 && pthread_create(&thread[count], NULL, briefly, (void *)(round + count)) == 0) count++;
        CHECK(count);
        for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
    }
    return NULL;
}

// What a child does: memory of all kinds, and threads of its own.
static void is_child(int number) {
    alarm(60);
    swaps(number, 200);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, briefly, (void *)(uintptr_t)(number + i)) == 0);
    swaps(number + 7, 200);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    pid_t child = number % 8 == 0 ? fork() : 0;
    int status = 0;
    CHECK(child >= 0 && (child == 0 || (waitpid(child, &status, 0) == child && status == 0)));
    swaps(number + 8, 10);
    _exit(0);
}

static void forks(void) {
    pthread_t maker[3];
    alarm(300);
    for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&maker[i], NULL, makes, (void *)(i * 1000000)) == 0);
    for (int number = 0; number < 150; number++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) is_child(number);
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (status != 0) fprintf(stderr, "child %d ended with %d\n", number, status);
        CHECK(status == 0);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) CHECK(pthread_join(maker[i], NULL) == 0);
}

// ---- small stacks ----

// Requests of all lengths, most of which find nothing at hand.
static void *misses(void *none) {
    static void *kept[4000];
    for (int i = 0; i < 4000; i++) CHECK(kept[i] = malloc(i * 37 % 140000 + 1));
    for (int i = 0; i < 4000; i++) CHECK(kept[i] = realloc(kept[i], i * 53 % 150000 + 1));
    for (int i = 0; i < 4000; i++) free(kept[i]);
    free(realloc(realloc(malloc(3 << 20), 9 << 20), 100));
    return none;
}

// The smallest stack that a thread may have, of which the C library takes some.
static void small(void) {
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, sysconf(_SC_THREAD_STACK_MIN)) == 0);
    free(malloc(1));
    for (int round = 0; round < 4; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, misses, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

int main(int count, char **argument) {
    if (count == 2 && strcmp(argument[1], "small") == 0) return small(), 0;
    if (count > 2) at_once(atoi(argument[2]));
    if (count == 2) forks();
    return 0;
}
