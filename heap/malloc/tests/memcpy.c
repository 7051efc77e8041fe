// memcpy and memmove of a library that is built hardened: they copy what they are told to, as far as it is in use by
// one piece. Without arguments: all that is allowed. With a number: one thing that is not; prints nothing if there is
// no such number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "FAILED at line %d: %s\n", __LINE__, #what); \
            _Exit(1); \
        } \
    } while (0)

enum { LENGTH = 1500, FROM = 600 };

static unsigned char value(size_t at) { return at * 7 % 251 + 1; }

// Every length and every overlap, against a loop.
static void all_overlaps(void) {
    unsigned char *found = malloc(LENGTH), expected[LENGTH];
    CHECK(found);
    for (int bytes = 0; bytes <= 400; bytes++) {
        for (int to = FROM - bytes - 2; to <= FROM + bytes + 2; to += bytes > 80 ? 3 : 1) {
            for (int at = 0; at < LENGTH; at++) found[at] = expected[at] = value(at);
            for (int at = 0; at < bytes; at++) expected[to + at] = value(FROM + at);
            CHECK(memmove(found + to, found + FROM, bytes) == found + to);
            for (int at = 0; at < LENGTH; at++) CHECK(found[at] == expected[at]);
        }
    }
    free(found);
}

// From and to everywhere in memory of all sizes.
static void all_sizes(void) {
    static unsigned char source[3 << 20], target[3 << 20];
    for (size_t at = 0; at < sizeof source; at++) source[at] = value(at);
    for (size_t size = 1; size < sizeof source; size += 1 + size / 7) {
        unsigned char *piece = malloc(size), *other = malloc(size);
        CHECK(piece && other);
        CHECK(memcpy(piece, source, size) == piece);
        for (size_t at = 0; at < size; at += 1 + size / 90) {
            memcpy(other + at, piece + at, size - at);
            memcpy(target, other + at, size - at);
            for (size_t byte = 0; byte < size - at; byte += 1 + size / 50) CHECK(target[byte] == value(at + byte));
        }
        free(piece);
        free(other);
    }
    // Aligned to more than a page.
    for (size_t align = 16; align <= 1 << 20; align *= 4) {
        unsigned char *piece = aligned_alloc(align, 3 * align);
        CHECK(piece);
        memcpy(piece + align, source, 2 * align);
        memcpy(target, piece + 3 * align - 1, 1);
        CHECK(target[0] == value(2 * align - 1));
        free(piece);
    }
    memcpy(NULL, NULL, 0);
}

static unsigned char outside[300000];

// The things that are not allowed.
static int wrong(int number) {
    static const size_t sizes[] = {1, 24, 100, 1000, 5000, 30000, 100000, 120000};
    enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = 5 };
    if (number >= SIZES * KINDS) return 0;
    size_t size = sizes[number / KINDS];
    // Others on both sides.
    unsigned char *pieces[9];
    for (int i = 0; i < 9; i++) CHECK(pieces[i] = malloc(size));
    unsigned char *piece = pieces[4];
    printf("%d\n", number);
    fflush(stdout);
    switch (number % KINDS) {
    case 0: memcpy(piece, outside, size + 1); break;
    case 1: memcpy(outside, piece, size + 1); break;
    case 2: memcpy(piece + size / 2, outside, size - size / 2 + 1); break;
    case 3: memmove(outside, piece + size, 1); break;
    case 4:
        if (size > 32768) piece[size] = 1; // What waits of a run cannot be accessed at all.
        free(piece);
        memcpy(outside, piece, 1);
        break;
    }
    return 0;
}

int main(int count, char **words) {
    if (count > 1) return wrong(atoi(words[1]));
    all_overlaps();
    all_sizes();
    puts("fine");
    return 0;
}
