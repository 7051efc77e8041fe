// Built on the installed library, or run with it: prints what it finds, and ends with 0 if malloc is the library's.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // for dladdr; C++ has it already
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef LINKED
#include <brickyard_malloc.h>
#endif

static int ours(const char *name) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address || !dladdr(address, &info)) return printf("%s: nowhere\n", name), 0;
    printf("%s: %s\n", name, info.dli_fname);
    return strstr(info.dli_fname, "libbrickyard_malloc.so") != NULL;
}

int main(void) {
    char *memory = (char *)malloc(1000);
    if (!memory) return 1;
    strcpy(memory, "written");
    memory = (char *)realloc(memory, 100000);
    if (!memory || strcmp(memory, "written")) return 1;
    free(memory);
#ifdef LINKED
    fflush(stdout);
    if (brickyard_stats(1, "json") || !brickyard_stats(1, "no such format")) return 1;
    printf("\n");
#endif
    int all = ours("malloc") & ours("free") & ours("realloc") & ours("brickyard_stats") & ours("_Znwm");
    return !all;
}
