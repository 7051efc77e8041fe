// A program whose memory is known, to be profiled, and mistakes with memory, to be found.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

enum { KEPT = 50000, KEPT_BYTES = 400, CHURNED = 400000, CHURNED_BYTES = 200 };

// Not inlined, and no tail calls: each is a frame of its own.
#define FRAME __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))

static void *kept[KEPT];

FRAME static void *asks(size_t bytes) {
    char *memory = malloc(bytes);
    memory[0] = memory[bytes - 1] = 1;
    return memory;
}

FRAME static void keeps(void) {
    for (int i = 0; i < KEPT; i++) kept[i] = asks(KEPT_BYTES);
}

FRAME static void churns(void) {
    for (int i = 0; i < CHURNED; i++) free(asks(CHURNED_BYTES));
}

FRAME static char *grows(void) {
    char *large = malloc(20 << 20);
    large[0] = 7;
    large = realloc(large, 50 << 20);
    // More than there are addresses: it stays as it was.
    if (realloc(large, (size_t)1 << 60)) return NULL;
    return large[0] == 7 ? large : NULL;
}

FRAME static void *frees(void *memory) {
    free(memory);
    return memory;
}

static void *all(void *none) {
    keeps();
    churns();
    return none;
}

static volatile int stop;

static void *asks_on(void *none) {
    while (!stop) free(asks(CHURNED_BYTES));
    return none;
}

// The signal comes to several threads at once, which allocate.
static void signals(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, asks_on, NULL)) _exit(1);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 3; i++) pthread_kill(threads[i], SIGUSR2);
        usleep(1000);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

extern int brickyard_profile(int) __attribute__((weak));

static void *writes(void *to) {
    if (!brickyard_profile || brickyard_profile(*(int *)to)) _exit(1);
    close(*(int *)to);
    return NULL;
}

// More stacks than a pipe has room for, so that the writer waits for the reader.
FRAME static void *deep(unsigned path, int depth);
FRAME static void *deeper(unsigned path, int depth) { return deep(path, depth); }
FRAME static void *deep(unsigned path, int depth) {
    if (!depth) return asks(100);
    return path & 1 ? deeper(path >> 1, depth - 1) : deep(path >> 1, depth - 1);
}

// The reader is a child that is made while the profile is being written.
static int forks_a_reader(void) {
    int ends[2], status;
    pthread_t writer;
    for (unsigned path = 0; path < 2048; path++) deep(path, 11);
    if (pipe(ends) || pthread_create(&writer, NULL, writes, &ends[1])) return 1;
    usleep(200000);
    pid_t child = fork();
    if (!child) {
        char piece[4096];
        long all = 0, read_now;
        close(ends[1]);
        while ((read_now = read(ends[0], piece, sizeof piece)) > 0) all += read_now;
        _exit(all < 100000);
    }
    pthread_join(writer, NULL);
    return waitpid(child, &status, 0) == child && !status ? 0 : 1;
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *none) {
    (void)context, (void)none;
    return _URC_NO_REASON;
}

// Tables of frames that are registered while the program runs: whoever looks for one of them first sorts them, in memory that it
// asks for under its lock.
static int registers(void) {
    extern void __register_frame(void *) __attribute__((weak));
    enum { FRAMES = 20000 };
    static struct { unsigned length, id; unsigned char rest[16]; } head = {20, 0, {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1}};
    static struct { unsigned length, head; unsigned long start, length_of_code, none; } frames[FRAMES + 1];
    char *table = malloc(sizeof head + sizeof frames);
    memcpy(table, &head, sizeof head);
    for (int i = 0; i < FRAMES; i++) {
        frames[i].length = 28, frames[i].start = 0x1000 + 16ul * i, frames[i].length_of_code = 16;
        frames[i].head = sizeof head + sizeof frames[0] * i + 4;
    }
    memcpy(table + sizeof head, frames, sizeof frames);
    if (!__register_frame) return 0;
    __register_frame(table);
    // As an exception would.
    _Unwind_Backtrace(visit, NULL);
    for (int i = 0; i < 1000; i++) free(asks(100));
    return 0;
}

