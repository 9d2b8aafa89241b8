"""How kernels are compiled, and where they are kept: a folder for each version of their sources.

numba keeps a function's code beside its file and notices changes of that file alone. A kernel holds what it calls from other
files, too, so that after an upgrade old code could be taken for new. Here the folder is named after all sources together.
"""

import gc
import hashlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from numba import njit
from numba.core import caching
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager

HERE = Path(__file__).parent
KEPT = 3  # folders of other versions that stay


@cache
def digest() -> str:
    """Of everything that is compiled: the kernels, the equations and the arrays."""
    sources = [*sorted(HERE.rglob("*.py")), HERE.parent / "model.py", HERE.parent / "state.py"]
    found = hashlib.sha256()
    for source in sources:
        found.update(source.read_bytes())
    return found.hexdigest()[:16]


@cache
def folder() -> str | None:
    """Beside the sources if that can be written, else in the user's folder for such things; None if neither can be."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for place in (HERE / "__pycache__", Path(home) / "bayescase"):
        path = place / f"compiled-{digest()}"
        try:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
        except OSError:
            continue
        forget_others(place, path)
        return str(path)
    return None


def forget_others(place: Path, current: Path) -> None:
    """Delete the folders of old versions, except the newest few, which other processes may be using."""
    others = [path for path in place.glob("compiled-*") if path != current]
    for path in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


class Locator(caching._CacheLocator):
    """Tells numba where to keep the functions of this folder."""

    def __init__(self, py_func, path):
        self.line, self.path = py_func.__code__.co_firstlineno, path

    def get_cache_path(self):
        return folder()

    def get_source_stamp(self):
        return digest()

    def get_disambiguator(self):
        return f"{Path(self.path).parent.name}-{self.line}"

    @classmethod
    def from_function(cls, py_func, py_file):
        known = Path(py_file) == HERE.parent / "model.py" or HERE in Path(py_file).parents
        return cls(py_func, py_file) if known and folder() is not None else None


impl = getattr(caching, "CacheImpl", None) or caching._CacheImpl  # the older name
impl._locator_classes.insert(1, Locator)  # NUMBA_CACHE_DIR, if it is set, comes first


class Unfinished(JITCodeLibrary):
    """The code of a function that only kernels call. It is linked into theirs, and becomes machine code there alone."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0

    @property
    def codegen(self):
        return self

    def set_env(self, env_name, env):
        """There is no loaded module in which it could be set."""


@contextmanager
def uncollected():
    """A compilation makes millions of objects, and leaves few behind for the garbage collector to find."""
    with global_compiler_lock:  # one at a time
        on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if on:
                gc.enable()


# What numba looks for in every function, and no kernel has: closures, array expressions, overloads to inline, object mode
NEEDLESS = {
    "inline_closure_likes",
    "nopython_rewrites",
    "inline_overloads",
    "with_lifting",
    "make_function_op_code_to_jit_function",
}


class Options(Flags):
    """numba's options of a function. They are compared for every call in it: here only those that are not what is usual."""

    HASH = hash(Flags())  # one for all: of the names of options

    def __hash__(self):
        return self.HASH

    def __eq__(self, other):
        return isinstance(other, Flags) and self.chosen() == Options.chosen(other)

    def chosen(self):
        return {name: value for name, value in self._values.items() if value != self.options[name].default}


class Kernel(CompilerBase):
    """numba's compiler for kernels."""

    library = JITCodeLibrary

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        super().__init__(typingctx, targetctx, library, args, return_type, Options(flags), locals)

    def define_pipelines(self):
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        usual, passes = DefaultPassBuilder.define_nopython_pipeline(self.state), PassManager("kernel")
        passes.passes = [each for each in usual.passes if each[0].name() not in NEEDLESS]
        passes.finalize()
        return [passes]

    def compile_extra(self, func):
        with uncollected():
            return super().compile_extra(func)


class Inner(Kernel):
    """And for the functions that only they call."""

    library = Unfinished


# A test for division by zero keeps loops scalar. Arrays are not counted: they are made outside, and live as long as the call.
options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
compiled = njit(cache=True, pipeline_class=Kernel, **options)
inner = njit(no_cpython_wrapper=True, pipeline_class=Inner, **options)  # called by kernels only: half as much to compile
inlined = njit(no_cpython_wrapper=True, pipeline_class=Inner, forceinline=True, **options)  # small, and called for every row
