# redis-server with redis-benchmark, as a malloc library sees it: strings, lists, sorted sets,
# hashes, and lists of which the head is asked for. Runs in a folder of its own; prints what is the
# same each time.
set -eu

redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --appendonly no \
    --logfile "$PWD/server.log" --dir "$PWD" &
server=$!
trap 'kill -9 $server 2>/dev/null || true' EXIT

ask() { redis-cli -s redis.sock "$@"; }
load() { redis-benchmark -s redis.sock -q -P 16 "$@" >/dev/null; }

waited=0
until [ "$(ask ping 2>/dev/null)" = PONG ]; do
    waited=$((waited + 1))
    [ $waited -lt 500 ] || { echo 'redis-server does not answer' >&2 && exit 1; }
    sleep 0.02
done

load -n @AMOUNT@ -r 1000000 -d 120 -t set,get,hset
load -n @AMOUNT@ -d 100 -t incr,sadd,mset
load -n @AMOUNT@ -r 10000 zadd scores __rand_int__ member:__rand_int__
load -n @AMOUNT@ lpush list 1 2 3 4 5 6 7 8 9 10
load -n @AMOUNT@ lrange list 0 9
load -n @AMOUNT@ -r 1000 append text:__rand_int__ 0123456789
ask llen list
if [ @SETTLE@ != 0 ]; then
    ask flushall >/dev/null
    sleep @SETTLE@
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status" >settled
fi
ask shutdown nosave
wait $server
trap - EXIT
