#!/usr/bin/env bash
# A C compiler building a project under the allocator, with make and two jobs: 30 generated C files,
# a library of them and a program, the program again with link-time optimisation, and a C++ program
# with templates. Runs the programs; prints their output, and the digest of every file that
# compiler, assembler, ar and linker wrote. Runs in an empty directory.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export LC_ALL=C

source_file() { # source_file NUMBER: a table, functions that call those of the previous file, one large switch
    local function case before=$((($1 + 29) % 30))
    echo '#include "brick.h"'
    echo "static const struct brick row[] = {"
    for function in {0..39}; do
        echo "    { $((function * $1 % 97)), \"brick $1 $function\", { $function, $1, $((function ^ $1)) } },"
    done
    echo "};"
    for function in {0..14}; do
        cat <<BODY
unsigned step_$1_$function(struct brick *brick, unsigned depth) {
    unsigned sum = row[depth % COUNT(row)].weight + $function;
    for (unsigned i = 0; i < COUNT(brick->edge); i++) sum = MIX(sum, brick->edge[i] * ${function}u + i);
    if (depth > 0) sum += step_${before}_$((function * 7 % 15))(brick, depth - 1);
    brick->weight ^= sum + (unsigned)row[sum % COUNT(row)].name[sum % 5];
    return sum;
}
BODY
    done
    echo "unsigned choose_$1(unsigned which, struct brick *brick) {"
    echo "    switch (which % 15) {"
    for case in {0..14}; do echo "    case $case: return MIX(which, step_$1_$case(brick, which % 9));"; done
    echo "    }"
    echo "    return 0;"
    echo "}"
}

header() {
    cat <<'BODY'
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define COUNT(array) (sizeof (array) / sizeof *(array))
#define MIX(a, b) ((((a) << 5) | ((a) >> 27)) ^ ((b) * 2654435761u))
struct brick { unsigned weight; const char *name; unsigned edge[3]; };
BODY
    local file
    for file in {0..29}; do
        echo "unsigned choose_$file(unsigned which, struct brick *brick);"
        printf "unsigned step_${file}_%d(struct brick *brick, unsigned depth);\n" {0..14}
    done
}

main_file() {
    echo '#include "brick.h"'
    echo "int main(void) {"
    echo "    struct brick *brick = calloc(1, sizeof *brick);"
    echo "    unsigned sum = 0;"
    echo "    for (unsigned round = 0; round < 20000; round++) {"
    printf '        sum = MIX(sum, choose_%d(round + sum, brick));\n' {0..29}
    echo "    }"
    cat <<'BODY'
    printf("%08x %08x\n", sum, brick->weight);
    free(brick);
}
BODY
}

mkdir wall
cd wall
header >brick.h
main_file >main.c
for file in {0..29}; do source_file "$file" >"file$file.c"; done
cp "$here/templates.cpp" .
cat >Makefile <<'BODY'
objects := $(patsubst %.c,%.o,$(sort $(wildcard file*.c)))
all: wall templates wall-lto
%.o: %.c brick.h
	$(CC) -O1 -g -Wall -c -o $@ $<
libwall.a: $(objects)
	$(AR) rcsD $@ $^
wall: main.o libwall.a
	$(CC) -o $@ main.o -L. -lwall
templates: templates.cpp
	$(CXX) -std=c++17 -O1 -Wall -o $@ $<
wall-lto: main.c $(objects:.o=.c)
	$(CC) -O1 -flto=2 -frandom-seed=$@ -o $@ $^
BODY
make -j2 --output-sync CC=gcc CXX=g++ >../make.log 2>&1 || { tail -n 30 ../make.log && exit 1; }
[ "$(make CC=gcc CXX=g++ 2>&1)" = "make: Nothing to be done for 'all'." ] # make sees everything as built

./wall
./wall-lto
./templates
sha256sum ./*.o libwall.a wall templates wall-lto
