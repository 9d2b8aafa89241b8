"""A GPU as this package sees it: memory, kernels compiled from the .cu files here, launches. CuPy, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import Advice, ParameterError, Setting
from ..cpu.lanes_math import EXP

ROWS = ("cells.cu", "single.cu", "several.cu")  # one after the other these and one more are one text
SWEEPING, FOLDING = (*ROWS, "sweep.cu"), (*ROWS, "fold.cu")
THREADS = 256  # of a block, as the kernels are bound to
INSTALL = "pip install 'bayescase[cuda13]', or 'bayescase[cuda12]' with a driver older than 580"
OPTIONS = ("--std=c++17", "--fmad=false")
FULL = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")  # in the words of the runtime and of the driver


class Machine(Protocol):
    """Where arrays lie and kernels run."""

    name: str  # as the user's `device`
    xp: Any  # NumPy, or a module like it whose arrays lie there
    shared: int  # bytes of shared memory that a block may have
    most_blocks: int  # of any launch

    def use(self) -> None:
        """Let this thread make its arrays there."""

    def compile(self, text: str) -> Callable[..., None]:
        """launch(name, threads, shared, *args): run a kernel of the text on at least so many threads, if there are as many."""

    def pinned(self, n: int) -> np.ndarray:
        """Bytes in this computer's memory that are fast to send."""

    def send(self, host: np.ndarray, there: Any) -> None:
        """Copy an array there. The host's may be changed once the next `fetch` is back."""

    def fetch(self, there: Any, host: np.ndarray) -> None:
        """Copy an array here, and wait for it."""

    def ask(self, there: Any, host: np.ndarray) -> None:
        """Begin to copy an array here, into memory that is `pinned`."""

    def wait(self) -> None:
        """Until this thread's copies and kernels are done."""

    def lend(self, host: np.ndarray) -> Any:
        """A copy of an array there, until it is dropped."""

    def park(self, there: Any) -> np.ndarray:
        """A copy of an array here, where it is fast to send."""

    def stream(self, number: int) -> AbstractContextManager[Any]:
        """Let this thread's copies and kernels run beside those of other numbers; at the end they are done."""

    def free_bytes(self) -> int:
        """Memory that can be had."""


