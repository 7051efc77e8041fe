# Benchmarks of Node's own sources, each with a fixed number of rounds, so that every library does
# the same. What they print are rates.
set -eu

fail() {
    echo "node-suite: $1" >&2
    exit 1
}

bench() { # bench FILE ROUNDS PARAMETER...
    file=$1 rounds=$(($2 * @AMOUNT@ / 100))
    shift 2
    said=$(node "$NODE_BENCHMARKS/$file" n=$rounds "$@") ||
        fail "$file failed; is NODE_BENCHMARKS of sources that this Node can run?"
    # It exits with 0 also where the process that it starts has crashed.
    [ -n "$said" ] || fail "$file has no result: its process crashed"
    echo "$file $rounds $*"
}

bench buffers/buffer-concat.js 200000 pieceSize=256 pieces=16 withTotalLength=1
bench buffers/buffer-creation.js 400000 type=fast-alloc len=4096
bench buffers/buffer-creation.js 400000 type=slow-allocUnsafe len=8192
bench buffers/buffer-from.js 400000 source=string-base64 len=2048
bench http/bench-parser.js 100000 len=16
bench streams/pipe.js 1000000
bench streams/readable-bigread.js 500
bench streams/readable-from.js 700000
bench string_decoder/string-decoder.js 30000 encoding=utf8 inLen=4096 chunkLen=1024
bench util/inspect.js 20000 method=Array option=none
bench zlib/creation.js 20000 type=Gzip options=false
bench zlib/creation.js 2000 type=BrotliCompress options=false
bench zlib/deflate.js 6000 method=deflate inputLen=1024
