/* How the kernel and its programs write numbers: see format.c. */
#ifndef FORMAT_H
#define FORMAT_H

#include <stdarg.h>
#include <stddef.h>

size_t format(char *to, size_t room, const char *text, va_list arguments);

#endif
