# PostgreSQL with pgbench, as a malloc library sees it: a process for each connection; reads,
# transactions that write, sorts and groups. Runs in a folder of its own, where `prepare` has made an
# empty cluster; prints what is the same each time.
set -eu

bin=$(dirname "$(readlink -f "$(command -v initdb)")")
# The server refuses to be run by root.
as=
if [ "$(id -u)" = 0 ]; then
    user=postgres
    id $user >/dev/null 2>&1 || user=nobody
    as="setpriv --reuid=$user --regid=$(id -g $user) --clear-groups"
fi

if [ "$1" = prepare ]; then
    rm -rf cluster
    mkdir cluster
    [ -z "$as" ] || chown $user cluster
    $as "$bin/initdb" -D "$PWD/cluster/data" -U lab --auth=trust --no-sync --locale=C -E UTF8 >cluster.log
    exit
fi

$as "$bin/postgres" -D "$PWD/cluster/data" -k "$PWD/cluster" -c listen_addresses= -c fsync=off \
    -c shared_buffers=16MB -c work_mem=16MB -c autovacuum=off -c jit=off \
    -c max_parallel_workers_per_gather=0 -c logging_collector=off >server.log 2>&1 &
server=$!
trap 'kill -QUIT $server 2>/dev/null || true' EXIT

ask() { "$bin/psql" -X -q -A -t -h "$PWD/cluster" -U lab -d postgres -c "$1"; }
load() {
    "$bin/pgbench" -h "$PWD/cluster" -U lab --random-seed=1 "$@" postgres 2>/dev/null |
        grep 'actually processed'
}

waited=0
until ask 'select 1' >/dev/null 2>&1; do
    waited=$((waited + 1))
    [ $waited -lt 500 ] || { tail -1 server.log >&2 && exit 1; }
    sleep 0.02
done
grep -qF "/${LD_PRELOAD##*/}" "/proc/$server/maps" || {
    echo "the server's user cannot read $LD_PRELOAD" >&2
    exit 1
}

"$bin/pgbench" -h "$PWD/cluster" -U lab -i -q -s 1 postgres 2>/dev/null
load -n -S -c 4 -t $((@AMOUNT@ / 4))
load -n -C -S -c 1 -t $((@AMOUNT@ / 200))
load -n -N -c 2 -t $((@AMOUNT@ / 20))
ask "select count(distinct words), max(length(words)) from (
    select string_agg(md5(number::text), ',' order by number % 97) as words
    from generate_series(1, @AMOUNT@ * 10) as number group by number % 1000) as groups"
ask "select count(*), sum(jsonb_array_length(list)) from (
    select jsonb_agg(jsonb_build_object('account', aid, 'words', repeat('x', aid % 50))) as list
    from pgbench_accounts where aid <= @AMOUNT@ * 4 group by aid % 500) as lists"
kill -INT $server
wait $server
trap - EXIT