class Cuda:
    """A GPU, by CuPy."""

    def __init__(self, name: str):
        try:
            import cupy
        except ImportError as error:
            raise ParameterError(
                "{parameter} needs CuPy: {install}.", parameter=Setting("device", name), install=INSTALL
            ) from error
        number = int(name.partition(":")[2] or 0)
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise ParameterError(
                "{parameter} found no NVIDIA driver that CuPy can use ({why}); check `nvidia-smi`, or install CuPy for it: "
                "{install}.",
                parameter=Setting("device", name),
                why=str(error).split(":")[0],
                install=INSTALL,
            ) from error
        if number >= count:
            raise ParameterError(
                "{parameter}: there {are} here, counted from 0.",
                parameter=Setting("device", name),
                are=f"is {count} GPU" if count == 1 else f"are {count} GPUs",
            )
        self.xp, self.cupy, self.name = cupy, cupy, name
        self.device, self.streams = cupy.cuda.Device(number), dict[int, Any]()
        with lost_memory():
            self.device.use()
        attributes = self.device.attributes
        self.n_sm = int(attributes["MultiProcessorCount"])
        self.shared = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self.per_sm = int(attributes["MaxSharedMemoryPerMultiprocessor"])
        self.registers = int(attributes["MaxRegistersPerMultiprocessor"])
        self.most_blocks = self.n_sm * (2048 // THREADS)

    def use(self) -> None:
        self.device.use()

    def compile(self, text: str) -> Callable[..., None]:
        module = self.cupy.RawModule(code=text, options=OPTIONS)
        kernels: dict[tuple[str, int], tuple[Any, int]] = {}

        def launch(name: str, threads: int, shared: int, *args: Any) -> None:
            if (name, shared) not in kernels:
                kernels[name, shared] = self.ready(module.get_function(name), shared)
            kernel, at_once = kernels[name, shared]
            self.use()
            blocks = max(1, min(-(-threads // THREADS), at_once))
            kernel((blocks,), (THREADS,), args, shared_mem=shared)

        return launch

    def ready(self, kernel: Any, shared: int) -> tuple[Any, int]:
        """(kernel, blocks of it that run at a time)."""
        if shared > 48 << 10:
            kernel.max_dynamic_shared_size_bytes = shared
        by_registers = self.registers // (-(-max(kernel.num_regs, 1) // 8) * 8 * THREADS)
        by_memory = self.per_sm // (shared + 1024)
        return kernel, self.n_sm * max(1, min(2048 // THREADS, by_registers, by_memory))

    def pinned(self, n: int) -> np.ndarray:
        memory = self.cupy.cuda.alloc_pinned_memory(max(n, 1))
        return np.frombuffer(memory, dtype=np.uint8, count=n)

    def send(self, host: np.ndarray, there: Any) -> None:
        self.use()
        there.set(host)

    def fetch(self, there: Any, host: np.ndarray) -> None:
        self.use()
        there.get(out=host)

    def ask(self, there: Any, host: np.ndarray) -> None:
        there.get(out=host, blocking=False)

    def wait(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def lend(self, host: np.ndarray) -> Any:
        self.use()
        try:
            there = self.cupy.empty(host.shape, dtype=host.dtype)
        except self.cupy.cuda.memory.OutOfMemoryError:  # the pool may hold what another stream has given back
            self.cupy.get_default_memory_pool().free_all_blocks()
            there = self.cupy.empty(host.shape, dtype=host.dtype)
        there.set(host)
        return there

    def park(self, there: Any) -> np.ndarray:
        here = self.pinned(there.nbytes).view(there.dtype).reshape(there.shape)
        self.fetch(there, here)
        return here

    @contextmanager
    def stream(self, number: int) -> Iterator[None]:
        self.use()
        if number not in self.streams:  # the pool keeps memory for each: there should be few
            self.streams[number] = self.cupy.cuda.Stream()
        with self.streams[number] as own:
            yield
            own.synchronize()

    def free_bytes(self) -> int:
        pool = self.cupy.get_default_memory_pool()
        free = self.cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        limit = pool.get_limit()
        return int(min(free, limit - pool.used_bytes()) if limit else free)


@contextmanager
def lost_memory(*ways: Advice) -> Iterator[None]:
    """Say in a sentence that a GPU has no memory left. Other processes take some, too, at any time."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError" and not str(error).startswith(FULL):
            raise
        raise ParameterError(
            "The GPU has no memory left ({why}).",
            *ways,
            Advice("use {}", Setting("device", "cpu")),
            parameter="device",
            why=str(error).partition(" (")[0],
        ) from error


def is_there() -> bool:
    """Is there a GPU, and a CuPy for it?"""
    try:
        Cuda("cuda")
    except ParameterError:
        return False
    return True


class Bundle:
    """Small arrays side by side here and there, so that one copy sends or fetches them all."""

    def __init__(self, machine: Machine, arrays: Mapping[str, tuple[Any, Any]]):
        """arrays: name → (shape, dtype)."""
        self.machine = machine
        places, end = {}, 0
        for name, (shape, dtype) in arrays.items():
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            places[name] = (end, size, shape, dtype)
            end += -(-size // 16) * 16
        self.here_bytes, self.there_bytes = machine.pinned(end), machine.xp.zeros(end, dtype=np.uint8)

        def view(memory: Any, at: int, size: int, shape: Any, dtype: Any) -> Any:
            return memory[at : at + size].view(dtype).reshape(shape)

        self.here = {name: view(self.here_bytes, *place) for name, place in places.items()}
        self.flat = {name: array.reshape(-1) for name, array in self.here.items()}
        self.there = {name: view(self.there_bytes, *place) for name, place in places.items()}

    def send(self, **arrays: np.ndarray) -> None:
        for name, values in arrays.items():
            np.copyto(self.flat[name], values.reshape(-1), casting="same_kind")
        self.machine.send(self.here_bytes, self.there_bytes)

    def fetch(self) -> dict[str, np.ndarray]:
        """Views that the next call of this method overwrites."""
        self.ask()
        return self.wait()

    def ask(self, clear: bool = False) -> None:
        """Begin to fetch them, and then clear them there."""
        self.machine.ask(self.there_bytes, self.here_bytes)
        if clear:
            self.there_bytes.fill(0)

    def wait(self) -> dict[str, np.ndarray]:
        """What was asked for: views that the next time overwrites."""
        self.machine.wait()
        return self.here

    def clear(self) -> None:
        self.machine.use()
        self.there_bytes.fill(0)


class Kind(NamedTuple):
    """What the kernels are compiled for."""

    S: int
    lanes: int
    stride: int  # of a table in shared memory: sixteen bytes times an odd number, so that rows lie in different banks
    ragged: bool
    gaps: bool
    code_bits: int
    label: str
    shared_table: bool
    shared_leave: bool
    shared_counts: bool
    shared_pairs: bool
    shared_rows: bool

    def text(self, sources: Sequence[str]) -> str:
        """The text of the kernels with its constants."""
        exp = ", ".join(f"{float(np.float32(c)).hex()}f" for c in EXP)
        lines = [f"#define {name.upper()} {int(v) if isinstance(v, bool) else v}" for name, v in self._asdict().items()]
        texts = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in sources]
        return "\n".join([*lines, f"#define EXP {{{exp}}}", *texts])
