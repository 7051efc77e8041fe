"""Python under the allocator: threads that hand objects to each other, threads that come and go, forks while other
threads allocate, and processes that answer over pipes.

Prints one line per part. Each line is the same on every run: what it holds is a digest of results that do not depend
on which thread did what. Run with PYTHONMALLOC=malloc, every Python object is one of the allocator's.
"""

import contextlib
import ctypes
import hashlib
import json
import multiprocessing
import os
import queue
import sqlite3
import subprocess
import threading
import zlib

DONE = None  # what ends a queue


def numbers(seed, count):
    """`count` numbers below 2^32, the same for the same seed on every version of Python."""
    state = seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 32


def record(seed):
    """An object of many small ones, of all sizes up to some kilobytes."""
    values = list(numbers(seed, 24))
    return {
        "seed": seed,
        "names": ["n%x" % value * (value % 19) for value in values],
        "tree": {str(value % 97): [value, {"deep": [value / 7] * (value % 11)}] for value in values},
        "text": "brick " * (values[0] % 600),
    }


def digest(value):
    return hashlib.sha256(value).hexdigest()


def round_trip(value):
    """Through JSON and zlib and back; says so if something was lost on the way. Gives the digest of the text."""
    text = json.dumps(value, sort_keys=True).encode()
    packed = zlib.compress(text, 6)
    if json.loads(zlib.decompress(packed)) != value:
        raise ValueError("record %d changed on its way" % value["seed"])
    return digest(text)


def combined(digests):
    return digest("".join(sorted(digests)).encode())


def in_threads(work, arguments):
    """Runs `work` in one thread per argument; fails where one of them fails."""
    failures = []

    def guarded(argument):
        try:
            work(argument)
        except BaseException as failure:  # the main thread reports it
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    return threads, failures


def joined(started):
    threads, failures = started
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def pipeline():
    """Three threads make objects, three others use them, and a last one drops them."""
    made, used = queue.Queue(64), queue.Queue(64)
    digests = []

    def make(first):
        for seed in range(first, first + 700):
            made.put(record(seed))

    def use(_):
        while (value := made.get()) is not DONE:
            used.put((round_trip(value), value))

    def drop(_):
        while (pair := used.get()) is not DONE:
            digests.append(pair[0])

    makers, users, dropper = in_threads(make, [0, 10_000, 20_000]), in_threads(use, range(3)), in_threads(drop, [0])
    joined(makers)
    for _ in range(3):
        made.put(DONE)
    joined(users)
    used.put(DONE)
    joined(dropper)
    return "%d objects %s" % (len(digests), combined(digests))


def generations():
    """Threads that end while others still hold what they allocated."""
    left = {}

    def leave(seed):
        left[seed] = [record(seed), bytearray(seed * 997 % 300_000)]

    digests = []
    for first in range(0, 320, 8):
        joined(in_threads(leave, range(first, first + 8)))
        for seed in range(max(first - 16, 0), first):  # what the thread before the last left
            if seed in left and seed % 3:
                digests.append(round_trip(left.pop(seed)[0]))
    digests += [round_trip(value) for value, _ in left.values()]
    return "%d objects %s" % (len(digests), combined(digests))


def growth():
    """Blocks that grow and shrink by realloc, from bytes to many megabytes."""
    text, blocks = bytearray(), []
    for value in numbers(7, 30_000):
        text += value.to_bytes(4, "little") * (value % 100)
        blocks.append(bytes(value % 5000))
        if len(blocks) > 2000:
            del blocks[::2]
        if len(text) > 5_000_000:
            del text[: len(text) - 1000]
    large = bytearray(64 << 20)
    large[-1] = 1
    return "%d %s %d" % (len(text), digest(text), sum(large))


def table(seed):
    """The sum over a database in memory. SQLite lets go of Python's lock, so these threads really run side by side."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("create table t (a integer, b text)")
        database.executemany("insert into t values (?, ?)", ((n % 1000, "x%d" % n) for n in numbers(seed, 8000)))
        database.execute("create index i on t (b)")
        return database.execute("select sum(length(b) * a), count(distinct b) from t where b > 'x2'").fetchone()


def tables():
    sums = {}
    joined(in_threads(lambda seed: sums.update({seed: table(seed % 3)}), range(24)))
    return " ".join("%d:%d" % sums[seed] for seed in sorted(sums))


def child(seed):
    """What a forked process does: new objects, a thread of its own, and it frees what it inherited."""
    inherited.clear()
    results = []
    joined(in_threads(lambda number: results.append(round_trip(record(number))), [seed, seed + 1]))
    return combined(results)


inherited = []


def forks():
    """Forks while other threads are inside the allocator; each child must be able to allocate and to free.

    The threads are in libc's regcomp: hundreds of blocks in one call, without Python's lock, and without any other
    lock that a child could find taken (as it would find SQLite's).
    """
    inherited.extend(record(seed) for seed in range(300))
    libc, answers, stop = ctypes.CDLL(None), [], threading.Event()
    pattern, text = b"((brick|block|slab)+[a-z0-9]{1,20}(yard|page){2,9})*end$", b"brick7yardyardslabxpagepageend"

    def compile_patterns(_):
        while not stop.is_set():
            compiled = ctypes.create_string_buffer(256)  # a regex_t is 64 bytes
            if libc.regcomp(compiled, pattern, 1) or libc.regexec(compiled, text, 0, None, 0):
                raise ValueError("regcomp or regexec failed")
            libc.regfree(compiled)

    compiling = in_threads(compile_patterns, range(3))
    try:
        for seed in range(40):
            answers.append(answer_of_fork(seed))
    finally:
        stop.set()
    joined(compiling)
    if answers != [child(seed) for seed in range(40)]:
        raise ValueError("a child got another result than its parent")
    return "%d processes %s" % (len(answers), combined(answers))


def answer_of_fork(seed):
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(writer, child(seed).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(process, 0)
    if status or not answer:
        raise ValueError("child %d ended with status %d and said %r" % (seed, status, answer))
    return answer


def round_trip_of(seed):
    return round_trip(record(seed))


def processes():
    """Pools of forked and of fresh processes, and programs behind pipes."""
    lines = []
    for method in "fork", "spawn":
        with multiprocessing.get_context(method).Pool(2) as pool:
            lines.append(combined(pool.map(round_trip_of, range(400), chunksize=20)))
    text = "".join("%d\n" % value for value in numbers(3, 50_000)).encode()
    ordered = subprocess.run(["sort", "-n"], input=text, capture_output=True, check=True).stdout
    if [int(line) for line in ordered.split()] != sorted(numbers(3, 50_000)):
        raise ValueError("sort gave another order")
    return " ".join(lines + [digest(ordered)])


if __name__ == "__main__":
    for part in pipeline, generations, growth, tables, forks, processes:
        print(part.__name__, part(), flush=True)
