"""Which engine a run gets: the CPU's, or that of a GPU."""

from __future__ import annotations

import re
from typing import Any

from ..errors import Advice, ParameterError, Setting
from ..state import Data
from .contract import Engine
from .cpu.engine import CpuEngine
from .cuda.engine import CudaEngine, fits
from .cuda.machine import Cuda, is_there

SMALL = 1 << 22  # cells: below, the CPU has made a sweep before a GPU has got its tables


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


def open_engine(data: Data, S: int, n_chains: int, n_jobs: int, device: str = "cpu", sampler: str = "rows") -> Engine:
    """The engine of a run. "auto": a GPU if there is one and the table is large, and fits."""
    check_device(device, sampler)
    if device == "auto":
        large = sampler == "rows" and len(data.cells.codes) >= SMALL
        device = "cuda" if large and is_there() and fits(Cuda("cuda"), data, S, n_chains) else "cpu"
    if device == "cpu":
        return CpuEngine(data, S, n_chains, n_jobs)
    return CudaEngine(data, S, n_chains, n_jobs, Cuda(device))
