# Benchmarks of pyperformance that need nothing but Python, each with a fixed number of rounds in a
# process of its own, so that every library does the same. What they print are times.
set -eu

python='@PYTHON@'
where='import os, pyperformance; print(os.path.dirname(pyperformance.__file__))'
benchmarks=$("$python" -c "$where")/data-files/benchmarks

bench() { # bench NAME ROUNDS
    loops=$(($2 * @AMOUNT@ / 100))
    [ $loops -gt 0 ] || loops=1
    "$python" "$benchmarks/bm_$1/run_benchmark.py" --worker -l $loops -n 1 -w 0 >/dev/null
    echo "$1 $loops"
}

bench async_generators 1
bench chaos 2
bench comprehensions 5000
bench coroutines 10
bench deepcopy 500
bench deltablue 40
bench float 2
bench generators 5
bench go 1
bench hexiom 40
bench json_dumps 8
bench json_loads 8000
bench logging 10000
bench pathlib 8
bench pyflate 1
bench raytrace 1
bench regex_compile 1
bench richards 4
bench sqlite_synth 100
bench telco 15
bench xml_etree 1
