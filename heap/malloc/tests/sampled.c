// A program whose memory is known, to be profiled, and mistakes with memory, to be found.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (!strcmp(how, "signal")) {
        raise(SIGUSR2);
        _exit(0);
    }
    if (!strcmp(how, "call")) {
        int (*call)(int) = NULL;
        extern int brickyard_profile(int) __attribute__((weak));
        call = brickyard_profile;
        int done = call ? call(1) : -1;
        _exit(done);
    }
    if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (!child) return 0;
        int status;
        return waitpid(child, &status, 0) == child && !status ? 0 : 1;
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

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "profile")) return profile(words[2]);
    if (count == 3 && !strcmp(words[1], "mistake")) return mistake(words[2]);
    if (count == 2 && !strcmp(words[1], "fault")) {
        signal(SIGSEGV, on_fault);
        *(volatile char *)8 = 1;
    }
    if (count == 2 && !strcmp(words[1], "fault at once")) *(volatile char *)8 = 1;
    return 2;
}
