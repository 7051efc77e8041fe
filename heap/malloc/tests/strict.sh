#!/usr/bin/env bash
# Runs a program with a malloc library preloaded where the system counts memory strictly (`2` in
# /proc/sys/vm/overcommit_memory): a request that is too large returns null, and a small program is
# promised little more than without the library.
#
#     heap/malloc/tests/strict.sh target/lab/libbrickyard_malloc.so
#
# For root: the setting is the whole machine's. It is in effect for a moment, with a limit (ten times
# the memory) that other processes do not reach, and is put back however this ends. Exit codes: 0
# passed or skipped (with the reason), 1 failed, 2 wrong usage.
set -euo pipefail
unset LD_PRELOAD
readonly most=100000 # KiB that a small program may be promised because of the library

[ $# = 1 ] && [ -f "$1" ] || { echo "usage: strict.sh LIBRARY" >&2 && exit 2; }
skip() { echo "skipped: $1" && exit 0; }
[ "$(id -u)" = 0 ] || skip "for root only"
[ -w /proc/sys/vm/overcommit_memory ] || skip "the setting cannot be changed here"
compiler=${CC:-cc}
command -v "$compiler" >/dev/null || skip "no $compiler"

library=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
memory=$(cat /proc/sys/vm/overcommit_memory)
ratio=$(cat /proc/sys/vm/overcommit_ratio)
bytes=$(cat /proc/sys/vm/overcommit_kbytes)
put_back() {
    echo "$memory" >/proc/sys/vm/overcommit_memory
    # One of the two is 0: the one that is not in effect.
    if [ "$bytes" = 0 ]; then echo "$ratio" >/proc/sys/vm/overcommit_ratio; else echo "$bytes" >/proc/sys/vm/overcommit_kbytes; fi
    rm -rf "$scratch"
}
trap put_back EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$compiler" -O1 -fno-builtin -pthread -o "$scratch/confined" "$here/confined.c" -ldl
echo 1000 >/proc/sys/vm/overcommit_ratio
echo 2 >/proc/sys/vm/overcommit_memory

# Others come and go meanwhile: the least of several runs counts.
least() {
    local least= now _
    for _ in 1 2 3 4 5; do
        now=$(LD_PRELOAD=$1 "$scratch/confined" strictly)
        if [ -z "$least" ] || [ "$now" -lt "$least" ]; then least=$now; fi
    done
    echo "$least"
}
without=$(least "")
with=$(least "$library")
more=$((with - without))
echo "promised to a small program because of the library: $more KiB"
[ "$more" -lt "$most" ] || { echo "FAILED: more than $most KiB" && exit 1; }
