"""This computer in the place of a GPU: the text of the kernels, compiled by a C++ compiler as a program of one thread."""

import contextlib
import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++") or shutil.which("clang++")
FLAGS = ("-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-x", "c++")
FOLDER = Path(tempfile.gettempdir()) / "bayescase-host-kernels"


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


class HostMachine:
    """As `kernels.cuda.machine.Cuda`, without a GPU."""

    name, xp, most_blocks = "cpu", np, 1

    def __init__(self, shared=227 << 10, free=1 << 40, edit=lambda text: text):
        self.shared, self.free, self.edit = shared, free, edit
        self.full = False  # has another process taken what was free?

    def use(self):
        if self.full:
            raise OutOfMemoryError("Out of memory allocating 33,554,432 bytes (allocated so far: 1,024 bytes).")

    def compile(self, text):
        text = self.edit(text)
        FOLDER.mkdir(exist_ok=True)
        library = FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
        if not library.exists():
            source = library.with_suffix(".cpp")
            source.write_text(text, encoding="utf-8")
            made = library.with_suffix(f".{id(self)}")
            subprocess.run([COMPILER, *FLAGS, str(source), "-o", str(made)], check=True)
            made.rename(library)
        functions = ctypes.CDLL(str(library))

        def launch(name, threads, shared, *args):
            self.use()
            getattr(functions, name)(*map(as_c, args))

        return launch

    def pinned(self, n):
        return np.zeros(n + 16, dtype=np.uint8)[:n]

    def send(self, host, there):
        there[...] = host

    def fetch(self, there, host):
        host[...] = there

    ask = fetch

    def wait(self):
        pass

    def lend(self, host):
        self.use()
        return host.copy()

    def park(self, there):
        return there.copy()

    def stream(self, number):
        return contextlib.nullcontext()

    def free_bytes(self):
        return self.free


def as_c(value):
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    kinds = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float64": ctypes.c_double}
    return kinds[value.dtype.name](value.item())
