#!/usr/bin/env bash
# Runs real programs with a malloc library preloaded, and checks the output of each.
#
#     heap/malloc/tests/programs.sh target/release/libbrickyard_malloc.so [PROGRAM...]
#
# Each program runs twice in an empty directory of the same name: without and with the library
# preloaded. Its output must be identical, and it must exit with 0. Times and peak memory (of the
# largest process) are printed but not checked. Before that, the dynamic loader's bindings of each
# program's malloc family are checked: all of them must go to the preloaded library. Otherwise the
# check would prove nothing, and one allocator's blocks would reach the other's free.
#
# Of the environment only variables BRICKYARD_* are passed to the programs. Missing programs are
# installed when this runs as root and apt-get exists; those that cannot be installed are skipped,
# with the reason. Exit codes: 0 all passed, 1 a program failed, 2 wrong usage.
set -euo pipefail
export LC_ALL=C PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH" # the system's programs first
unset LD_PRELOAD

readonly known=(python compiler sqlite redis git node)
readonly family='malloc|calloc|realloc|free|posix_memalign|aligned_alloc|memalign|valloc|malloc_usable_size'
readonly limit=120 # seconds after which a program counts as hung
here=$(dirname "$(readlink -f "$0")")/programs
readonly here

wrong() { printf '%s\nusage: programs.sh LIBRARY [%s]...\n' "$1" "$(IFS='|' && echo "${known[*]}")" >&2 && exit 2; }

# The commands that a program needs.
needs() {
    case $1 in
        python) echo python3 ;;
        compiler) echo gcc g++ make ;;
        sqlite) echo sqlite3 ;;
        redis) echo redis-server redis-cli redis-benchmark ;;
        git) echo git ;;
        node) echo node ;;
    esac
}

# The Debian package of a command.
package() {
    case $1 in
        redis-*) echo redis-server ;;
        node) echo nodejs ;;
        *) echo "$1" ;;
    esac
}

# Sets `run` to the command line of a program.
command_line() {
    case $1 in
        python) run=(env PYTHONMALLOC=malloc python3 "$here/threads.py") ;; # every object from malloc instead of Python's pools
        compiler) run=(bash "$here/project.sh") ;;
        sqlite) run=(sqlite3 -batch tables.db ".read '$here/tables.sql'") ;;
        redis) run=(bash "$here/redis.sh") ;;
        git) run=(bash "$here/git.sh") ;;
        node) run=(node "$here/workers.js") ;;
    esac
}

# The executables whose bindings are checked.
executables() {
    needs "$1" | tr ' ' '\n'
    [ "$1" != compiler ] || printf '%s\n' "$(gcc -print-prog-name=cc1)" "$(g++ -print-prog-name=cc1plus)" as ld
}

