#!/usr/bin/env bash
# redis-server under the allocator: redis-benchmark with pipelining, known keys, a snapshot by fork
# while clients write, a rewritten log, and the same data after a reload and after a restart. Prints
# only what is the same on every run; the server's log is server.log. Runs in an empty directory.
#
# Debian links redis-server with libjemalloc.so.2 and calls `malloc`, `free` and
# `malloc_usable_size` by these names, so a preloaded library does replace them. It does not replace
# `mallctl`, from which redis reads statistics: redis always reports jemalloc as its allocator
# (mem_allocator), with the statistics of a jemalloc that serves nothing.
set -euo pipefail

ask() { redis-cli -s redis.sock "$@"; }
load() { redis-benchmark -s redis.sock -q "$@" >benchmark.log 2>&1 || { cat benchmark.log && return 1; }; }
field() { ask info "$1" | tr -d '\r' | sed -n "s/^$2://p"; }

start() {
    redis-server --port 0 --unixsocket "$PWD/redis.sock" --enable-debug-command yes --save '' --daemonize no \
        --logfile "$PWD/server.log" --dir "$PWD" --hash-max-listpack-entries 32 --activedefrag no &
    server=$!
    trap ended EXIT
    local waited
    for ((waited = 0; waited < 200; waited++)); do
        [ "$(ask ping 2>/dev/null)" != PONG ] || return 0
        sleep 0.05
    done
    echo "redis-server does not answer"
    return 1
}

# On failure prints the end of the server's log.
ended() {
    local status=$?
    [ $status = 0 ] || tail -n 30 server.log
    kill -9 "$server" 2>/dev/null || true
}

stop() { ask shutdown "$@" && wait "$server"; }

until_done() { # until_done NAME STATUS: waits for the forked child, and prints its status
    local waited
    for ((waited = 0; waited < 400; waited++)); do
        [ "$(field persistence "$1_in_progress")" = 1 ] || break
        sleep 0.05
    done
    echo "$1: $(field persistence "$2")"
}

# Checks that the library replaced jemalloc: jemalloc then has almost nothing of what redis
# allocated.
replaced() {
    [ -n "${LD_PRELOAD:-}" ] || return 0
    local used by_jemalloc
    used=$(field memory used_memory) by_jemalloc=$(field memory allocator_allocated)
    case "$LD_PRELOAD" in *jemalloc*) return 0 ;; esac
    [ -z "$by_jemalloc" ] || [ $((by_jemalloc * 4)) -lt "$used" ] ||
        { echo "redis allocates from jemalloc: $by_jemalloc of $used bytes" && return 1; }
}

start
ask debug populate 60000 key 200
load -n 80000 -P 16 -d 100 -t set,get,incr,lpush,rpush,lpop,sadd,hset,mset
load -n 30000 -P 32 --threads 2 zadd scores 7 member
load -n 20000 -P 8 -c 20 eval 'local t = {} for i = 1, 20 do t[i] = i .. ARGV[1] end return #table.concat(t)' 0 text
load -n 20000 -P 16 append text:grown 0123456789
seq 1 20000 | sed 's/.*/HSET hash:& a & b value& c text&\nSADD set & m&\nZADD order & z&\nRPUSH list:& & x& y&/' |
    redis-cli -s redis.sock --pipe >/dev/null
seq 1 3 20000 | sed 's/.*/DEL hash:&\nSREM set m&\nZREM order z&\nLPOP list:&/' | redis-cli -s redis.sock --pipe >/dev/null
replaced

echo "keys: $(ask dbsize)"
ask get key:4711 | tr -d '\0'
ask mget key:1 key:59999 | tr -d '\0'
ask hgetall hash:4712 | paste -sd' '
ask llen mylist
ask strlen text:grown
ask zrangebyscore order 300 305 | paste -sd' '
ask scard set
digest=$(ask debug digest)

# A snapshot by fork while clients continue to write.
ask bgsave >/dev/null
load -n 60000 -P 16 -r 30000 -d 300 -t set
until_done rdb_bgsave rdb_last_bgsave_status
ask eval "for _, k in ipairs(redis.call('keys', 'key:0*')) do redis.call('del', k) end" 0 >/dev/null
ask debug populate 60000 key 200 >/dev/null
ask config set appendonly yes >/dev/null
until_done aof_rewrite aof_last_bgrewrite_status
ask config set appendonly no >/dev/null
written=$(ask debug digest)
ask debug reload
[ "$(ask debug digest)" = "$written" ] && echo "the same after a reload"
stop save

redis-check-rdb dump.rdb | grep -o 'RDB looks OK.*'
start
[ "$(ask debug digest)" = "$written" ] && echo "the same after a restart"
echo "keys: $(ask dbsize)"
ask flushall async
stop nosave
echo "$digest"
