"""The equations compiled, and the engines that run them. The rest of the package uses what is named here and nothing else.

`contract` says what an engine must offer, `open_engine` and `open_stored` choose one. `Driver` and `sweeps` move a chain.
"""

from .contract import Best, Candidates, Counts, Engine, Moved, Rows
from .cpu.jumps import MOST as MOST_MIXED
from .cpu.jumps import Parts, Prior, change, differences, gather, make_bench, settle
from .cpu.means import copied
from .cpu.moves import Sides, Units, collect, fill_rough, split
from .cpu.newcases import Given, fold_by_table, row_hashes, score_cases
from .cpu.profiles import apart, best_profile, row_means, value_counts
from .cpu.threads import Threads, threads_for
from .cuda.machine import lost_memory
from .driver import Driver, sweeps
from .evidence import ClusterEvidence
from .opening import check_device, check_devices, fold_cases, open_engine, open_stored
from .rng import stream

__all__ = [
    "MOST_MIXED",
    "Best",
    "Candidates",
    "ClusterEvidence",
    "Counts",
    "Driver",
    "Engine",
    "Given",
    "Moved",
    "Parts",
    "Prior",
    "Rows",
    "Sides",
    "Threads",
    "Units",
    "apart",
    "best_profile",
    "change",
    "check_device",
    "check_devices",
    "collect",
    "copied",
    "differences",
    "fill_rough",
    "fold_by_table",
    "fold_cases",
    "gather",
    "lost_memory",
    "make_bench",
    "open_engine",
    "open_stored",
    "row_hashes",
    "row_means",
    "score_cases",
    "settle",
    "split",
    "stream",
    "sweeps",
    "threads_for",
    "value_counts",
]
