"""The equations compiled, and the engines that run them. The rest of the package uses what is named here and nothing else.

`contract` says what an engine must offer; the CPU is one, a GPU another. `Driver` and `sweeps` move a chain.
"""

from .cluster.engine import ClusterEngine, check_devices
from .contract import Best, Candidates, Counts, Engine, Moved, Rows
from .cpu.engine import CpuCandidates, CpuEngine, CpuRows, make_block
from .cpu.means import copied
from .cpu.moves import Sides, Units, collect, fill_rough, split
from .cpu.newcases import PARTICLES, fold_in, log_probability, make_fold, row_hashes
from .cpu.profiles import best_profile, row_means, value_counts
from .cpu.threads import Threads, threads_for
from .disk.engine import DiskEngine
from .driver import Driver, sweeps
from .evidence import ClusterEvidence
from .opening import check_device, fold_cases, open_engine
from .rng import stream

__all__ = [
    "PARTICLES",
    "Best",
    "Candidates",
    "ClusterEngine",
    "ClusterEvidence",
    "Counts",
    "CpuCandidates",
    "CpuEngine",
    "CpuRows",
    "DiskEngine",
    "Driver",
    "Engine",
    "Moved",
    "Rows",
    "Sides",
    "Threads",
    "Units",
    "best_profile",
    "check_device",
    "check_devices",
    "collect",
    "copied",
    "fill_rough",
    "fold_cases",
    "fold_in",
    "log_probability",
    "make_block",
    "make_fold",
    "open_engine",
    "row_hashes",
    "row_means",
    "split",
    "stream",
    "sweeps",
    "threads_for",
    "value_counts",
]
