// Stacks whose return addresses are known: a profile must have them, one after the other. The first word says how the stack
// comes about.
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

// A frame of its own.
#define FRAME __attribute__((noinline))

// The return addresses of the functions that have begun, the outermost first. Frames that are not known may lie behind one
// that is the last of others.
static struct {
    uintptr_t address;
    bool is_last_of_others;
} known[32];
static int depth;

static void is_known(uintptr_t address, bool is_last_of_others = false) { known[depth++] = {address, is_last_of_others}; }
#define KNOWN is_known((uintptr_t)__builtin_return_address(0))

FRAME static char *asks(size_t bytes) {
    KNOWN;
    char *memory = (char *)malloc(bytes);
    CHECK(memory);
    memory[0] = 1;
    return memory;
}

extern "C" int brickyard_profile(int) __attribute__((weak));

// The addresses of each stack of the profile. Returns true if `is_one` does for one of them.
template <class Is> static bool any_stack(Is is_one) {
    static char line[1 << 12];
    int file = memfd_create("profile", 0);
    CHECK(brickyard_profile && brickyard_profile(file) == 0 && lseek(file, 0, SEEK_SET) == 0);
    FILE *text = fdopen(file, "r");
    CHECK(fgets(line, sizeof line, text));
    while (fgets(line, sizeof line, text) && strcmp(line, "\n") != 0) {
        uintptr_t addresses[64];
        int count = 0;
        for (char *at = strchr(line, '@'); at && (at = strstr(at, "0x"));) addresses[count++] = strtoul(at, &at, 16);
        if (is_one(addresses, count)) return true;
    }
    return false;
}

// Returns true if a stack has all that are known, behind that in `asks`.
static bool is_whole() {
    return any_stack([](const uintptr_t *addresses, int count) {
        int at = 1;
        for (int i = depth - 1; i >= 0; i--, at++) {
            while (known[i].is_last_of_others && at < count && addresses[at] != known[i].address) at++;
            if (at >= count || addresses[at] != known[i].address) return false;
        }
        return true;
    });
}

// ---- frames of C++, and of code that has no usual frame ----

static bool was_whole[2];

struct Ends {
    FRAME ~Ends() {
        KNOWN;
        free(asks(300));
        was_whole[0] = is_whole();
        depth -= 2;
    }
};

FRAME static void throws() {
    KNOWN;
    Ends ends;
    if (depth) throw 7;
}

// Where the frame begins is an expression.
#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
FRAME static int compares(const void *one, const void *other) {
    // The C library's frames lie between.
    KNOWN;
    known[depth - 2].is_last_of_others = true;
    alignas(64) volatile char aligned[64] = {};
    free(asks(400 + aligned[3]));
    was_whole[1] = is_whole();
    depth -= 2;
    return *(const int *)one - *(const int *)other;
}

FRAME static void sorts() {
    KNOWN;
    // By its size, how much is on the stack is known only when it runs.
    volatile size_t count = 2;
    int *numbers = (int *)__builtin_alloca(count * sizeof(int));
    numbers[0] = 2, numbers[1] = 1;
    qsort(numbers, count, sizeof(int), compares);
    CHECK(numbers[0] == 1);
}

FRAME static int nests() {
    KNOWN;
    int base = depth;
    try {
        throws();
    } catch (int seven) {
        CHECK(seven == 7);
        depth = base;
        sorts();
    }
    CHECK(was_whole[0] && was_whole[1]);
    return 0;
}

// ---- coroutines, whose outermost frame returns to anything ----

static ucontext_t usual, coroutine;
alignas(64) static char stack[256 << 10];

