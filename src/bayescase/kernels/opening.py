"""Which engine a run gets, and where new cases are folded in. Nothing outside `kernels` knows one engine from another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Advice, ParameterError, Setting
from ..reading.cache import Cached
from ..state import Codebook, Codes, Data
from ..storage import Mapped
from .cluster.engine import ClusterEngine
from .cluster.gpu import refusal
from .contract import Engine
from .cpu.engine import CpuEngine
from .cpu.newcases import Given, fold_here
from .cuda.engine import CudaEngine, least_bytes
from .cuda.machine import Cuda, is_there, lost_memory
from .cuda.newcases import fold_there
from .disk.engine import DiskEngine

SMALL = 1 << 20  # cells: below, a fit is over on the CPU before kernels are compiled for a GPU
FEW_NEW = 1 << 18  # cells of new cases, likewise


def check_device(device: Any, sampler: str) -> None:
    """Raise unless `device` names one, and the sampler runs there."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|auto|cuda(:\d+)?", device):
        raise ParameterError(
            "{parameter} must be 'cpu', 'cuda', 'cuda:1' (the second GPU) or 'auto', not {value!r}.",
            parameter="device",
            value=device,
        )
    if sampler != "rows" and device.startswith("cuda"):
        raise ParameterError(
            "The sampler {sampler!r} moves one cell at a time, which {parameter} cannot do.",
            Advice("use {}", Setting("sampler", "rows")),
            Advice("use {}", Setting("device", "cpu")),
            parameter=Setting("device", device),
            sampler=sampler,
        )


def check_devices(client: Any, device: str) -> None:
    """Raise unless every worker has the GPU that is asked for."""
    if device.startswith("cuda"):
        for worker, why in client.run(refusal, device).items():
            if why is not None:
                raise ParameterError("Worker {worker} has no GPU to use: {why}", worker=worker, why=why)


def open_engine(data: Data, S: int, n_chains: int, n_jobs: int, device: str = "cpu", sampler: str = "rows") -> Engine:
    """The engine of a run in memory. "auto" is a GPU if there is one, and the table is large and fits."""
    check_device(device, sampler)
    if device == "auto":
        large = sampler == "rows" and len(data.cells.codes) >= SMALL
        fits = large and is_there() and least_bytes(data, S, n_chains) <= Cuda("cuda").free_bytes()  # whole or in blocks
        device = "cuda" if fits else "cpu"
    if device == "cpu":
        return CpuEngine(data, S, n_chains, n_jobs)
    return CudaEngine(data, S, n_chains, n_jobs, Cuda(device))


def open_stored(
    cached: Cached,
    data: Data,
    log_weight: np.ndarray | Mapped,
    folder: Path,
    S: int,
    n_chains: int,
    n_jobs: int,
    client: Any = None,
    device: str = "cpu",
) -> Engine:
    """The engine of a run whose cases stay in files: on this machine, or on the cluster of a Dask client.

    data: a sample of the cases; log_weight: of all of them; folder: for labels and memberships; device: of the workers.
    """
    if client is None:
        return DiskEngine(cached, data, log_weight, folder, S, n_jobs)
    return ClusterEngine(client, cached, data, log_weight, folder, S, n_chains, device)


def fold_cases(
    cases: Codes, book: Codebook, given: Sequence[Given], seed: np.uint64, n_jobs: int = 1, device: str = "cpu"
) -> np.ndarray:
    """(N, S) Memberships of new cases, summed over the tables of φ; on a GPU if there are many cases."""
    few = len(cases.cells.codes) < FEW_NEW
    if device == "cpu" or few or (device == "auto" and not is_there()):
        return fold_here(cases, book, given, seed, n_jobs)
    with lost_memory(Advice("try again later")):
        return fold_there(Cuda("cuda" if device == "auto" else device), cases, book, given, seed)
