/*
 * What Brickyard's malloc library has beyond the C library's interface. For C11 and C++.
 *
 * malloc and its family are declared where the C library declares them (<stdlib.h>, <malloc.h>), C++'s operators in <new>: a
 * program needs this header for none of those. Link with -lbrickyard_malloc (pkg-config: brickyard-malloc, CMake:
 * brickyard::malloc). A program that must run without the library too can look the function up with dlsym() instead.
 */
#ifndef BRICKYARD_MALLOC_H
#define BRICKYARD_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#define BRICKYARD_NOTHROW noexcept
#else
#define BRICKYARD_NOTHROW
#endif

/*
 * Writes what the heap holds to an open descriptor: in use and free bytes, by size.
 *
 * format   "text", "json", "openmetrics" or "xml"; a C string
 * returns  0, or an error number: EINVAL if there is no such format, else that of the write() that failed. errno may change.
 * cost     takes the locks of every size once, then formats and writes some KiB, without a lock. Allocates nothing. Numbers are
 *          exact while no other thread allocates or frees. May be called from any thread, not from a signal handler.
 */
int brickyard_stats(int descriptor, const char *format) BRICKYARD_NOTHROW;

/*
 * Writes the heap profile of the process to an open descriptor, in the text format that pprof and jeprof read.
 *
 * returns  0, or an error number: ENODATA if there is none (the variable BRICKYARD_PROFILE is not set), EBUSY if a signal handler
 *          calls that has interrupted the heap, or while another thread forks, else that of the write() that failed
 * cost     takes a lock once for each stack; formats and writes without it. Allocates nothing.
 */
int brickyard_profile(int descriptor) BRICKYARD_NOTHROW;

/*
 * Memory that ends as a whole: of one request, one frame, one file that is parsed. Pieces of it are cut from chunks of the
 * heap, of 1 KiB at first and up to 2 MiB; a larger piece has a chunk of its own. An arena is for one thread at a time. What is
 * allocated in it must not be passed to free() or realloc().
 */
typedef struct brickyard_arena brickyard_arena;

/* Makes an arena, without memory at first. NULL, and errno is ENOMEM, if there is none. Costs a malloc(). */
brickyard_arena *brickyard_arena_new(void) BRICKYARD_NOTHROW;

/*
 * Allocates bytes at a multiple of align, a power of two; 0 stands for 16. They are not cleared.
 *
 * returns  the memory, also for 0 bytes; NULL if there is none (errno is ENOMEM), or for another align (EINVAL)
 * cost     an addition and a comparison; for each new chunk a malloc()
 */
void *brickyard_arena_alloc(brickyard_arena *arena, size_t bytes, size_t align) BRICKYARD_NOTHROW;

/* Ends all that was allocated in the arena, which serves on: it keeps the chunk that it used last, unless that has more than
 * 2 MiB. Costs a free() for each of the others. */
void brickyard_arena_reset(brickyard_arena *arena) BRICKYARD_NOTHROW;

/* Returns the bytes of all its chunks. */
size_t brickyard_arena_bytes(const brickyard_arena *arena) BRICKYARD_NOTHROW;

/* Ends the arena and all that was allocated in it. NULL is ignored. Costs a free() for each chunk, and one more. */
void brickyard_arena_free(brickyard_arena *arena) BRICKYARD_NOTHROW;

#undef BRICKYARD_NOTHROW

#ifdef __cplusplus
}
#endif

#endif