install_missing() {
    local program name missing=()
    type -P time >/dev/null || missing+=(time)
    for program in "$@"; do
        for name in $(needs "$program"); do type -P "$name" >/dev/null || missing+=("$(package "$name")"); done
    done
    [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    apt-get update -qq >"$scratch/apt.log" 2>&1 || true
    for name in $(printf '%s\n' "${missing[@]}" | sort -u); do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$name" >>"$scratch/apt.log" 2>&1 ||
            echo "$name cannot be installed: $(tail -n 1 "$scratch/apt.log")"
    done
}

# astray EXECUTABLE: prints which of its malloc family is not bound to the library, from the
# loader's log. An executable that is not position independent has its own PLT entry as the address
# of a function; that is accepted if the entry itself is bound to the library.
astray() {
    { grep -hsE "symbol .($family)'" "$scratch"/bindings.* || true; } | awk -v library="$library" -v executable="$1" '
        {
            sub(/.*binding file /, "")
            shown = $0
            from = to = symbol = $0
            sub(/ \[[0-9]+\] to .*/, "", from)
            sub(/.* \[[0-9]+\] to /, "", to)
            sub(/ \[[0-9]+\]: .*/, "", to)
            sub(/.* symbol ./, "", symbol)
            sub(/\047.*/, "", symbol)
        }
        from == library { next }
        to == library { reached = 1; if (from == executable) entry[symbol] = 1; next }
        to == executable { own[symbol] = shown; next }
        { print "elsewhere: " shown }
        END {
            for (symbol in own) if (!(symbol in entry)) print "its own: " own[symbol]
            if (!reached) print "nothing goes to the library (static, or it never allocates)"
        }'
}

# bound PROGRAM: fails unless each of its executables has its whole malloc family from the library;
# prints what has not.
bound() {
    local executable strays failed=0
    while read -r executable; do
        rm -f "$scratch"/bindings.*
        timeout -k 5 "$limit" env -i PATH="$PATH" HOME="$scratch" "${settings[@]}" LD_PRELOAD="$library" \
            LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$scratch/bindings" \
            "$executable" --version </dev/null >"$scratch/version" 2>&1 ||
            { echo "$executable --version ended with status $?" && tail -n 5 "$scratch/version" && failed=1; }
        strays=$(astray "$executable" | sort -u | head -n 4)
        [ -z "$strays" ] || { printf '%s\n' "$executable:" "$strays" && failed=1; }
    done < <(executables "$1")
    return $failed
}

# perform HOW PROGRAM [VARIABLE...]: runs it in an empty directory; leaves HOW.out, HOW.microseconds
# and HOW.peak (KiB).
perform() {
    local how=$1 run begun=${EPOCHREALTIME/./} status=0 measured=()
    command_line "$2"
    shift 2
    rm -rf "$scratch/work"
    mkdir "$scratch/work"
    echo 0 >"$scratch/$how.peak"
    ! type -P time >/dev/null || measured=("$(type -P time)" --quiet -f %M -o "$scratch/$how.peak")
    # In the background, so that this script handles a signal at once; `timeout` forwards it to the
    # whole group.
    (cd "$scratch/work" && exec timeout -k 5 "$limit" "${measured[@]}" \
        env -i PATH="$PATH" HOME="$scratch/work" LC_ALL=C TZ=UTC "${settings[@]}" "$@" "${run[@]}") \
        </dev/null >"$scratch/$how.out" 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=
    echo $((${EPOCHREALTIME/./} - begun)) >"$scratch/$how.microseconds"
    [ $status != 124 ] || echo "(hung: stopped after $limit s)" >>"$scratch/$how.out"
    [ $status = 0 ] || echo "(ended with status $status)" >>"$scratch/$how.out"
    return $status
}

line() { # line PROGRAM VERDICT: with the times in seconds and peaks in MiB of both runs
    awk -v program="$1" -v verdict="$2" '
        FNR == 1 { value[FILENAME ~ /peak$/ ? "peak" : "time", FILENAME ~ /plain/ ? "plain" : "preloaded"] = $1 }
        END {
            printf "%-9s %8.2f s (%.2f without) %7.0f MiB (%.0f without)  %s\n", program,
                value["time", "preloaded"] / 1e6, value["time", "plain"] / 1e6,
                value["peak", "preloaded"] / 1024, value["peak", "plain"] / 1024, verdict
        }' "$scratch"/{plain,preloaded}.{microseconds,peak}
}

check() { # check PROGRAM: prints its line; fails if the program does
    local name
    for name in $(needs "$1"); do
        type -P "$name" >/dev/null || { printf '%-9s skipped: %s is not installed\n' "$1" "$name" && return 0; }
    done
    if ! bound "$1" >"$scratch/bound" 2>&1; then
        printf '%-9s FAILED: its malloc is not all from the library\n' "$1" && sed 's/^/    /' "$scratch/bound"
        return 1
    fi
    if ! perform plain "$1"; then
        printf '%-9s FAILED, and that without the library; its last words:\n' "$1" && last_words plain
        return 1
    elif ! perform preloaded "$1" LD_PRELOAD="$library"; then
        line "$1" "FAILED; its last words:" && last_words preloaded
        return 1
    elif ! cmp -s "$scratch/plain.out" "$scratch/preloaded.out"; then
        line "$1" "FAILED (< without, > with the library):"
        diff "$scratch/plain.out" "$scratch/preloaded.out" | head -n 60 | sed 's/^/    /'
        return 1
    fi
    line "$1" ok
}

last_words() { tail -n 40 "$scratch/$1.out" | sed 's/^/    /'; }

[ $# -ge 1 ] || wrong "the library is missing"
[ -f "$1" ] || wrong "$1 is not a file; build it with: cargo build --release -p brickyard-malloc"
scratch=$(mktemp -d)
running=
cleaned() {
    [ -z "$running" ] || { kill "$running" && wait "$running"; } 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleaned EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A copy: LD_PRELOAD splits at blanks and colons, and a build may replace the file while programs
# run.
library=$scratch/$(basename "$1" | tr -c '[:alnum:]._\n-' _)
cp -L "$1" "$library"
readonly scratch library
shift
[ $# -gt 0 ] || set -- "${known[@]}"
for program in "$@"; do [ -n "$(needs "$program")" ] || wrong "no program is called $program"; done
settings=()
for name in "${!BRICKYARD_@}"; do settings+=("$name=${!name}"); done

install_missing "$@"
maps=$(LD_PRELOAD=$library grep -F "$library" /proc/self/maps 2>&1) ||
    { echo "FAILED: the library cannot be preloaded: ${maps:-it is not in the process}" && exit 1; }
failed=()
for program in "$@"; do check "$program" || failed+=("$program"); done
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}" && exit 1; }
