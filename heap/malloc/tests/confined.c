// A program that is confined in one way or another, and what it may still expect of malloc. Each way ends the program if something fails.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s (errno %d)\n", __LINE__, #what, errno); \
            _exit(1); \
        } \
    } while (0)

// Keeps this thread on a CPU.
static void on_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

// ---- work ----

enum { PIECES = 512 };

// Allocates, resizes and frees memory of all kinds, with contents checked.
static void churn(int rounds) {
    static __thread unsigned char *piece[PIECES];
    static __thread size_t length[PIECES];
    unsigned long state = 1;
    for (int round = 0; round < rounds; round++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        size_t at = (state >> 33) % PIECES, of = state >> 42;
        size_t bytes = round % 512 == 0 ? (size_t)3 << 20 : round % 32 == 0 ? 40000 + of % 900000 : 1 + of % 5000;
        if (piece[at]) CHECK(piece[at][0] == (unsigned char)at && piece[at][length[at] - 1] == (unsigned char)at);
        if (round % 5 == 0) {
            piece[at] = realloc(piece[at], bytes);
        } else {
            free(piece[at]);
            piece[at] = malloc(bytes);
        }
        CHECK(piece[at]);
        piece[at][0] = piece[at][bytes - 1] = (unsigned char)at;
        length[at] = bytes;
    }
    for (int at = 0; at < PIECES; at++) {
        free(piece[at]);
        piece[at] = NULL;
    }
}

// Long enough that what is done once a second is done.
static void churn_for(double seconds) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        churn(2000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begun.tv_sec + (now.tv_nsec - begun.tv_nsec) / 1e9 < seconds);
}

static long resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

// ---- limits ----

// Takes pieces until there are no more, or `most` bytes. Returns their bytes; they are free again.
static size_t fill(size_t bytes, size_t most) {
    struct piece {
        struct piece *next;
        size_t number;
    } *first = NULL;
    size_t count = 0;
    for (struct piece *piece; count * bytes < most; first = piece) {
        errno = 0;
        piece = malloc(bytes);
        if (!piece) break;
        piece->next = first, piece->number = ++count;
    }
    if (count * bytes < most) {
        CHECK(errno == ENOMEM);
        // The other functions say the same, or get what is left.
        void *aligned = NULL, *zeros, *larger;
        int done = posix_memalign(&aligned, 64, bytes * 2);
        CHECK(done == 0 || (done == ENOMEM && !aligned));
        errno = 0;
        CHECK((zeros = calloc(2, bytes)) || errno == ENOMEM);
        CHECK(!first || (larger = realloc(first, bytes * 2), first = larger ? larger : first, larger || errno == ENOMEM));
        free(aligned), free(zeros);
    }
    for (size_t number = count; first; number--) {
        CHECK(first->number == number);
        struct piece *next = first->next;
        free(first);
        first = next;
    }
    return count * bytes;
}

static void *nothing(void *unused) {
    free(malloc(100));
    return unused;
}

