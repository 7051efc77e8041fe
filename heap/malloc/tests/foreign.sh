#!/usr/bin/env bash
# Runs other projects' test suites with a malloc library preloaded: what passes without it must pass
# with it.
#
#     heap/malloc/tests/foreign.sh target/lab/libbrickyard_malloc.so [--small] [SUITE...]
#
# | suite | what it is | from |
# |---|---|---|
# | glibc | the C library's own tests of malloc | glibc-source |
# | php | Zend's tests, every object from malloc (USE_ZEND_ALLOC=0) | source of php8.2 |
# | perl | Perl's tests of its operators and regular expressions | source of perl |
# | ruby | Ruby's tests of its core classes | source of ruby3.1 |
#
# Without a suite, all. --small leaves out those that need a source package or take minutes (up to an
# hour each). Sources are fetched by package name from the system's own archive, kept in the user's
# cache directory, and nothing of them is installed. A suite that cannot be had is skipped, with the
# reason. Exit codes: 0 all passed, 1 a test failed, 2 wrong usage.
#
# A test counts as failed if it does not pass with the library, twice in a row, and passes without it;
# each has some seconds, after which it counts as hung.
set -euo pipefail
export LC_ALL=C PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
unset LD_PRELOAD

readonly known=(glibc php perl ruby)
readonly kept=${XDG_CACHE_HOME:-$HOME/.cache}/brickyard/foreign

wrong() {
    printf '%s\nusage: foreign.sh LIBRARY [--small] [%s]...\n' "$1" "$(IFS='|' && echo "${known[*]}")" >&2
    exit 2
}

# ---- what a suite needs ----

# have COMMAND PACKAGE: true if a command is there, installed if it can be.
have() {
    command -v "$1" >/dev/null && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null 2>&1 || true
    command -v "$1" >/dev/null
}

