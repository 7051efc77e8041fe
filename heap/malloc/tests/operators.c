// A C program: without an argument it asks C++'s `operator new` for too much; with a library of C++ it lets that catch what is
// thrown.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int count, char **words) {
    void *plugin = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (plugin) {
        int (*catches)(void) = (int (*)(void))dlsym(plugin, "catches");
        return catches && catches() ? 0 : 1;
    }
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
    void *(*or_null)(size_t, const void *) = (void *(*)(size_t, const void *))dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t");
    if (!allocate || !or_null || !allocate(100) || !or_null(100, NULL) || or_null(SIZE_MAX / 2, NULL)) return 2;
    printf("%p\n", allocate(SIZE_MAX / 2));
    return 3;
}
