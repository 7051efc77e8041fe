#!/bin/sh
# Records the traces of this directory again, all or those named: traces/record.sh [NAME]...
#
# Whole hosts, to replay: compile configure walk archive dd pressure. Commands, to run as tasks of a
# simulated multiprocessor (dd is one too): find pmake dpunish bonnie mab config objdump
# kernel_full kernel extract.
#
# Needs root, gcc, make, dpkg-dev, and a deb-src line among apt's sources for the C project (flac);
# `find`, `kernel`, `kernel_full` and `extract` need Debian's linux-source-6.1, flex, bison and
# libelf, `bonnie` needs bonnie++. BRICKYARD is the path of the binary, TRIM that of the example `trim`, WORK a directory
# on a real disk with 4 GB free. Before each recording of a host, caches are dropped and memory is
# compacted, so that the page states at the start are simple and the files small; `pressure` then
# leaves only 3.5 GB available. Do not run it on a machine in production.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
brickyard=${BRICKYARD:-$here/../target/release/brickyard}
work=${WORK:-/tmp/brickyard-traces}
trim=${TRIM:-$here/../target/release/examples/trim}
[ "$(id -u)" = 0 ] || { echo "record.sh: recording needs root" >&2; exit 1; }
[ -x "$brickyard" ] || { echo "record.sh: build it first: cargo build --release -p brickyard-cli" >&2; exit 1; }
mkdir -p "$work"
cd "$work"

# Unpacks a source tree of the C project to the directory $1.
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

# Runs a recorder whose trace is $1. It ends with the command's exit status, and a command may fail:
# `timeout` ends some, and `grep` may find nothing. Without a trace, this script fails.
recorded() {
    trace=$1
    shift
    old=$trace.old
    [ ! -e "$trace" ] || mv "$trace" "$old"
    "$@" || [ -s "$trace" ] || {
        [ ! -e "$old" ] || mv "$old" "$trace"
        echo "record.sh: no $trace was recorded" >&2
        exit 1
    }
    rm -f "$old"
}

# Records the trace $1 while the command in the other arguments runs, at high priority.
record() {
    name=$1
    shift
    recorded "$here/$name.parquet" nice -n -19 "$brickyard" record -o "$here/$name.parquet" -- "$@"
}

# Configures the C project; `part` is a part of it that builds in a few seconds.
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
    record walk grep -rlsw --include='*.h' undefined /usr/include >/dev/null
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

# Real memory pressure: all but 3.5 GB is anonymous memory, the rest full of cached files, so that
# kswapd runs during the build and a stream of reads. The program that holds the memory is the first
# that the kernel would kill.
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

# Records the trace $1 while the command in the other arguments runs, and keeps only that command's
# events. The time between them becomes computing time, so it runs at real-time priority. A
# process's parent is determined from its first name, and two that start at once can be confused. So
# scripts are run by `dash`, by name, which no other process on the machine does.
record_task() {
    name=$1
    shift
    [ -x "$trim" ] || { echo "record.sh: build it first: cargo build --release -p brickyard-workload --example trim" >&2; exit 1; }
    recorded "$work/$name.parquet" chrt -f 1 "$brickyard" record -o "$work/$name.parquet" -- "$@"
    "$trim" "$work/$name.parquet" "$here/$name.parquet"
    rm "$work/$name.parquet"
}

# Unpacks Linux's source tree.
unpack_linux() {
    [ -d linux-source-6.1 ] && return
    ls linux-source-6.1_*.deb >/dev/null 2>&1 || apt-get download linux-source-6.1
    dpkg-deb --fsys-tarfile linux-source-6.1_*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | tar -xJ
}

# Searches 4.5 MB in 631 files and 180 directories. It runs once before, so that they are in memory.
find() {
    unpack_linux
    set -- find linux-source-6.1/drivers/staging/media/atomisp -type f -exec grep -l 'this text is not there' {} +
    command "$@" || true
    record_task find "$@"
}

