"""Compiled code is kept, and never taken for that of other sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bayescase.kernels.compiling


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
