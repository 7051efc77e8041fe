"""Runs the cells of `brickyard reproduce` on a Dask cluster; see docs/book/cluster.md.

    python dask_cells.py --brickyard target/lab/brickyard --output reproduced-dask [--full] [--scheduler tcp://HOST:8786]

Without --scheduler a cluster of two workers is started on this machine. On a real one every worker must see the program, the
traces and the output folder under the same paths (a shared file system); a cell needs nothing else.

Only cells that are still to be run in the output folder are run, so the same command goes on with a run that was ended. A cell that fails is told, and
ends no other.

What is timed must have a host for itself: timed cells come first, one after another, all on the first worker, while the others wait; so they are all
of one host too.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

from dask.distributed import Client, LocalCluster, as_completed


def left(whole_run):
    """The cells that are still to be run: name, kind, rough seconds."""
    command = [*whole_run, "--list-cells", "--format", "json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def run(brickyard, name, common):
    """One cell: one command, one Parquet file. What went wrong, if anything did."""
    command = [brickyard, "reproduce", "--cell", name, *common]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{name}: {done.stderr.strip() or done.returncode}"


def outcome(future):
    """What went wrong with a cell, also where its worker was lost."""
    try:
        return future.result()
    except Exception as error:
        return f"{future.key}: {error}"


def main():
    parse = argparse.ArgumentParser(description="Runs the cells of `brickyard reproduce` on a Dask cluster.")
    parse.add_argument("--brickyard", default="brickyard", help="the program")
    parse.add_argument("--output", required=True, help="the folder of the run")
    parse.add_argument("--traces", default="traces", help="the folder of traces")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--full", action="store_true", help="all cells, not those of --quick")
    parse.add_argument("--scheduler", help="the address of a cluster's scheduler")
    options = parse.parse_args()

    # Workers of a cluster may be started in another folder, so all paths are made whole here.
    brickyard = shutil.which(options.brickyard)
    if brickyard is None:
        parse.error(f"there is no program {options.brickyard}")
    brickyard, output, traces = (os.path.abspath(path) for path in (brickyard, options.output, options.traces))

    scale = "--full" if options.full else "--quick"
    common = ["--seed", str(options.seed), "--output", output, "--traces", traces]
    whole_run = [brickyard, "reproduce", scale, "--resume", *common]
    cells = left(whole_run)
    timed = [cell["cell"] for cell in cells if cell["kind"] == "timed"]
    exact = sorted((cell for cell in cells if cell["kind"] != "timed"), key=lambda cell: -cell["seconds"])
    failed = 0

    def tell(future):
        nonlocal failed
        error = outcome(future)
        if error is not None:
            failed += 1
            print(error, file=sys.stderr, flush=True)

    where = options.scheduler or LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with Client(where) as client:
        workers = sorted(client.ncores())
        print(f"{len(timed)} timed cells on one of {len(workers)} workers, then {len(exact)} others on all", flush=True)
        for name in timed:
            tell(client.submit(run, brickyard, name, common, key=name, workers=workers[0], pure=False))
        futures = [client.submit(run, brickyard, cell["cell"], common, key=cell["cell"], pure=False) for cell in exact]
        for count, future in enumerate(as_completed(futures), 1):
            tell(future)
            if count % 50 == 0:
                print(f"{count} of {len(exact)}", flush=True)
    if failed:
        print(f"{failed} of {len(cells)} cells failed; they are tried once more here", file=sys.stderr, flush=True)

    # Runs what failed, and makes the report.
    sys.exit(subprocess.run(whole_run).returncode)


if __name__ == "__main__":
    main()
