// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How many different cache lines a program touches within so many instructions, code and data
// together: the mean over consecutive windows. It reads what lackey of valgrind writes:
//
//     cc -O2 -o footprint traces/footprint.c
//     valgrind --tool=lackey --trace-mem=yes --log-fd=9 PROGRAM 9>&1 >/dev/null 2>/dev/null | ./footprint MOST SKIP
//
// The first SKIP instructions are not counted, and no more than MOST after them. Each line of the
// output is a number of instructions, the lines of 64 bytes, and the number of windows.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOWS 10
#define SLOT_BITS 22

static const uint64_t window[WINDOWS] = {1000, 3000, 10000, 30000, 100000, 300000, 1000000, 3000000, 10000000, 30000000};

// A hash table of lines; for each line and size of window, the last window in which it was touched.
static uint64_t lines[1 << SLOT_BITS];
static uint32_t touched_in[1 << SLOT_BITS][WINDOWS];

static uint64_t slot_of(uint64_t line) {
    uint64_t slot = line * 0x9E3779B97F4A7C15 >> (64 - SLOT_BITS);
    while (lines[slot] != 0 && lines[slot] != line) {
        slot = (slot + 1) % (1 << SLOT_BITS);
    }
    lines[slot] = line;
    return slot;
}

int main(int count, char **words) {
    if (count != 3) {
        fputs("usage: footprint MOST SKIP\n", stderr);
        return 2;
    }
    uint64_t most = strtoull(words[1], NULL, 10), skip = strtoull(words[2], NULL, 10);
    uint64_t instructions = 0, distinct[WINDOWS] = {0}, sum[WINDOWS] = {0};
    uint32_t done[WINDOWS] = {0};
    char text[256];
    while (fgets(text, sizeof text, stdin)) {
        // "I  ADDRESS,SIZE", or " L", " S", " M" for a load, a store, both.
        char kind = text[0] == 'I' ? 'I' : text[1];
        if ((text[0] != 'I' && text[0] != ' ') || kind == 0 || !strchr("ILSM", kind)) {
            continue;
        }
        char *end;
        uint64_t address = strtoull(text + 3, &end, 16);
        if (*end != ',') {
            continue;
        }
        instructions += kind == 'I';
        if (instructions > skip + most) {
            break;
        }
        if (instructions <= skip) {
            continue;
        }
        uint64_t slot = slot_of((address >> 6) + 1);
        for (int i = 0; i < WINDOWS; i++) {
            if (touched_in[slot][i] != done[i] + 1) {
                touched_in[slot][i] = done[i] + 1;
                distinct[i]++;
            }
            if (kind == 'I' && (instructions - skip) % window[i] == 0) {
                sum[i] += distinct[i];
                distinct[i] = 0;
                done[i]++;
            }
        }
    }
    for (int i = 0; i < WINDOWS && done[i] > 0; i++) {
        printf("%llu %.0f %u\n", (unsigned long long)window[i], (double)sum[i] / done[i], done[i]);
    }
    return 0;
}