static int profile(const char *how) {
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, all, NULL)) return 1;
        pthread_join(thread, NULL);
    } else {
        all(NULL);
    }
    char *large = grows();
    if (!large) return 1;
    if (!strcmp(how, "signals")) signals();
    if (!strcmp(how, "signal")) {
        raise(SIGUSR2);
        _exit(0);
    }
    if (!strcmp(how, "call")) {
        _exit(brickyard_profile ? brickyard_profile(1) : -1);
    }
    if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (!child) return 0;
        int status;
        return waitpid(child, &status, 0) == child && !status ? 0 : 1;
    }
    return 0;
}

// Large zeros are pages that nobody wrote, also where requests are counted.
static int zeros(void) {
    char *object = asks(65536);
    memset(object, 1, 65536);
    frees(object);
    char *zeros = calloc(1, 65536);
    return !zeros || zeros == object ? 3 : 0;
}

// An aligned block has the pages that it needs, also where it is a sample.
static int aligned(void) {
    for (int i = 0; i < 200; i++) {
        void *aligned = memalign(1 << 20, 40000);
        if (!aligned || (uintptr_t)aligned % (1 << 20) || malloc_usable_size(aligned) >= 1 << 17) return 4;
    }
    return 0;
}

static volatile char sink;

// One of these requests is guarded; all make the same mistake.
static int mistake(const char *how) {
    for (int i = 0; i < 1000; i++) {
        char *memory = asks(40);
        if (!strcmp(how, "behind")) sink = memory[64];
        if (!strcmp(how, "beside")) memory[40] = 1;
        if (!strcmp(how, "before")) sink = memory[-1];
        if (!strcmp(how, "inside")) frees(memory + 16);
        frees(memory);
        if (!strcmp(how, "after")) sink = memory[3];
        if (!strcmp(how, "twice")) frees(memory);
    }
    return 0;
}

static void on_fault(int number) {
    static const char text[] = "a handler of the program\n";
    (void)!write(2, text, sizeof text - 1);
    _exit(number);
}

static struct sigaction before;
static int calls;

// As crash reporters do: says something, and passes it on to the handler that was there before.
static void passes_on(int signal, siginfo_t *about, void *context) {
    if (++calls > 1) _exit(4);
    if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, about, context);
    else if (before.sa_handler == SIG_DFL) sigaction(signal, &before, NULL);
    else before.sa_handler(signal);
}

static void counts(int signal) {
    (void)signal;
    if (++calls > 1) _exit(6);
}

static void never(int signal) {
    (void)signal;
    _exit(5);
}

// Handlers that the program sets and takes away while others of its requests are guarded.
static int handlers(const char *which) {
    struct sigaction ours = {0}, replaced;
    free(asks(40));
    if (!strcmp(which, "chain")) {
        ours.sa_sigaction = passes_on;
        ours.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &ours, &before);
        free(asks(40));
    } else if (!strcmp(which, "reset")) {
        // It returns, and counts on the signal to end the program when it comes again.
        ours.sa_handler = counts;
        ours.sa_flags = SA_RESETHAND;
        sigaction(SIGSEGV, &ours, NULL);
        free(asks(40));
    } else {
        // More often than the heap has handlers: none of these is called, as each is taken away again.
        for (int i = 0; i < 20; i++) {
            ours.sa_handler = never;
            ours.sa_flags = i % 2 ? SA_NODEFER : 0;
            sigaction(SIGSEGV, &ours, &replaced);
            free(asks(40));
            sigaction(SIGSEGV, &replaced, NULL);
        }
    }
    *(volatile char *)8 = 1;
    return 3;
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "handlers")) return handlers(words[2]);
    if (count == 3 && !strcmp(words[1], "profile")) return profile(words[2]);
    if (count == 3 && !strcmp(words[1], "mistake")) return mistake(words[2]);
    if (count == 2 && !strcmp(words[1], "fault")) {
        signal(SIGSEGV, on_fault);
        *(volatile char *)8 = 1;
    }
    if (count == 2 && !strcmp(words[1], "fault after")) {
        signal(SIGSEGV, on_fault);
        free(asks(40));
        *(volatile char *)8 = 1;
    }
    if (count == 2 && !strcmp(words[1], "zeros")) return zeros();
    if (count == 2 && !strcmp(words[1], "aligned")) return aligned();
    if (count == 2 && !strcmp(words[1], "registers")) return registers();
    if (count == 2 && !strcmp(words[1], "reader")) return forks_a_reader();
    if (count == 2 && !strcmp(words[1], "fault at once")) *(volatile char *)8 = 1;
    return 2;
}
