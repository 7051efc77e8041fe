// What the library has of its own, as brickyard_malloc.h says. Compiled as C11 and as C++; linked with the library.
#include <brickyard_malloc.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s\n", __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

static void arena(void) {
    brickyard_arena *arena = brickyard_arena_new();
    CHECK(arena && brickyard_arena_bytes(arena) == 0);
    enum { COUNT = 1000 };
    static unsigned char *piece[COUNT];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            size_t align = (size_t)1 << i % 13;
            piece[i] = (unsigned char *)brickyard_arena_alloc(arena, (size_t)i, align);
            CHECK(piece[i] && (uintptr_t)piece[i] % align == 0);
            memset(piece[i], i, (size_t)i);
        }
        for (int i = 0; i < COUNT; i++)
            for (int byte = 0; byte < i; byte++) CHECK(piece[i][byte] == (unsigned char)i);
        CHECK(brickyard_arena_bytes(arena) >= COUNT * (COUNT - 1) / 2);
        brickyard_arena_reset(arena);
        CHECK(brickyard_arena_bytes(arena) <= (size_t)2 << 20);
    }
    CHECK((uintptr_t)brickyard_arena_alloc(arena, 1, 0) % 16 == 0 && (uintptr_t)brickyard_arena_alloc(arena, 1, 0) % 16 == 0);
    errno = 0;
    CHECK(!brickyard_arena_alloc(arena, 10, 24) && errno == EINVAL);
    errno = 0;
    CHECK(!brickyard_arena_alloc(arena, SIZE_MAX / 2, 16) && errno == ENOMEM);
    errno = 0;
    CHECK(!brickyard_arena_alloc(arena, SIZE_MAX, 16) && errno == ENOMEM);
    brickyard_arena_free(arena);
    brickyard_arena_free(NULL);
    // Many, which must not add up.
    for (int i = 0; i < 20000; i++) {
        arena = brickyard_arena_new();
        CHECK(arena && brickyard_arena_alloc(arena, 100000, 64));
        brickyard_arena_free(arena);
    }
}

int main(void) {
    arena();
    CHECK(brickyard_stats(1, "no such format") == EINVAL && brickyard_stats(-1, "text") == EBADF);
    CHECK(brickyard_stats(1, "text") == 0);
    return 0;
}
