#!/bin/sh
# Makes the traces of this folder anew, all or those that are named: traces/record.sh [compile|configure|walk|archive|dd|pressure]...
#
# Needs root, gcc, make, dpkg-dev, and a deb-src line among apt's sources for the C project (flac). BRICKYARD names the binary, WORK a folder on a
# real disk with 2 GB of room. Caches are dropped and memory compacted before each recording, so that the page states at the start are simple and
# the files small; `pressure` then fills the memory up to 3.5 GB. Do not run it on a machine that serves somebody.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
brickyard=${BRICKYARD:-$here/../target/release/brickyard}
work=${WORK:-/tmp/brickyard-traces}
[ "$(id -u)" = 0 ] || { echo "record.sh: recording needs root" >&2; exit 1; }
[ -x "$brickyard" ] || { echo "record.sh: build it first: cargo build --release -p brickyard-cli" >&2; exit 1; }
mkdir -p "$work"
cd "$work"

# A source tree of the C project in the folder $1.
unpack() {
    ls flac_*.dsc >/dev/null 2>&1 || apt-get source --download-only flac
    rm -rf "$1"
    dpkg-source --no-check -x flac_*.dsc "$1" >/dev/null 2>&1
}

calm() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    echo 1 >/proc/sys/vm/compact_memory
}

# Records the trace $1 while the rest runs, ahead of whatever else the machine does.
record() {
    name=$1
    shift
    nice -n -19 "$brickyard" record -o "$here/$name.parquet" -- "$@"
}

# The C project, ready to be built, and a part of it that is built in a few seconds.
prepare() {
    unpack flac
    (cd flac && ./configure --disable-ogg --disable-shared >/dev/null 2>&1)
}
part='bitmath.lo bitreader.lo cpu.lo crc.lo fixed.lo format.lo md5.lo window.lo'

compile() {
    prepare
    calm
    record compile make -s -C flac/src/libFLAC -j2 $part
}

configure() {
    unpack flac
    rm -rf configured
    mkdir -p configured/1 configured/2 configured/3
    calm
    record configure sh -c 'for n in 1 2 3; do
        (cd configured/$n && timeout 2 ../../flac/configure --disable-ogg >/dev/null 2>&1) &
    done; wait'
}

walk() {
    calm
    record walk grep -rlsw --include='*.h' undefined /usr/include >/dev/null || true
}

archive() {
    rm -rf unpacked && mkdir unpacked
    [ -f tree.tar.gz ] || tar -czf tree.tar.gz -C / usr/include
    calm
    record archive sh -c 'tar -xzf tree.tar.gz -C unpacked && rm -r unpacked/usr'
}

dd() {
    calm
    record dd sh -c 'dd if=/dev/zero of=zeros bs=16k count=2048 2>/dev/null && rm zeros'
}

# Real pressure: anonymous memory but for 3.5 GB, the rest full of cached files, so that kswapd works while the build and a stream of reads go on. The
# program that holds the memory is the first that the kernel would kill.
pressure() {
    prepare
    [ -f stream ] || command dd if=/dev/urandom of=stream bs=1M count=4096 status=none
    cat >hold.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    size_t bytes = (size_t)atol(words[count - 1]) << 10;
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return 1;
    }
    memset(memory, 1, bytes);
    puts("held");
    fflush(stdout);
    pause();
}
C
    gcc -O2 -o hold hold.c
    calm
    available=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
    rm -f held && mkfifo held
    (echo 1000 >/proc/self/oom_score_adj && exec ./hold $((available - 3500000))) >held &
    holder=$!
    trap 'kill $holder 2>/dev/null' EXIT INT TERM
    read -r _ <held
    cat stream >/dev/null
    record pressure sh -c 'head -c 1500M stream >/dev/null & make -s -C flac/src/libFLAC -j2 '"$part"'; wait'
    kill $holder
    trap - EXIT INT TERM
}

[ $# -gt 0 ] || set -- compile configure walk archive dd pressure
for trace; do
    "$trace"
done
