"""Objects of Python, each a block of malloc's: dictionaries, lists, texts that grow, JSON, and trees
that are dropped as a whole. Prints a number that is the same each time."""

import json
import re
import time

AMOUNT = @AMOUNT@
SETTLE = @SETTLE@


def numbers(seed):
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        yield seed >> 40


def record(draw):
    return {
        "name": "n%x" % next(draw),
        "tags": ["t%d" % (next(draw) % 100) for _ in range(next(draw) % 8)],
        "place": {"x": next(draw) / 3, "y": next(draw) / 7},
    }


def tree(depth):
    return (tree(depth - 1), tree(depth - 1), str(depth)) if depth else ()


draw = numbers(1)
kept = {}
total = 0
for step in range(AMOUNT):
    kept[next(draw) % 20000] = record(draw)
    if step % 10 == 0:
        text = json.dumps(list(kept.values())[-20:])
        total += len(json.loads(text)) + len(text)
    if step % 1000 == 0:
        total += len(str(tree(12)))
words = " ".join(value["name"] for value in kept.values()).split()
total += sum(len(word) for word in sorted(words)) + len("".join(reversed(words)))
print(len(kept), total)
if SETTLE:
    del kept, words, text
    time.sleep(SETTLE)
    with open("/proc/self/status") as status, open("settled", "w") as settled:
        settled.write(re.search(r"VmRSS:\s*(\d+)", status.read())[1])
