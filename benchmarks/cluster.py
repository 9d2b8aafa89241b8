"""What a cluster of Dask costs: `python benchmarks/cluster.py [--rows N] [--columns P] [--workers W]`.

One table, three engines in turns: in memory with W threads, on disk with W threads, and on W local workers of one thread each.
The scheduler is a process of its own, so that its time can be told from that of the client. Prints seconds of the clock and of
the processors for a sweep of all chains, and the parts that a larger cluster is worked out from: tasks and bytes per sweep,
and the scheduler's time for a task. Ratios within one run are what counts; machines are noisy.
"""

import argparse
import itertools
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bayescase import BayesianCaseModel
from bayescase.kernels.cluster import engine
from bayescase.reading.batches import open_source
from bayescase.reading.encoder import CaseEncoder
from bayescase.reading.tables import read
from bayescase.sampling.large import open_large, prepare_large
from bayescase.sampling.places import Place
from bayescase.sampling.problem import Given, Settings, prepare
from bayescase.sampling.run import Run

PART = 1 << 20  # rows that are made at a time


def write_table(path, n_rows, n_columns, S=10, V=5):
    """Cases around S centres, a third of whose cells are noise."""
    rng = np.random.default_rng(0)
    centres = rng.integers(V, size=(S, n_columns)).astype(np.int8)
    schema = pa.schema([(f"f{j}", pa.int8()) for j in range(n_columns)])
    with parquet.ParquetWriter(path, schema) as file:
        for first in range(0, n_rows, PART):
            size = min(PART, n_rows - first)
            noise, where = rng.integers(V, size=(size, n_columns), dtype=np.int8), rng.random((size, n_columns)) < 0.3
            x = np.where(where, noise, centres[rng.integers(S, size=size)])
            file.write_table(pa.table([x[:, j] for j in range(n_columns)], schema=schema))


class Processes:
    """A scheduler and workers on this machine, a process each."""

    def __init__(self, n_workers, folder):
        from distributed import Client

        where = str(folder / "scheduler.json")
        common = ["--scheduler-file", where, "--no-dashboard"]
        self.all = [self.start("dask_scheduler", *common, "--port", "0")]
        self.all += [self.start("dask_worker", *common, "--nthreads", "1", "--no-nanny") for _ in range(n_workers)]
        self.client = Client(scheduler_file=where, timeout=60)
        self.client.wait_for_workers(n_workers, timeout=120)

    def start(self, module, *args):
        command = [sys.executable, "-m", f"distributed.cli.{module}", *args]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def seconds(self):
        """(scheduler, workers) seconds of the processors so far."""
        return self.client.run_on_scheduler(time.process_time), sum(self.client.run(time.process_time).values())

    def close(self):
        self.client.close()
        for process in reversed(self.all):
            process.terminate()
            process.wait()


class Counting(engine.Workers):
    """Counts tasks and bytes on their way."""

    n_tasks = sent = fetched = 0

    def submit(self, function, which, *each):
        futures = super().submit(function, which, *each)
        Counting.n_tasks += len(futures)
        return futures

    def share(self, *args):
        Counting.sent += len(pickle.dumps((self.shape, *args), protocol=5))
        return super().share(*args)

    def gather(self, futures):
        results = super().gather(futures)
        Counting.fetched += sum(len(pickle.dumps(result, protocol=5)) for result in results)
        return results