# binary PACKAGE DIRECTORY: unpacks a binary package without installing it.
binary() {
    [ ! -e "$2/done" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    rm -rf "$2" && mkdir -p "$2"
    (cd "$2" && { apt-get download -qq "$1" || { apt-get update -qq && apt-get download -qq "$1"; }; } &&
        dpkg-deb -x ./*.deb . && rm ./*.deb && touch done) >"$scratch/fetched" 2>&1
}

# source_of PACKAGE DIRECTORY: unpacks a source package, of the newest version that can be had. The
# list of sources is made from the system's own for this alone.
source_of() {
    [ ! -e "$2/done" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || return 1
    rm -rf "$2" && mkdir -p "$2" "$scratch/lists/partial" "$scratch/archives/partial"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types: deb$/Types: deb-src/' >"$scratch/src.sources"
    grep -q '^Types: deb-src' "$scratch/src.sources" || return 1
    local options=(-qq -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$scratch/parts" -o "Dir::State::Lists=$scratch/lists" -o "Dir::Cache::archives=$scratch/archives")
    mkdir -p "$scratch/parts" && cp "$scratch/src.sources" "$scratch/parts/"
    apt-get "${options[@]}" update >"$scratch/fetched" 2>&1 || return 1
    local version
    for version in $(apt-cache "${options[@]}" showsrc "$1" 2>/dev/null | sed -n 's/^Version: //p' | sort -urV); do
        if (cd "$2" && apt-get "${options[@]}" source "$1=$version" && mv ./*/ tree && touch done) >"$scratch/fetched" 2>&1; then
            return 0
        fi
    done
    return 1
}

why() { tail -n 1 "$scratch/fetched" 2>/dev/null || true; }

# ---- running ----

# once SECONDS COMMAND...: runs it in an empty directory; prints how it ended.
once() {
    local code=0 directory=$scratch/work/$BASHPID
    rm -rf "$directory" && mkdir -p "$directory"
    (cd "${in:-$directory}" && exec timeout -k 5 "$@") </dev/null >"$scratch/said.$BASHPID" 2>&1 || code=$?
    rm -rf "$directory"
    echo "$code"
}

# verdict NAME SECONDS COMMAND...: adds a line to the results: passed, failed, or no test (it does
# not pass without the library).
verdict() {
    local name=$1 with
    shift
    for _ in 1 2; do
        with=$(once "$1" env LD_PRELOAD="$library" "${@:2}")
        if [ "$with" = 0 ]; then
            echo "passed $name" >>"$results"
            return 0
        fi
    done
    if [ "$(once "$@")" != 0 ]; then
        echo "none $name" >>"$results"
        return 0
    fi
    [ "$with" != 124 ] || with="$with (hung)"
    echo "failed $name: ended with $with" >>"$results"
}

# summary SUITE
summary() {
    awk -v suite="$1" '
        { count[$1]++ }
        $1 == "failed" || $1 == "known" { lines = lines "    " $0 "\n" }
        END {
            printf "%-6s %d passed, %d failed, %d known to differ, %d not tests (they do not pass without the library)\n%s",
                suite, count["passed"], count["failed"], count["known"], count["none"], lines
            exit count["failed"] > 0 || count["passed"] == 0
        }' "$results"
}

# ---- suites ----

# Those that are known to differ, and why. They run, and are told, but do not fail the suite.
declare -rA differs=(
    [tst-malloc-backtrace]="writes before a freed block, and wants malloc to notice it"
    [tst-malloc-thread-fail]="limits addresses (RLIMIT_AS) after the heap has reserved its own"
)

# Those that test glibc's own insides, or bring a malloc of their own.
readonly not_ours='tst-(alloc_buffer|dynarray.*|scratch_buffer|mallocstate|compathooks.*|interpose.*|mtrace|mxfast|tcfree.*|malloc-check|mallocalign1|malloc-usable.*|safe-linking)'

glibc() {
    local tree=$kept/glibc name built=$kept/glibc/built limit=60 sources
    if ! binary glibc-source "$tree"; then
        echo "glibc  skipped: the package glibc-source cannot be had: $(why)"
        return 0
    fi
    if ! have gcc gcc; then
        echo "glibc  skipped: gcc is not installed"
        return 0
    fi
    if [ ! -e "$built/done" ]; then
        rm -rf "$built" && mkdir -p "$built/include" "$built/support"
        (cd "$tree" && tar xf usr/src/glibc/glibc-*.tar.xz --strip-components=1 --wildcards '*/malloc/*' '*/support/*' '*/include/*.h' '*/test-skeleton.c')
        ln -s "$tree/support" "$built/include/support"
        ln -s "$tree/malloc" "$built/include/malloc"
        for name in array_length.h libc-diag.h intprops.h; do ln -s "$tree/include/$name" "$built/include/$name"; done
        local options=(-std=gnu11 -O1 -w -D_GNU_SOURCE -DTIMEOUTFACTOR=1 -include limits.h -I"$built/include" -I"$tree/support" -fno-builtin -pthread)
        # The paths of an installed C library, which no test of malloc uses.
        for name in $(grep -oE '\b[A-Z_]+_PATH\b' "$tree/support/support_paths.c" | sort -u); do options+=("-D$name=\"/\""); done
        # A part of the support library needs the C library's own headers; what tests need does not.
        for sources in "$tree"/support/*.c; do
            name=$(basename "$sources" .c)
            gcc "${options[@]}" -c "$sources" -o "$built/support/$name.o" 2>/dev/null || true
        done
        for name in "$built"/support/*.o; do
            if nm "$name" | grep -q ' T main$'; then rm "$name"; fi
        done
        ar rcs "$built/libsupport.a" "$built"/support/*.o
        for sources in "$tree"/malloc/tst-*.c "$tree/malloc/mallocbug.c"; do
            name=$(basename "$sources" .c)
            [[ $name =~ ^$not_ours$ ]] ||
                gcc "${options[@]}" "$sources" -o "$built/$name" "$built/libsupport.a" -ldl 2>"$built/$name.said" ||
                echo "glibc  $name does not compile: $(grep -m1 -E 'error|undefined' "$built/$name.said")"
        done
        touch "$built/done"
    fi
    for name in "$built"/tst-* "$built/mallocbug"; do
        [ -x "$name" ] || continue
        verdict "$(basename "$name")" "$limit" "$name"
    done
    for name in "${!differs[@]}"; do
        sed -i "s/^failed $name: .*/known $name: ${differs[$name]//\//\\/}/" "$results"
    done
}

php() {
    local tree=$kept/php test
    if [ -n "$small" ]; then
        echo "php    skipped: not among the small"
        return 0
    fi
    if ! have php8.2 php8.2-cli || ! source_of php8.2 "$tree"; then
        echo "php    skipped: php8.2-cli or its source cannot be had: $(why)"
        return 0
    fi
    local in=$tree/tree
    # run-tests.php prints its own results, a line a test. It calls this in place of PHP, so that it
    # runs as usual itself.
    local how
    for how in without with; do
        local preload=
        [ $how = without ] || preload=$library
        printf '#!/bin/sh\nUSE_ZEND_ALLOC=0 LD_PRELOAD=%s exec %s "$@"\n' "$preload" "$(command -v php8.2)" >"$scratch/php8.2"
        chmod +x "$scratch/php8.2"
        (cd "$in" && NO_INTERACTION=1 TEST_PHP_EXECUTABLE=$scratch/php8.2 timeout 3000 \
            php8.2 run-tests.php -q "-j$(nproc)" -P Zend/tests) </dev/null 2>&1 | tr '\r' '\n' |
            sed -nE 's/.*(PASS|FAIL|SKIP|LEAK|XFAIL|BORK|WARN).*\[(.*\.phpt)\].*/\1 \2/p' | sort >"$scratch/php.$how" ||
            true # run-tests.php says so if any test failed
    done
    # What passes without and not with.
    join -j 2 <(grep '^PASS' "$scratch/php.without" | sort -k2) <(sort -k2 "$scratch/php.with") |
        awk '{ print ($3 == "PASS" ? "passed " : "failed ") $1 ($3 == "PASS" ? "" : ": " $3) }' >>"$results"
}

perl() {
    local tree=$kept/perl test
    if [ -n "$small" ]; then
        echo "perl   skipped: not among the small"
        return 0
    fi
    if ! have perl perl || ! source_of perl "$tree"; then
        echo "perl   skipped: its source cannot be had: $(why)"
        return 0
    fi
    # Beside the source's modules those of the installed Perl: some are made when it is built.
    if [ ! -e "$tree/modules" ]; then
        local directory
        while read -r directory; do
            case $directory in */perl-base | */perl/5*) cp -rnL "$directory/." "$tree/tree/lib/" 2>/dev/null || true ;; esac
        done < <(/usr/bin/perl -e 'print "$_\n" for grep { -d } @INC')
        touch "$tree/modules"
    fi
    local in=$tree/tree/t
    for test in "$in"/{base,cmd,op,re,uni}/*.t; do
        verdict "${test#"$in"/}" 120 /usr/bin/perl -I../lib "${test#"$in"/}"
    done
}

ruby() {
    local tree=$kept/ruby test
    if [ -n "$small" ]; then
        echo "ruby   skipped: not among the small"
        return 0
    fi
    if ! have ruby3.1 ruby3.1 || ! source_of ruby3.1 "$tree"; then
        echo "ruby   skipped: ruby3.1 or its source cannot be had: $(why)"
        return 0
    fi
    local in=$tree/tree
    for test in "$in"/test/ruby/test_*.rb; do
        # These compile C, for which Debian's Ruby lacks the headers: they wait for it in vain.
        [[ $test != *jit* ]] || continue
        # The tests' own time limits suit an idle machine.
        verdict "${test#"$in"/}" 600 env RUBY_TEST_TIMEOUT_SCALE=5 /usr/bin/ruby3.1 -Itool/lib -Itest/lib tool/test/runner.rb "${test#"$in"/}"
    done
}

[ $# -ge 1 ] || wrong "the library is missing"
[ -f "$1" ] || wrong "$1 is not a file; build it with: cargo build --profile lab -p brickyard-malloc"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
results=$scratch/results
# A copy: LD_PRELOAD splits at blanks and colons.
library=$scratch/$(basename "$1" | tr -c '[:alnum:]._\n-' _)
cp -L "$1" "$library"
readonly scratch library results
shift
small=
if [ "${1:-}" = --small ]; then
    small=yes
    shift
fi
[ $# -gt 0 ] || set -- "${known[@]}"
for suite in "$@"; do [[ " ${known[*]} " = *" $suite "* ]] || wrong "no suite is called $suite"; done
mkdir -p "$kept"
failed=()
for suite in "$@"; do
    : >"$results"
    "$suite"
    [ ! -s "$results" ] || summary "$suite" || failed+=("$suite")
done
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}" && exit 1; }
