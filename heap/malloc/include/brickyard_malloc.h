/*
 * What Brickyard's malloc library has beyond the C library's interface. For C11 and C++.
 *
 * malloc and its family are declared where the C library declares them (<stdlib.h>, <malloc.h>), C++'s operators in <new>: a
 * program needs this header for none of those. Link with -lbrickyard_malloc (pkg-config: brickyard-malloc, CMake:
 * brickyard::malloc). A program that must run without the library too can look the function up with dlsym() instead.
 */
#ifndef BRICKYARD_MALLOC_H
#define BRICKYARD_MALLOC_H

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

#undef BRICKYARD_NOTHROW

#ifdef __cplusplus
}
#endif

#endif