// As many threads as there can be at once, and at most 200.
static int threads(void) {
    static pthread_t thread[200];
    int count = 0;
    while (count < 200 && pthread_create(&thread[count], NULL, nothing, NULL) == 0) count++;
    for (int i = 0; i < count; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    return count;
}

// At least `least` bytes in objects of each size can be had, and nothing ends the program, up to `most`.
static void fills(size_t least, size_t most) {
    for (int round = 0; round < 2; round++) {
        size_t sizes[] = {64, 1000, 30000};
        for (int i = 0; i < 3; i++) {
            size_t had = fill(sizes[i], most);
            if (had < least) {
                fprintf(stderr, "%zu bytes in objects of %zu, not %zu\n", had, sizes[i], least);
                _exit(1);
            }
        }
        fill(100000, most), fill(3000000, most), fill(most, most * 2);
        malloc_trim(0);
    }
    threads();
    CHECK(nothing(&least) == &least);
}

static void limit(const char *what, size_t bytes) {
    struct rlimit limit = {bytes, bytes};
    CHECK(setrlimit(strcmp(what, "data") == 0 ? RLIMIT_DATA : RLIMIT_AS, &limit) == 0);
}

// Freed large blocks, which are kept for a while, are given back before a small request is refused.
static void spares(void) {
    enum { LARGE = 12, SMALL = 40 << 20 };
    void *large[LARGE];
    for (int i = 0; i < LARGE; i++) CHECK(large[i] = malloc(3 << 20));
    for (int i = 0; i < LARGE; i++) free(large[i]);
    CHECK(fill(1000, SMALL) >= SMALL);
}

// ---- locked memory ----

// All memory that the process has is locked: that is little, however large its tables may become.
static void locked(void) {
    churn(1);
    if (mlockall(MCL_CURRENT) != 0) {
        printf("skipped: memory cannot be locked\n");
        return;
    }
    CHECK(resident() < 200l << 20);
    churn(2000);
    munlockall();
}

// A freed block that is still locked keeps nothing else from going back.
static void locked_and_freed(void) {
    enum { COUNT = 2000, BYTES = 100000 };
    static char *piece[COUNT];
    for (int i = 0; i < COUNT; i++) memset(piece[i] = malloc(BYTES), 1, BYTES);
    for (int i = 0; i < COUNT; i += 10) {
        if (mlock(piece[i], 5000) != 0) {
            printf("skipped: memory cannot be locked\n");
            return;
        }
    }
    for (int i = 0; i < COUNT; i++) free(piece[i]);
    CHECK(resident() < 80l << 20);
}

// ---- blocks that get smaller ----

static void shrinks(void) {
    for (size_t had = 400; had > 1; had = had == 400 ? 2 : 1) {
        size_t bytes = had << 20, less = bytes / 20 * 11;
        char *block = malloc(bytes);
        memset(block, 1, bytes);
        long before = resident();
        CHECK(block = realloc(block, less));
        malloc_trim(0);
        CHECK(block[less - 1] == 1);
        CHECK(resident() < before - (long)(bytes - less) * 3 / 4);
        free(block);
    }
}

// ---- real time ----

static volatile int over;

// Takes the lock of large blocks often, and calls the system under it.
static void several(void) {
    void *block[9];
    for (int i = 0; i < 9; i++) block[i] = malloc((size_t)(3 + i) << 20);
    for (int i = 0; i < 9; i++) free(block[i]);
}

static void *usual_thread(void *unused) {
    on_cpu(0);
    while (!over) several();
    return unused;
}

static void *real_time_thread(void *unused) {
    on_cpu(0);
    struct sched_param param = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        printf("skipped: real time is not allowed\n");
        return unused;
    }
    double longest = 0;
    for (int i = 0; i < 3000; i++) {
        struct timespec pause = {0, 200000}, begun, now;
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &begun);
        several();
        clock_gettime(CLOCK_MONOTONIC, &now);
        double took = now.tv_sec - begun.tv_sec + (now.tv_nsec - begun.tv_nsec) / 1e9;
        longest = took > longest ? took : longest;
    }
    // Until the system throttles it, if it waits for a thread that cannot run.
    fprintf(stderr, "longest %.3f s\n", longest);
    CHECK(longest < 0.85);
    return unused;
}

static void real_time(void) {
    pthread_t usual, other;
    CHECK(pthread_create(&usual, NULL, usual_thread, NULL) == 0);
    CHECK(pthread_create(&other, NULL, real_time_thread, NULL) == 0);
    pthread_join(other, NULL);
    over = 1;
    pthread_join(usual, NULL);
}

