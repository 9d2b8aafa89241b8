"""Compiled code is kept, and never taken for that of other sources."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.compiler import DefaultPassBuilder, Flags, StateDict

import bayescase.kernels.compiling
from bayescase.kernels.compiling import Options


@pytest.fixture
def package(tmp_path):
    """A small package with the same compiling: `outer` calls `inner`, which is in another file."""
    kernels = tmp_path / "small" / "kernels"
    kernels.mkdir(parents=True)
    for empty in ("__init__.py", "model.py", "state.py", "kernels/__init__.py"):
        (tmp_path / "small" / empty).touch()
    shutil.copy(bayescase.kernels.compiling.__file__, kernels / "compiling.py")
    (kernels / "one.py").write_text("from .compiling import compiled\n\n@compiled\ndef inner():\n    return 1\n")
    (kernels / "two.py").write_text(
        "from .compiling import compiled\nfrom .one import inner\n\n@compiled\ndef outer():\n    return inner()\n"
    )
    return tmp_path


def call(package, **more):
    """(what outer returns, whether it was compiled before)."""
    code = "from small.kernels.two import outer; print(outer(), sum(outer.stats.cache_hits.values()))"
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | more
    done = subprocess.run([sys.executable, "-c", code], cwd=package, env=env, capture_output=True, text=True, check=True)
    result, hits = done.stdout.split()
    return int(result), bool(int(hits))


def folders(package):
    return sorted(path.name for path in (package / "small" / "kernels" / "__pycache__").glob("compiled-*"))


def test_a_change_in_another_file_is_compiled(package):
    assert call(package) == (1, False)
    assert call(package) == (1, True)
    one = package / "small" / "kernels" / "one.py"
    one.write_text(one.read_text().replace("return 1", "return 2"))
    assert call(package) == (2, False)
    assert len(folders(package)) == 2


def test_few_folders_of_other_versions_stay(package):
    one = package / "small" / "kernels" / "one.py"
    for version in range(6):
        one.write_text(f"from .compiling import compiled\n\n@compiled\ndef inner():\n    return {version}\n")
        assert call(package) == (version, False)
    assert len(folders(package)) == 1 + bayescase.kernels.compiling.KEPT


def test_a_folder_that_cannot_be_written_is_not_needed(package):
    """The user's own folder takes its place."""
    cache = package / "small" / "kernels" / "__pycache__"
    cache.write_text("a file is in the way")
    home = {"XDG_CACHE_HOME": str(package / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert call(package, **home) == (1, False)
    assert call(package, **home) == (1, True)
    assert len(list(Path(package / "home" / "bayescase").glob("compiled-*"))) == 1


def test_what_only_kernels_call_has_no_machine_code_of_its_own():
    compiling = bayescase.kernels.compiling

    @compiling.inner
    def twice(x):
        return 2 * x

    @compiling.njit
    def kernel(x):
        return twice(x) + 2

    assert kernel(20) == 42
    (made,) = twice.overloads.values()
    assert isinstance(made.library, compiling.Unfinished)
    assert made.library.get_pointer_to_function(made.fndesc.llvm_func_name) == 0


def test_the_garbage_collector_rests_while_kernels_are_compiled_and_works_again_after():
    compiling, seen = bayescase.kernels.compiling, []

    class Watched(compiling.Kernel):
        def define_pipelines(self):
            seen.append(gc.isenabled())
            return super().define_pipelines()

    twice = compiling.njit(pipeline_class=Watched)(lambda x: 2 * x)
    assert (twice(21), seen, gc.isenabled()) == (42, [False], True)
    gc.disable()
    try:
        assert (twice(0.5), seen, gc.isenabled()) == (1.0, [False, False], False)
    finally:
        gc.enable()


def test_kernels_count_no_references():
    """A count is shared by all threads, and making one for every array of a call takes longer than small tables do."""
    compiling = bayescase.kernels.compiling

    @compiling.inner
    def first(x):
        return x[0]

    @compiling.compiled
    def kernel(x):
        y = x[1:]
        return first(y)

    assert kernel(np.arange(3.0)) == 1.0
    assert "NRT_incref" not in "".join(kernel.inspect_llvm().values())


def test_the_passes_that_kernels_do_without_are_numbas():
    """A new name would quietly bring one back."""
    state = StateDict(flags=Flags(), func_ir=None)
    names = {each[0].name() for each in DefaultPassBuilder.define_nopython_pipeline(state).passes}
    assert names >= bayescase.kernels.compiling.NEEDLESS


def test_options_are_equal_as_numba_has_them():
    plain, other = Flags(), Flags()
    other.nrt = True
    for one in (plain, other):
        for two in (plain, other):
            assert (Options(one) == Options(two)) == (one == two)
            assert (Options(one) == two) == (one == two)
        assert hash(Options(one)) == hash(one)
    explicit = Options(plain)
    explicit.nrt = plain.nrt
    assert explicit == Options(plain)
