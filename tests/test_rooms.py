"""The import law: a room uses only itself and the rooms before it, without cycles, and nothing grows too long.

Imports inside functions count, too, and those for type checkers. docs/architecture.md says what the rooms are for.
"""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import bayescase
from bayescase import kernels

SOURCE = Path(__file__).parents[1] / "src/bayescase"
ROOMS = (
    *("errors", "parallel", "state", "model", "storage", "lda", "reading", "kernels", "sampling", "fitted", "predicting"),
    *("parameters", "explaining", "datasets", "estimator", "classifier", "selection", "web", "study", "experiments", "cli"),
)
FRONT = ("__init__.py", "__main__.py")  # of the package: they open every room, and belong to none
LONGEST_FILE, LONGEST_FUNCTION = 500, 60
EXCUSE = "Long because "  # in the docstring of a module that is a long file; no function is excused

# What is not yet so, with the reason. An entry that is not needed any more fails, too.
FORWARD: dict[str, str] = {}
CYCLES: dict[str, str] = {}
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}
BY_NAME = {"cli/study_people.py": "looks for packages of others, which are not installed with ours"}


class Import(NamedTuple):
    file: str  # that imports
    target: str  # file that is imported


@cache
def files():
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def room_of(file):
    return file.split("/")[0].removesuffix(".py")


def file_of(parts):
    """The file of a module of the package, given as its names; None if there is none."""
    return next((file for file in ("/".join(parts) + ".py", "/".join([*parts, "__init__.py"])) if file in files()), None)


def targets(node, package):
    """The files that an import asks for; `package` are the names of the package that the file lies in."""
    if isinstance(node, ast.Import):
        found = [alias.name.split(".")[1:] for alias in node.names if alias.name.split(".")[0] == "bayescase"]
    elif isinstance(node, ast.ImportFrom):
        if node.level == 0 and (node.module or "").split(".")[0] != "bayescase":
            return []
        base = list(package[: len(package) - node.level + 1]) if node.level else []
        base += (node.module or "").split(".")[0 if node.level else 1 :] if node.module else []
        # `from .room import name`: the module `name`, or else something in the room
        found = [[*base, alias.name] if file_of([*base, alias.name]) else base for alias in node.names]
    else:
        return []
    return [file for parts in found if (file := file_of(parts))]


@cache
def imports():
    """All of them, in all files of the package but its front."""
    found = set()
    for file, tree in files().items():
        if file in FRONT:
            continue
        for node in ast.walk(tree):
            for target in targets(node, Path(file).parent.parts):
                found.add(Import(file, target))
    return sorted(found)


def breaches(found, known):
    """What is breached and not known, and what is known and not breached any more."""
    new = [f"new: {one}" for one in sorted(set(found) - set(known))]
    return new + [f"mended, so take it off the list: {one}" for one in sorted(set(known) - set(found))]


def test_every_file_is_in_a_room_and_every_room_in_the_reading_order():
    assert {room_of(file) for file in files() if file not in FRONT} == set(ROOMS)
    assert tuple(re.findall(r"^    (\w+) ", bayescase.__doc__, re.M)) == ROOMS


def test_the_imports_are_found():
    """Else the law holds for nothing."""
    assert len(imports()) > 300
    tree = ast.parse(
        "def f():\n    from ..kernels import Driver\n    from . import plan\n    import bayescase.reading.tables\n"
    )
    found = [target for node in ast.walk(tree) for target in targets(node, ("sampling",))]
    assert found == ["kernels/__init__.py", "sampling/plan.py", "reading/tables.py"]
    assert targets(ast.parse("from . import __version__").body[0], ()) == ["__init__.py"]
    assert targets(ast.parse("from .cpu.engine import CpuRows").body[0], ("kernels",)) == ["kernels/cpu/engine.py"]


def test_a_room_uses_only_the_rooms_before_it():
    order = {room: i for i, room in enumerate(ROOMS)}
    forward = [
        f"{one.file} → {one.target}"
        for one in imports()
        if one.target not in FRONT and order[room_of(one.target)] > order[room_of(one.file)]
    ]
    assert not breaches(forward, FORWARD)


def test_of_the_front_a_room_uses_the_version_alone():
    for file in {one.file for one in imports() if one.target == "__init__.py"}:
        for node in ast.walk(files()[file]):
            if "__init__.py" in targets(node, Path(file).parent.parts):
                assert {alias.name for alias in node.names if not file_of([alias.name])} == {"__version__"}, file


def test_no_module_is_imported_by_a_computed_name():
    """The law could not see it."""
    found = []
    for file, tree in files().items():
        called = {ast.unparse(node.func).split(".")[-1] for node in ast.walk(tree) if isinstance(node, ast.Call)}
        if file not in FRONT and called & {"import_module", "__import__"}:
            found.append(file)
    assert not breaches(found, BY_NAME)


def cycle_in(room):
    """Files of a room that import each other, in a circle; None if there are none."""
    graph: dict[str, set[str]] = {file: set() for file in files() if room_of(file) == room}
    for one in imports():
        if one.file in graph and one.target in graph and one.file != one.target:
            graph[one.file].add(one.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(reversed(error.args[1]))
    return None


def test_no_two_files_of_a_room_need_each_other():
    found = {room: cycle for room in ROOMS if (cycle := cycle_in(room))}
    assert not breaches(found, CYCLES), found


def test_kernels_have_one_door():
    """Engines are exchanged behind it."""
    inside = [one for one in imports() if room_of(one.target) == "kernels" != room_of(one.file)]
    assert inside
    assert {one.target for one in inside} == {"kernels/__init__.py"}


def test_the_door_of_the_kernels_names_no_engine():
    """Whoever needs one asks `open_engine` or `open_stored`, and is not told which it is."""
    engines = [file for file in files() if re.fullmatch(r"kernels/\w+/engine\.py", file)]
    assert len(engines) == 4
    inside = {node.name for file in engines for node in files()[file].body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {"CpuEngine", "CudaEngine", "DiskEngine", "ClusterEngine", "CpuRows"} < inside
    assert not inside & set(kernels.__all__)


def length(node):
    """Lines of a function, without those of its docstring: everything public has a whole one."""
    documentation = node.body[0] if ast.get_docstring(node) is not None else None
    said = 0 if documentation is None else documentation.end_lineno - documentation.lineno + 1
    return node.end_lineno - node.lineno + 1 - said


def is_excused(tree):
    return EXCUSE in (ast.get_docstring(tree) or "")


def test_no_file_is_too_long():
    long = [
        file
        for file, tree in files().items()
        if not is_excused(tree) and len((SOURCE / file).read_text("utf-8").splitlines()) > LONGEST_FILE
    ]
    assert not breaches(long, LONG_FILES)


def test_no_function_is_too_long():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{file}: {node.name}"
        for file, tree in files().items()
        for node in ast.walk(tree)
        if isinstance(node, kinds) and length(node) > LONGEST_FUNCTION
    ]
    assert not breaches(long, LONG_FUNCTIONS)