// The thread that is started by one of real time is not one itself.
static void *starts_the_background(void *unused) {
    struct sched_param param = {.sched_priority = 10};
    if (prctl(PR_GET_SECCOMP) > 0 || sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        printf("skipped: real time is not allowed, or calls are filtered\n");
        return unused;
    }
    static char *piece[16000];
    for (int i = 0; i < 16000; i++) memset(piece[i] = malloc(1000), 1, 1000);
    param.sched_priority = 0;
    CHECK(sched_setscheduler(0, SCHED_OTHER, &param) == 0);
    sleep(1);
    char path[300], line[512];
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(line, sizeof line, file) && strstr(line, "(brickyard)")) {
            found = 1;
            CHECK(sched_getscheduler(atoi(task->d_name)) == SCHED_OTHER);
        }
        fclose(file);
    }
    closedir(tasks);
    CHECK(found);
    return unused;
}

// ---- filters of system calls ----

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif
#define KILL SECCOMP_RET_KILL_PROCESS
#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))
#define CALLS(...) (const int[]){__VA_ARGS__, -1}

// From now on these calls have one result and all others another, for all threads.
static void filter(const int *calls, unsigned result, unsigned others) {
    struct sock_filter code[64];
    int length = 0;
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, KILL);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (; *calls >= 0; calls++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *calls, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    struct sock_fprog program = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        printf("skipped: no filters of system calls here\n");
        exit(0);
    }
}

static pthread_barrier_t begin;
static double seconds;

static void *churns(void *unused) {
    pthread_barrier_wait(&begin);
    churn_for(seconds);
    return unused;
}

// Four threads work for a while; `before` is called when they are there.
static void work(double how_long, void (*before)(void)) {
    pthread_t thread[3];
    pthread_barrier_init(&begin, NULL, 4);
    seconds = how_long;
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&thread[i], NULL, churns, NULL) == 0);
    before();
    churns(NULL);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(thread[i], NULL) == 0);
}

static void no_more_threads(void) {
    filter(CALLS(SYS_clone, SYS_clone3, SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_membarrier), KILL, SECCOMP_RET_ALLOW);
}

static void none(void) {}

// Memory that has been freed does not stay with the process.
static void gives_back(void) {
    enum { COUNT = 2000, BYTES = 100000 };
    static void *piece[COUNT];
    for (int i = 0; i < COUNT; i++) CHECK((piece[i] = malloc(BYTES)) && memset(piece[i], 1, BYTES));
    long much = resident();
    CHECK(much > (long)COUNT * BYTES);
    for (int i = 0; i < COUNT; i++) free(piece[i]);
    malloc_trim(0);
    CHECK(resident() < much / 4);
}

static void filtered(char **argument) {
    const char *how = *argument;
    if (strcmp(how, "everything else") == 0) {
        churn(1); // The heap is built by the first request, with a look at what the machine has.
        filter(CALLS(SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_write, SYS_exit_group), SECCOMP_RET_ALLOW, KILL);
        churn_for(2.2);
        malloc_trim(0);
        exit(malloc((size_t)1 << 60) != NULL);
    }
    if (strcmp(how, "refused") == 0) {
        const char *names[] = {"madvise", "mprotect", "mremap", "munmap", "affinity", "threads"};
        const int *calls[] = {CALLS(SYS_madvise), CALLS(SYS_mprotect), CALLS(SYS_mremap), CALLS(SYS_munmap),
            CALLS(SYS_sched_setaffinity, SYS_sched_getaffinity), CALLS(SYS_clone, SYS_clone3)};
        for (int i = 0; i < 6; i++) {
            if (strcmp(argument[1], names[i]) != 0) continue;
            if (strcmp(names[i], "threads") == 0) CHECK(threads() > 0);
            filter(calls[i], REFUSE(strcmp(names[i], "threads") == 0 ? EAGAIN : EPERM), SECCOMP_RET_ALLOW);
            churn_for(1.2);
            if (strcmp(names[i], "munmap") != 0) gives_back();
            if (strcmp(names[i], "threads") == 0)
                CHECK(threads() == 0);
            else if (strcmp(names[i], "mprotect") != 0) // The C library needs it for stacks.
                work(1.2, none);
            return;
        }
        CHECK(!"a call of the list");
    }
    if (strcmp(how, "threads") == 0) return work(2.5, no_more_threads);
    CHECK(strcmp(how, "affinity") == 0);
    filter(CALLS(SYS_sched_setaffinity), KILL, SECCOMP_RET_ALLOW);
    execl("/proc/self/exe", "confined", "works", NULL);
    CHECK(!"executed");
}

