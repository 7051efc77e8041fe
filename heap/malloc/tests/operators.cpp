// What a C++ program may expect of `operator new` and `operator delete`. Each check prints a line and ends the program if it
// fails. As REPLACED, the operators of one object are the program's own. As PLUGIN, it is a library for operators.c.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            std::fprintf(stderr, "FAILED at line %d: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

using std::align_val_t;
using std::nothrow;

#ifdef REPLACED
// The operators of one object, and no others: each block has a mark in front, so that a block of another `new` is noticed.
static const std::uint64_t MARK = 0x6272696b79617264;
static long in_use = 0, served = 0;

void *operator new(std::size_t bytes) {
    if (bytes > (std::size_t)1 << 40) throw std::bad_alloc();
    auto *block = static_cast<std::uint64_t *>(std::malloc(bytes + 16));
    if (!block) throw std::bad_alloc();
    block[0] = MARK, in_use++, served++;
    return block + 2;
}

void operator delete(void *memory) noexcept {
    if (!memory) return;
    auto *block = static_cast<std::uint64_t *>(memory) - 2;
    CHECK(block[0] == MARK);
    block[0] = 0, in_use--;
    std::free(block);
}

static void *own(std::size_t bytes) { return operator new(bytes); }

static void replaced() {
    long before = in_use, had = served;
    void *memory[] = {own(10), operator new[](20), operator new(30, nothrow), operator new[](40, nothrow)};
    CHECK(in_use == before + 4 && served == had + 4);
    operator delete(memory[0], std::size_t(10));
    operator delete[](memory[1], std::size_t(20));
    operator delete(memory[2], nothrow);
    operator delete[](memory[3], nothrow);
    CHECK(in_use == before);
    operator delete[](operator new[](7));
    delete new std::string("of one object");
    delete[] new (nothrow) std::string[9];
    CHECK(in_use == before);
    CHECK(!operator new(SIZE_MAX / 2, nothrow) && !operator new[](SIZE_MAX / 2, nothrow));
    // Those with an alignment are not replaced, and are not mixed up with those that are.
    had = served;
    operator delete(operator new(100, align_val_t(64)), align_val_t(64));
    operator delete[](operator new[](100, align_val_t(64), nothrow), std::size_t(100), align_val_t(64));
    CHECK(served == had);
}

int main() {
    replaced();
    std::puts("replaced");
}
#elif defined PLUGIN
// A C++ library that a C program loads for itself: the process's own libraries have no C++ among them.
static volatile std::size_t too_much = SIZE_MAX / 2;
static void *volatile sink;

extern "C" int catches() {
    try {
        sink = operator new(too_much);
    } catch (const std::bad_alloc &) {
        return !operator new(too_much, nothrow);
    }
    return 0;
}
#else

static bool fits(void *memory, std::size_t bytes, std::size_t align) {
    if (!memory || reinterpret_cast<std::uintptr_t>(memory) % align) return false;
    std::memset(memory, 0x5a, bytes);
    return true;
}

static void plain() {
    for (std::size_t bytes = 0; bytes < 5 << 20; bytes += bytes < 300 ? 1 : bytes / 3) {
        void *memory[] = {operator new(bytes),           operator new[](bytes),           operator new(bytes, nothrow),
                          operator new[](bytes, nothrow), operator new(bytes),             operator new[](bytes)};
        for (void *one : memory) CHECK(fits(one, bytes, 16));
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < i; j++) CHECK(memory[i] != memory[j]);
        operator delete(memory[0]);
        operator delete[](memory[1]);
        operator delete(memory[2], nothrow);
        operator delete[](memory[3], nothrow);
        operator delete(memory[4], bytes);
        operator delete[](memory[5], bytes);
    }
    operator delete(nullptr), operator delete[](nullptr), operator delete(nullptr, nothrow);
    operator delete(nullptr, std::size_t(8)), operator delete[](nullptr, align_val_t(64));
    // `new` and `malloc` are one heap.
    std::free(operator new(100));
    operator delete(std::malloc(100));
}

static void aligned() {
    for (std::size_t align = 1; align <= 64 << 10; align *= 2)
        for (std::size_t bytes = 0; bytes < 3 << 20; bytes = bytes * 7 + 1) {
            auto of = align_val_t(align);
            void *memory[] = {operator new(bytes, of),          operator new[](bytes, of),
                              operator new(bytes, of, nothrow), operator new[](bytes, of, nothrow),
                              operator new(bytes, of),          operator new[](bytes, of)};
            for (void *one : memory) CHECK(fits(one, bytes, align));
            operator delete(memory[0], of);
            operator delete[](memory[1], of);
            operator delete(memory[2], of, nothrow);
            operator delete[](memory[3], of, nothrow);
            operator delete(memory[4], bytes, of);
            operator delete[](memory[5], bytes, of);
        }
}

static volatile std::size_t too_much = SIZE_MAX / 2;
// Without a use a compiler may leave a request out.
static void *volatile sink;

template <typename F> static bool throws_bad_alloc(F form) {
    // Something to destroy on the way.
    std::string kept(1000, 'x');
    try {
        form();
    } catch (const std::bad_alloc &thrown) {
        return thrown.what() && kept.size() == 1000;
    }
    return false;
}

static void exhaustion() {
    std::size_t sizes[] = {too_much, SIZE_MAX, SIZE_MAX - 15, std::size_t(1) << 60};
    for (volatile std::size_t bytes : sizes) {
        CHECK(throws_bad_alloc([&] { sink = operator new(bytes); }));
        CHECK(throws_bad_alloc([&] { sink = operator new[](bytes); }));
        CHECK(throws_bad_alloc([&] { sink = operator new(bytes, align_val_t(4096)); }));
        CHECK(throws_bad_alloc([&] { sink = operator new[](bytes, align_val_t(4096)); }));
        CHECK(!operator new(bytes, nothrow) && !operator new[](bytes, nothrow));
        CHECK(!operator new(bytes, align_val_t(64), nothrow) && !operator new[](bytes, align_val_t(64), nothrow));
    }
    CHECK(throws_bad_alloc([] { std::vector<char>().reserve(too_much); }));
    CHECK(throws_bad_alloc([] { sink = operator new(8, align_val_t(48)); }));
}

