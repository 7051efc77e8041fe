/* What programs are written with. */
#ifndef LIBC_H
#define LIBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

/* The system calls, as abi.h tells. */
long fork(void);
long exec(const char *name, const char *argument);
__attribute__((noreturn)) void exit(long code);
long wait(long *code);
void *sbrk(ptrdiff_t bytes);
long getpid(void);
void yield(void);
long write(const char *text, size_t bytes);
long count(long which);
long leave(size_t pages);

#define NO_MEMORY ((void *)-1) /* of sbrk */

long pages(void);
long number(const char *text);
__attribute__((format(printf, 1, 2))) void print(const char *text, ...);
void *memset(void *to, int byte, size_t bytes);
void *memcpy(void *to, const void *from, size_t bytes);

#endif