// ---- rights of another user ----

static void tells(void) {
    void *five = malloc(5);
    printf("secure=%lu usable=%zu library=%d\n", getauxval(AT_SECURE), malloc_usable_size(five), dlsym(RTLD_DEFAULT, "brickyard_stats") != NULL);
    malloc_stats();
    free(five);
}

// ---- overcommit off ----

// Prints the KiB that the system has promised to all processes, with this one at work. Where it counts strictly,
// 64 GiB at a time can be had a few times at most.
static void strictly(void) {
    enum { MOST = 64 };
    void *work = malloc(100000), *much[MOST];
    CHECK(work && memset(work, 1, 100000));
    int count = 0;
    for (errno = 0; count < MOST && (much[count] = malloc((size_t)64 << 30)); count++) {}
    CHECK(count < MOST && errno == ENOMEM);
    while (count) free(much[--count]);
    long promised = 0;
    char line[200];
    FILE *file = fopen("/proc/meminfo", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file)) sscanf(line, "Committed_AS: %ld", &promised);
    fclose(file);
    printf("%ld\n", promised);
    free(work);
}

// Where runs fill the span (of 1 GiB), a block of 32 to 128 KiB is a mapping. The heap does not
// first give back what it has at hand: the object that was freed last is still the next one, on this
// CPU.
static void full_span(void) {
    on_cpu(sched_getcpu());
    static void *volatile block, *object[10];
    for (int i = 0; i < 10; i++) CHECK((object[i] = malloc(100)));
    for (int i = 0; i < 1100; i++) CHECK((block = malloc(1 << 20)));
    for (int i = 0; i < 200; i++) CHECK((block = malloc(65536)));
    for (int i = 0; i < 10; i++) free(object[i]);
    CHECK((block = malloc(65536)));
    block = malloc(100);
    CHECK(block == object[9]);
}

int main(int count, char **argument) {
    if (count < 2) return 2;
    const char *way = argument[1];
    if (strcmp(way, "filtered") == 0) filtered(argument + 2);
    if (strcmp(way, "works") == 0) work(2.5, none);
    if (strcmp(way, "tells") == 0) tells();
    if (strcmp(way, "strictly") == 0) strictly();
    if (strcmp(way, "gives back") == 0)
        for (int round = 0; round < 5; round++) gives_back();
    if (strcmp(way, "fills") == 0) fills(strtoul(argument[2], NULL, 0) << 20, strtoul(argument[3], NULL, 0) << 20);
    if (strcmp(way, "spares") == 0) spares();
    if (strcmp(way, "locked") == 0) locked();
    if (strcmp(way, "locked and freed") == 0) locked_and_freed();
    if (strcmp(way, "shrinks") == 0) shrinks();
    if (strcmp(way, "full span") == 0) full_span();
    if (strcmp(way, "real time") == 0) real_time();
    if (strcmp(way, "starts the background") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, starts_the_background, NULL) == 0);
        pthread_join(thread, NULL);
    }
    if (strcmp(way, "limited data, spares") == 0) {
        limit("data", 64 << 20);
        execl("/proc/self/exe", "confined", "spares", NULL);
        CHECK(!"executed");
    }
    if (strcmp(way, "limited") == 0) {
        // limited addresses|data MIB early|late LEAST MOST
        int is_late = strcmp(argument[4], "late") == 0;
        if (is_late) churn(1); // The heap is there.
        limit(argument[2], strtoul(argument[3], NULL, 0) << 20);
        if (is_late)
            fills(strtoul(argument[5], NULL, 0) << 20, strtoul(argument[6], NULL, 0) << 20);
        else {
            execl("/proc/self/exe", "confined", "fills", argument[5], argument[6], NULL);
            CHECK(!"executed");
        }
    }
    return 0;
}
