"""A design as one readable file, hashed and frozen before any answer.

A folder holds `design.json`, pictures in `media`, each named after its hash, and, once frozen, `frozen.json` with the hash of
the design.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from ...explaining.records import build, plain
from ...storage import replacing
from .design import PLACEHOLDER, Design, DesignError
from .design_checks import check

FORMAT, VERSION = "bayescase study", 1
DESIGN, FROZEN, MEDIA = "design.json", "frozen.json", "media"
WIDE = 120


def write_design(design: Design, folder: Path) -> None:
    """Make or replace the design of a folder, unless it is frozen."""
    folder = Path(folder)
    if (folder / FROZEN).exists():
        raise DesignError(f"The design in {folder} is frozen; make a new study in another folder.")
    check(design)
    folder.mkdir(parents=True, exist_ok=True)
    words = readable({"format": FORMAT, "version": VERSION} | brief(design))
    with replacing(folder / DESIGN) as file:
        file.write((words + "\n").encode())


def brief(value: Any) -> Any:
    """As plain JSON, without what is as usual: a set has no pixels."""
    if is_dataclass(value):
        kept = (f for f in fields(value) if f.default is MISSING or getattr(value, f.name) != f.default)
        return {f.name: brief(getattr(value, f.name)) for f in kept}
    return [brief(part) for part in value] if isinstance(value, tuple) else plain(value)


def readable(value, margin="") -> str:
    """JSON in lines as long as a person reads; the numbers of an image stay in one."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    numbers = isinstance(value, list) and all(part is None or isinstance(part, (int, float)) for part in value)
    if not isinstance(value, (dict, list)) or numbers or len(margin) + len(line) <= WIDE:
        return line
    inner, named = margin + "  ", isinstance(value, dict)
    parts = [
        inner + (f"{json.dumps(key, ensure_ascii=False)}: {readable(value[key], inner)}" if named else readable(key, inner))
        for key in value
    ]
    return "\n".join([line[0], ",\n".join(parts), margin + line[-1]])


def read_design(folder: Path) -> Design:
    """The design of a folder, checked; if it is frozen, it is the one that was frozen."""
    path = Path(folder) / DESIGN
    if not path.exists():
        raise DesignError(f"There is no {DESIGN} in {folder}; make one with: bayescase study new MODEL -o {folder}")
    try:
        value = json.loads(path.read_text("utf-8-sig"), parse_constant=not_a_number)
        if not isinstance(value, dict):
            raise DesignError(f"{path} is not a design: it must be what `bayescase study new` writes.")
        if value["format"] != FORMAT or value["version"] != VERSION:
            raise DesignError(f"{path} is not a study of this version of bayescase.")
        design = build(Design, value)
        for name in strangers(value, {"format": FORMAT, "version": VERSION} | plain(design)):
            raise DesignError(f"{path} has an entry {name!r} that a study does not have; is it misspelt?")
    except DesignError:
        raise
    except UnicodeDecodeError:
        raise DesignError(f"{path} is not a text file in UTF-8.") from None
    except KeyError as error:
        raise DesignError(f"{path} is not a whole design: the entry {error} is not there.") from error
    except (ValueError, TypeError) as error:
        raise DesignError(f"{path} is not a whole design ({error}).") from error
    check(design)
    frozen = frozen_hash(folder)
    if frozen is not None and frozen != design.hash:
        raise DesignError(f"{path} was changed after it was frozen: undo the change, or make a new study in another folder.")
    return design


def not_a_number(word):
    raise ValueError(f"{word} is not a number")


def strangers(value, known):
    """Keys of the file that no field has taken; without this, a misspelt one would silently do nothing."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in known:
                yield key
            else:
                yield from strangers(part, known[key])
    elif isinstance(value, list):
        for part, other in zip(value, known, strict=True):
            yield from strangers(part, other)


def frozen_hash(folder: Path) -> str | None:
    path = Path(folder) / FROZEN
    if not path.exists():
        return None
    try:
        return str(json.loads(path.read_text("utf-8"))["hash"])
    except (ValueError, KeyError, TypeError) as error:
        raise DesignError(f"{path} is damaged ({error}).") from error


def freeze(folder: Path, finished: bool = True) -> str:
    """From now on the design cannot be edited. Freezing twice changes nothing.

    `finished`: nothing may be left to fill in; not asked for where a design is only tried out.
    """
    design = read_design(folder)
    if frozen_hash(folder) is None:
        for where in unfinished(design) if finished else ():
            raise DesignError(
                f"Something is still to be filled in: look for {PLACEHOLDER} in {where} of {Path(folder) / DESIGN}."
            )
        for wrong in media_problems(design, Path(folder)):
            raise DesignError(wrong)
        words = json.dumps({"hash": design.hash, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        with replacing(Path(folder) / FROZEN) as file:
            file.write((words + "\n").encode())
    return design.hash


def unfinished(design: Design) -> tuple[str, ...]:
    """Where something is still to be filled in, in all that people may see: "title", "texts.contact", …"""

    def places(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, str) and PLACEHOLDER in value:
            yield path
        elif isinstance(value, dict):
            for key, part in value.items():
                yield from places(part, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for k, part in enumerate(value):
                yield from places(part, f"{path}[{k}]")

    return tuple(places(plain(design), ""))


# --- pictures -------------------------------------------------------------------------------------------------------------


def pictures(design: Design) -> set[str]:
    """Names of the files that are shown."""
    shown = [item.stimulus for item in design.items] + [explanation.stimulus for explanation in design.explanations]
    return {stimulus.file for stimulus in shown if stimulus.kind == "picture"}


def add_picture(path: Path, folder: Path) -> str:
    """Copy a picture into the folder of a study; its name there."""
    content = Path(path).read_bytes()
    name = hashlib.sha256(content).hexdigest() + Path(path).suffix.lower()
    (folder / MEDIA).mkdir(parents=True, exist_ok=True)
    with replacing(folder / MEDIA / name) as file:
        file.write(content)
    return name


def media_problems(design: Design, folder: Path) -> Iterator[str]:
    for name in sorted(pictures(design)):
        path = folder / MEDIA / name
        if not path.is_file():
            yield f"The picture {path} is not there."
        elif hashlib.sha256(path.read_bytes()).hexdigest() != path.stem:
            yield f"The picture {path} was changed: its name is the SHA-256 of another one."


def copy_design(source: Path, folder: Path) -> Design:
    """The design of one folder in another, with its pictures, not frozen."""
    design = read_design(source)
    write_design(design, folder)
    if pictures(design):
        (folder / MEDIA).mkdir(exist_ok=True)
    for name in pictures(design):
        shutil.copyfile(Path(source) / MEDIA / name, folder / MEDIA / name)
    return design
