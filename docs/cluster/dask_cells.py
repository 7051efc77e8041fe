"""Runs the cells of `brickyard reproduce` on a Dask cluster; see docs/cluster/README.md.

    python dask_cells.py --brickyard target/lab/brickyard --output reproduced-dask [--full] [--scheduler tcp://HOST:8786]

Without --scheduler a cluster of two workers is started on this machine. On a real one every worker must see the program, the
traces and the output folder under the same paths (a shared file system); a cell needs nothing else.

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


def listed(brickyard, scale, seed):
    """The cells of a plan: name, kind, rough seconds."""
    command = [brickyard, "reproduce", scale, "--seed", str(seed), "--list-cells", "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run(brickyard, name, seed, output, traces):
    """One cell: one command, one Parquet file."""
    command = [brickyard, "reproduce", "--cell", name, "--seed", str(seed), "--output", output, "--traces", traces]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")
    return name


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
    cells = listed(brickyard, scale, options.seed)
    where = options.scheduler or LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    arguments = (options.seed, output, traces)
    with Client(where) as client:
        workers = sorted(client.ncores())
        timed = [cell["cell"] for cell in cells if cell["kind"] == "timed"]
        exact = sorted((cell for cell in cells if cell["kind"] != "timed"), key=lambda cell: -cell["seconds"])
        print(f"{len(timed)} timed cells on one of {len(workers)} workers, then {len(exact)} others on all", flush=True)
        for name in timed:
            client.submit(run, brickyard, name, *arguments, workers=workers[0], pure=False).result()
        futures = [client.submit(run, brickyard, cell["cell"], *arguments, pure=False) for cell in exact]
        for count, future in enumerate(as_completed(futures), 1):
            future.result()
            if count % 50 == 0:
                print(f"{count} of {len(exact)}", flush=True)

    # All cells are there: this runs none, and makes the report.
    report = [brickyard, "reproduce", scale, "--resume", "--seed", str(options.seed)]
    report += ["--output", output, "--traces", traces]
    sys.exit(subprocess.run(report).returncode)


if __name__ == "__main__":
    main()