class Engines:
    """The same run on three engines."""

    def __init__(self, path, folder, processes, n_threads, n_chains, S, n_init):
        model = BayesianCaseModel(S, n_iter=100_000, n_chains=n_chains, init="cases", n_init=n_init)
        settings = Settings(**{name: getattr(model, name) for name in Settings.__dataclass_fields__})
        encoder = CaseEncoder(feature_types="category")
        place = self.place = Place(folder / "cache", None)  # its files go with it
        begun = time.monotonic()
        cached = open_large(open_source(path), encoder, None, place, 0)
        print(f"codes made in {time.monotonic() - begun:.0f} s, {len(cached):,} rows in {cached.n_blocks} blocks")
        of_disk = prepare_large(cached, settings, Given(), 0, place.rows)
        there = of_disk._replace(stored=of_disk.stored._replace(client=processes.client, folder=folder / "there"))
        (folder / "there").mkdir()
        table = parquet.read_table(path)
        in_memory = prepare(read(table), encoder.fit(table).encoding_, settings, Given(), 0)
        del table
        self.runs = {"memory": Run(in_memory, n_threads), "disk": Run(of_disk, n_threads), "cluster": Run(there)}

    def check(self):
        """All of them draw the same."""
        for run in self.runs.values():
            t = run.stage.sweep
            assert all(
                np.array_equal(one.trace[:, :t], two.trace[:, :t])
                for one, two in zip(run.chains, self.runs["memory"].chains, strict=True)
            )


def take_turns(engines, processes, n_sweeps, turns):
    """{engine: [(seconds, seconds of the processors) per sweep of all chains]}."""
    found, of_tasks = {name: [] for name in engines.runs}, []
    before, clock = processes.seconds(), time.perf_counter()
    time.sleep(5)
    idle = np.subtract(processes.seconds(), before) / (time.perf_counter() - clock)  # seconds a second, without tasks
    for turn in range(turns + 1):
        for name, run in engines.runs.items():
            scheduler, workers = processes.seconds()
            clock, here, made = time.perf_counter(), time.process_time(), Counting.n_tasks
            run.advance(n_sweeps)
            clock, here = time.perf_counter() - clock, time.process_time() - here
            after = processes.seconds()
            scheduler, workers = after[0] - scheduler - clock * idle[0], after[1] - workers - clock * idle[1]
            if turn:  # the first one compiles
                there = scheduler + workers if name == "cluster" else 0.0
                found[name].append((clock / n_sweeps, (here + there) / n_sweeps))
                if name == "cluster":
                    made = Counting.n_tasks - made
                    of_tasks.append([scheduler / made, here / made, workers / n_sweeps])
        engines.check()
    return found, of_tasks, idle


def overhead_of_tasks(client, n=2000):
    """Seconds of the scheduler and of the clock for a task that does nothing, many at a time."""
    client.gather(client.map(abs, range(50), key=[f"warm-{i}" for i in range(50)]))
    scheduler, clock = client.run_on_scheduler(time.process_time), time.perf_counter()
    client.gather(client.map(abs, range(n), key=[f"abs-{i}" for i in range(n)]))
    return (client.run_on_scheduler(time.process_time) - scheduler) / n, (time.perf_counter() - clock) / n


def worked_out(figures, cells, n_threads, n_chains=4, thin=5):
    """What a sweep of all chains would take on a larger cluster, by the parts that were measured here.

    Seconds of the workers and of the scheduler, of which the larger one counts, and bytes to shared files and from them.
    """
    n_blocks = engine.n_blocks(cells, n_threads, n_chains)
    busy = min(n_threads, n_chains * n_blocks)
    sweep = figures["workers"] / (figures["chains"] * figures["cells"])  # seconds of a thread for a cell
    return {
        "blocks": n_blocks,
        "workers": n_chains * cells * sweep / busy,
        "scheduler": n_chains * n_blocks * figures["tasks"] / figures["blocks"] * figures["scheduler_per_task"],
        "files": n_chains * 2 * cells * figures["state"] / figures["cells"] / engine.STEPS * (1 + 1 / thin),
    }