static int calls;

static void gives_up() {
    if (++calls == 3) std::set_new_handler(nullptr);
}

static void handler() {
    for (int form = 0; form < 8; form++) {
        calls = 0;
        std::set_new_handler(gives_up);
        bool refused = throws_bad_alloc([&] {
            void *memory = form == 0   ? operator new(too_much)
                           : form == 1 ? operator new[](too_much)
                           : form == 2 ? operator new(too_much, align_val_t(64))
                           : form == 3 ? operator new[](too_much, align_val_t(64))
                           : form == 4 ? operator new(too_much, nothrow)
                           : form == 5 ? operator new[](too_much, nothrow)
                           : form == 6 ? operator new(too_much, align_val_t(64), nothrow)
                                       : operator new[](too_much, align_val_t(64), nothrow);
            sink = memory;
            if (!memory) throw std::bad_alloc();
        });
        CHECK(refused && calls == 3 && !std::get_new_handler());
    }
    // A handler that throws: through `new`, but not through a form that throws nothing.
    std::set_new_handler([] { throw std::bad_alloc(); });
    CHECK(throws_bad_alloc([] { sink = operator new(too_much); }));
    CHECK(!operator new(too_much, nothrow) && !operator new(too_much, align_val_t(64), nothrow));
    struct Other : std::bad_alloc {};
    std::set_new_handler([] { throw Other(); });
    try {
        sink = operator new[](too_much);
        CHECK(false);
    } catch (const Other &) {
    }
    std::set_new_handler(nullptr);
}

static void *reserve;
static const std::size_t PIECE = 64 << 20;

static void frees_the_reserve() {
    calls++;
    operator delete(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
}

static void handler_that_frees() {
    reserve = operator new(PIECE);
    rlimit before, limit;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    limit = before;
    // A low limit has the heap give up most of what it has only reserved.
    limit.rlim_cur = 200 << 20;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    std::size_t pages;
    std::FILE *file = std::fopen("/proc/self/statm", "r");
    CHECK(file && std::fscanf(file, "%zu", &pages) == 1);
    std::fclose(file);
    limit.rlim_cur = pages * sysconf(_SC_PAGESIZE) + PIECE / 2;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    calls = 0;
    CHECK(!operator new(PIECE, nothrow));
    for (int form = 0; form < 4; form++) {
        std::set_new_handler(frees_the_reserve);
        void *memory = form == 0   ? operator new(PIECE)
                       : form == 1 ? operator new[](PIECE)
                       : form == 2 ? operator new(PIECE, nothrow)
                                   : operator new(PIECE, align_val_t(4096));
        CHECK(fits(memory, PIECE, 16) && !reserve && calls == form + 1);
        reserve = memory;
    }
    operator delete(reserve);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
}

struct alignas(256) Wide {
    char bytes[300];
};

static void library() {
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; number++)
        threads.emplace_back([number] {
            std::map<int, std::string> words;
            for (int i = 0; i < 20000; i++) words[i * 7919 % 1000] = std::string(i % 200 + number, 'a' + number);
            CHECK(words.size() == 1000);
            std::vector<std::unique_ptr<Wide>> wide;
            for (int i = 0; i < 100; i++) wide.emplace_back(new Wide);
            for (auto &one : wide) CHECK(reinterpret_cast<std::uintptr_t>(one.get()) % 256 == 0);
            std::unique_ptr<Wide[]> row(new Wide[17]);
            CHECK(reinterpret_cast<std::uintptr_t>(row.get()) % 256 == 0);
            auto shared = std::make_shared<std::vector<long>>(1000, 7);
            CHECK((*shared)[999] == 7);
        });
    for (auto &thread : threads) thread.join();
}

// That it is this library that is tested.
static void whose() {
    for (const char *name : {"_Znwm", "_Znam", "_ZnwmSt11align_val_t", "_ZdlPv", "_ZdaPvm", "_ZnwmRKSt9nothrow_t"}) {
        Dl_info found;
        CHECK(dladdr(dlsym(RTLD_DEFAULT, name), &found) && std::strstr(found.dli_fname, "brickyard_malloc"));
    }
}

// Deletes with another size than was asked for: what the hardened heap finds.
static void other_size(const char *form) {
    if (!std::strcmp(form, "one")) operator delete(operator new(64), std::size_t(72));
    if (!std::strcmp(form, "many")) operator delete[](operator new[](64), std::size_t(63));
    if (!std::strcmp(form, "large")) operator delete(operator new(5 << 20), std::size_t(5));
    if (!std::strcmp(form, "free_sized")) {
        auto free_sized = reinterpret_cast<void (*)(void *, std::size_t)>(dlsym(RTLD_DEFAULT, form));
        CHECK(free_sized);
        free_sized(std::malloc(64), 80);
    }
}

int main(int count, char **words) {
    if (count == 2) return other_size(words[1]), 0;
    struct {
        const char *name;
        void (*check)();
    } checks[] = {{"whose", whose},     {"plain", plain},
                  {"aligned", aligned}, {"exhaustion", exhaustion},
                  {"handler", handler}, {"handler that frees", handler_that_frees},
                  {"library", library}};
    for (auto &one : checks) {
        one.check();
        std::puts(one.name);
        std::fflush(stdout);
    }
}
#endif