// Runs a function on a stack of its own, and returns when it goes away. It must not return.
static void on_coroutine(void (*body)(), uintptr_t returns_to, uintptr_t frame) {
    CHECK(getcontext(&coroutine) == 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    makecontext(&coroutine, body, 0);
#ifdef __x86_64__
    *(uintptr_t *)coroutine.uc_mcontext.gregs[REG_RSP] = returns_to;
    coroutine.uc_mcontext.gregs[REG_RBP] = frame;
#else
    coroutine.uc_mcontext.regs[30] = returns_to;
    coroutine.uc_mcontext.regs[29] = frame;
#endif
    CHECK(swapcontext(&usual, &coroutine) == 0);
}

FRAME static void goes_away() {
    swapcontext(&coroutine, &usual);
    abort();
}

FRAME static void asks_often() {
    KNOWN;
    for (int i = 0; i < 2000; i++) {
        int base = depth;
        char *small = asks(i % 3000), *large = asks(100000);
        small = (char *)realloc(small, 2000 + i);
        free(small), free(large);
        depth = base;
    }
    asks(500);
}

static void body() {
    if (__builtin_return_address(0)) KNOWN;
    asks_often();
    goes_away();
}

static void misuses() {
    char *memory = asks(40);
    free(memory);
    memory[3] = 2;
    abort();
}

// Returns an address in a function whose frame is found by a register.
FRAME static uintptr_t here() { return (uintptr_t)__builtin_return_address(0); }

FRAME static uintptr_t framed() {
    volatile size_t bytes = 100;
    volatile char *some = (char *)__builtin_alloca(bytes);
    some[0] = 0;
    return here() + some[0];
}

static int of_coroutine(void (*body)(), const char *returns_to) {
    uintptr_t address = strtoul(returns_to, NULL, 16), frame = 0;
    if (!strcmp(returns_to, "framed")) address = framed(), frame = 0x600000000000;
    if (!strcmp(returns_to, "above")) address = framed(), frame = (uintptr_t)stack + sizeof stack;
    if (!strcmp(returns_to, "data")) address = (uintptr_t)stack;
    on_coroutine(body, address, frame);
    CHECK(brickyard_profile && (brickyard_profile(-1) == ENODATA || is_whole()));
    return 0;
}

// ---- a signal's frame ----

static void on_fault(int, siginfo_t *, void *context) {
    auto &machine = ((ucontext_t *)context)->uc_mcontext;
#ifdef __x86_64__
    is_known(machine.gregs[REG_RIP]);
#else
    is_known(machine.pc);
#endif
    KNOWN;
    asks(600);
    CHECK(is_whole());
    _exit(0);
}

FRAME static void faults() {
    KNOWN;
    *(volatile char *)8 = 1;
}

static void faults_on_coroutine() {
    KNOWN;
    faults();
    abort();
}

static int signals() {
    // The handler's stack is above the one that is interrupted.
    stack_t above = {};
    above.ss_size = 64 << 10;
    above.ss_sp = mmap(NULL, above.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    CHECK(above.ss_sp > (void *)stack && sigaltstack(&above, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    on_coroutine(faults_on_coroutine, 0x10, 0);
    return 1;
}

// ---- filters of system calls ----

// One that ends a process which has another's memory read, or its own.
static void filter() {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program = {4, code};
    if (prctl(PR_GET_SECCOMP) > 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        printf("skipped: calls are filtered already, or cannot be\n");
        exit(0);
    }
}

// The walk asks nothing that a filter does not know.
static int has_callers() {
    asks(700);
    CHECK(any_stack([](const uintptr_t *, int count) { return count > 2; }));
    return 0;
}

// The program's own filter.
static int filtered() {
    free(malloc(100));
    filter();
    return has_callers();
}

// One that was there before the program.
static int refused(char **words) {
    static char again[] = "callers";
    filter();
    words[1] = again;
    execv("/proc/self/exe", words);
    return 1;
}

int main(int count, char **words) {
    CHECK(count >= 2);
    if (!strcmp(words[1], "nested")) return nests();
    if (!strcmp(words[1], "coroutine")) return of_coroutine(body, words[2]);
    if (!strcmp(words[1], "misuse")) return of_coroutine(misuses, words[2]);
    if (!strcmp(words[1], "signal")) return signals();
    if (!strcmp(words[1], "filtered")) return filtered();
    if (!strcmp(words[1], "refused")) return refused(words);
    if (!strcmp(words[1], "callers")) return has_callers();
    return 2;
}