def print_worked_out(figures):
    print("worked out for 4 chains, workers with 8 threads each:")
    for cells, n_workers in itertools.product((2 * 10**9, 2 * 10**10), (1, 10, 100, 1000)):
        found = worked_out(figures, cells, 8 * n_workers)
        speed = 4 * cells / max(found["workers"], found["scheduler"]) / 1e9
        print(f"{cells:14,} cells, {n_workers:5,} workers: {found['blocks']:4} blocks a chain, {speed:5.1f} G cells/s:", end="")
        parts = (found["workers"], found["scheduler"], found["files"] / 1e9)
        print(" workers {:7.2f} s, scheduler {:5.2f} s, {:.2f} GB of files".format(*parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 5_000_000), ("columns", 20), ("workers", 2), ("chains", 2), ("clusters", 10), ("turns", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--starts", type=int, default=30, help="short runs of each chain, which nobody times")
    parser.add_argument("--sweeps", type=int, default=5, help="of a turn")
    parser.add_argument("--folder", help="for files, in place of a temporary one")
    parser.add_argument("--json", help="file for the figures")
    args = parser.parse_args()
    engine.Workers = Counting
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        write_table(folder / "table.parquet", args.rows, args.columns)
        processes = Processes(args.workers, folder)
        try:
            figures = measure(args, folder, processes)
        finally:
            processes.close()
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))


def measure(args, folder, processes):
    engines = Engines(folder / "table.parquet", folder, processes, args.workers, args.chains, args.clusters, args.starts)
    try:
        Counting.n_tasks = Counting.sent = Counting.fetched = 0
        seconds, of_tasks, idle = take_turns(engines, processes, args.sweeps, args.turns)
        made = args.sweeps * (args.turns + 1) * args.chains
        rows = engines.runs["cluster"].chains[0].rows
        state = sum(array.nbytes for array in rows.files(rows.number) if array is not None)
    finally:
        for run in engines.runs.values():
            run.close()
    cells, figures = args.rows * args.columns, {}
    for name, turns in seconds.items():
        clock, cpu = (statistics.median(each) for each in zip(*turns, strict=True))
        ratio = [statistics.median(a[k] / b[k] for a, b in zip(turns, seconds["memory"], strict=True)) for k in (0, 1)]
        figures[name] = {"seconds": clock, "cpu": cpu, "times": ratio[0], "times_cpu": ratio[1]}
        speed = args.chains * cells / clock / 1e6
        print(f"{name:8} {clock:8.3f} s a sweep ({speed:6.0f} M cells/s), {cpu:8.3f} s of processors; "
              f"{ratio[0]:.2f} and {ratio[1]:.2f} times memory")  # fmt: skip
    per_task = [statistics.median(each) for each in zip(*of_tasks, strict=True)]
    empty = overhead_of_tasks(processes.client)
    figures |= {
        "blocks": len(rows.workers.blocks),
        "tasks": Counting.n_tasks / made,
        "sent": Counting.sent / made,
        "fetched": Counting.fetched / made,
        "state": state,
        "scheduler_per_task": per_task[0],
        "client_per_task": per_task[1],
        "workers": per_task[2],
        "idle": list(idle),
        "scheduler_per_empty_task": empty[0],
        "clock_per_empty_task": empty[1],
        "cells": cells,
        "chains": args.chains,
        "steps": engine.STEPS,
    }
    print(f"a sweep of a chain: {figures['tasks']:.1f} tasks on {figures['blocks']} blocks;")
    print(f"  {figures['sent'] / 1e3:.1f} kB of tables and {figures['fetched'] / 1e3:.1f} kB of results;")
    print(f"  {state / 1e6:.1f} MB of labels and means every {engine.STEPS} steps")
    print(f"a task: {1e3 * per_task[0]:.2f} ms of the scheduler, {1e3 * per_task[1]:.2f} ms of the client")
    print(f"  and, if it is one of 2,000 that do nothing, {1e3 * empty[0]:.2f} ms of the scheduler")
    print(f"workers: {per_task[2]:.3f} s of processors a sweep")
    print(f"without tasks, left out above, each second: scheduler {1e3 * idle[0]:.1f} ms, all workers {1e3 * idle[1]:.1f} ms")
    print_worked_out(figures)
    return figures


if __name__ == "__main__":
    main()
