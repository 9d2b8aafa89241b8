"""A design as one readable file, hashed and frozen before any answer.

A folder holds `design.json` and, once frozen, `frozen.json` with its hash.
"""

import json
import time
from pathlib import Path

from ...explaining.records import build, plain
from ...storage import replacing
from .design import PLACEHOLDER, Design, DesignError
from .design_checks import check

FORMAT, VERSION = "bayescase study", 1
DESIGN, FROZEN = "design.json", "frozen.json"
WIDE = 120


def write_design(design: Design, folder: Path) -> None:
    """Make or replace the design of a folder, unless it is frozen."""
    folder = Path(folder)
    if (folder / FROZEN).exists():
        raise DesignError(f"The design in {folder} is frozen; make a new study in another folder.")
    check(design)
    folder.mkdir(parents=True, exist_ok=True)
    words = readable({"format": FORMAT, "version": VERSION} | plain(design))
    with replacing(folder / DESIGN) as file:
        file.write((words + "\n").encode())


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


def freeze(folder: Path) -> str:
    """From now on the design cannot be edited. Freezing twice changes nothing."""
    design = read_design(folder)
    if frozen_hash(folder) is None:
        words = json.dumps({"hash": design.hash, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        with replacing(Path(folder) / FROZEN) as file:
            file.write((words + "\n").encode())
    return design.hash


def unfinished(design: Design) -> tuple[str, ...]:
    """Names of the texts in which something is still to be filled in."""
    return tuple(name for name, text in plain(design.texts).items() if PLACEHOLDER in text)