# Compiles the 27 files without those for PowerPC and Ogg. The code with vector intrinsics is
# disabled, since its headers alone are longer than these files.
pmake() {
    [ -f flac/config.h ] || prepare
    objects=
    for file in bitmath bitreader bitwriter cpu crc fixed fixed_intrin_sse2 fixed_intrin_ssse3 float format lpc lpc_intrin_sse2 lpc_intrin_sse41 lpc_intrin_avx2 lpc_intrin_fma \
        lpc_intrin_neon md5 memory metadata_iterators metadata_object stream_decoder stream_encoder stream_encoder_intrin_sse2 stream_encoder_intrin_ssse3 \
        stream_encoder_intrin_avx2 stream_encoder_framing window; do
        objects="$objects $file.o"
    done
    set -- make -s -j1 -C flac/src/libFLAC -f /dev/null CC=gcc CFLAGS=-O2 CPPFLAGS='-DHAVE_CONFIG_H -DFLAC__NO_ASM -I../.. -I../../include -Iinclude' $objects
    rm -f flac/src/libFLAC/*.o
    "$@" # so that the compiler and the sources are in memory
    rm flac/src/libFLAC/*.o
    record_task pmake "$@"
}

dpunish() {
    gcc -O2 -o dpunish "$here/dpunish.c"
    folders=
    for n in 1 2 3 4; do
        mkdir -p "tmpfs/$n"
        mount -t tmpfs none "tmpfs/$n"
        folders="$folders tmpfs/$n"
    done
    trap 'umount $folders' EXIT INT TERM
    record_task dpunish ./dpunish 4 2000 $folders
    umount $folders
    trap - EXIT INT TERM
}

# Creates 1024 empty files, in order and in random order, reads their status, deletes them.
bonnie() {
    mkdir -p created
    record_task bonnie bonnie++ -d created -n 1 -s 0 -u root -q >/dev/null
}

mab() {
    unpack mab-source
    rm -rf copied
    cp "$here/mab.sh" .
    record_task mab dash mab.sh mab-source/src/libFLAC copied
}

# The first 0.6 seconds of configure.
config() {
    unpack flac
    rm -rf configured
    mkdir configured
    cd configured
    export CONFIG_SHELL=/bin/dash
    record_task config timeout 0.6 dash ../flac/configure --disable-ogg >/dev/null
    unset CONFIG_SHELL
    cd ..
}

objdump() {
    cat /usr/bin/perl >/dev/null
    record_task objdump dash -c 'objdump -d -l /usr/bin/perl | grep mov >/dev/null'
}

# Records as $1 the compile of the objects in the other arguments, each with the command that the
# kernel's makefiles ran for it, without `objtool`, which kernels of 2007 did not have.
compile_kernel() {
    trace_name=$1
    shift
    make -s prepare
    rm -f "$@"
    make -s "$@"
    {
        echo 'pound := \#'
        echo "all: $*"
        for object; do
            echo "$object:"
            sed -n '1s/^[^=]*= /\t/p' "${object%/*}/.${object##*/}.cmd" | sed 's/ ; .*//'
        done
    } >tasks.mk
    rm "$@"
    record_task "$trace_name" make -s -j1 -f tasks.mk
}

# Compiles twelve files of lib/ with the smallest configuration.
kernel() {
    unpack_linux
    cd linux-source-6.1
    make -s tinyconfig
    objects=
    for file in sort list_sort cmdline hexdump find_bit siphash rbtree klist kstrtox string idr llist; do
        objects="$objects lib/$file.o"
    done
    compile_kernel kernel $objects
    cd ..
}

# Compiles six other files with the default configuration.
kernel_full() {
    unpack_linux
    cd linux-source-6.1
    make -s defconfig
    scripts/config -d DRM -d NET -d SOUND -d WIRELESS -d MODULES
    make -s olddefconfig
    compile_kernel kernel-full mm/oom_kill.o mm/util.o mm/truncate.o fs/open.o fs/pipe.o kernel/user.o
    cd ..
}

# Extracts 868 files in 38 directories, 20 MB, from an archive in memory. It is extracted once
# before, so that the parent directories and the journal are cached.
extract() {
    unpack_linux
    [ -f tree-part.tar.gz ] || tar -czf tree-part.tar.gz -C linux-source-6.1 kernel mm block init ipc
    rm -rf extracted
    mkdir extracted
    tar -xzf tree-part.tar.gz -C extracted
    rm -r extracted
    mkdir extracted
    sync
    record_task extract tar -xzf tree-part.tar.gz -C extracted
    rm -r extracted
}

[ $# -gt 0 ] || set -- compile configure walk archive dd pressure find pmake dpunish bonnie mab config objdump kernel_full kernel extract
for trace; do
    "$trace"
done
