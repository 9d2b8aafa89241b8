"""The second copy: what was kept, as JSON lines that are only added to, on disk before the person sees the next page.

A file per server process in `FOLDER/journal`. Every line has the hash of the one before, so a line that was changed, lost
or put in by accident is noticed:

    digest = SHA-256(record), hash = SHA-256(previous hash + digest)

Whoever can write to the folder can also write all of it anew, with the database. Against that a head helps that is kept
elsewhere: the name of a file, a number of lines and the hash of the last one. Every file begins with the heads of those that
were there before, so the newest head vouches for all that is older.

When a person withdraws, their records are blanked and the digests stay, so the chain still holds; a random salt in each
record keeps a digest from telling what it was. The last line of a process that was killed may be torn; the next start adds
the row again.
"""

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from .tables import answers, events, participants, responses

FOLDER, START = "journal", "0" * 64
HEADS = "heads"  # a record of the files that were there before
KEPT = {  # what is compared: columns that never change
    "participants": ("public_id", "phase", "simulated", "first_slot", "consented_at"),
    "answers": tuple(c.name for c in answers.c if c.name not in ("id", "participant_id")),
    "responses": tuple(c.name for c in responses.c if c.name not in ("id", "participant_id")),
    "events": tuple(c.name for c in events.c if c.name != "participant_id"),
}
NAMES = {  # what a row is known by, besides the person
    "participants": (),
    "answers": ("round", "trial"),
    "responses": ("round", "kind", "ref"),
    "events": ("id",),
}
TABLES = {"participants": participants, "answers": answers, "responses": responses, "events": events}


class Line(NamedTuple):
    path: Path
    number: int  # from 1
    at: int  # where the record begins in the file
    end: int
    record: dict[str, Any] | None  # None: blanked, or damaged
    problem: str | None


class Journal:
    """The file of this process, made with the first record."""

    def __init__(self, folder: Path, name: str):
        self.folder = Path(folder) / FOLDER
        self.path = self.folder / f"{name}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._file: int | None = None
        self._last, self._size, self.lines = START, 0, 0
        self._written = self._synced = 0
        self._gone: set[str] = set()  # people who withdrew
        self._lock, self._sync = threading.Lock(), threading.Lock()

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Add records; they are on disk when this returns. After an error nothing was added."""
        records = list(records)
        if not records:
            return
        with self._lock:
            file = self._open()
            self._add(records)
            self._written += 1
            mine = self._written
        with self._sync:  # whoever waited here is on disk already
            if self._synced < mine:
                upto = self._written
                os.fsync(file)
                self._synced = upto

    def redact(self, people: Iterable[str]) -> int:
        """Blank every record of these people, in the files of all processes; the number of records."""
        people = set(people)
        with self._lock:
            self._gone |= people
        if not people:
            return 0
        blanked = 0
        for path in files(self.folder.parent):
            with open(path, "r+b") as file:
                for line in lines(path):
                    if line.record is not None and line.record.get("participant") in people:
                        file.seek(line.at)
                        file.write(b"null".ljust(line.end - line.at))
                        blanked += 1
                file.flush()
                os.fsync(file.fileno())
        return blanked

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        if self._file is None:
            self.folder.mkdir(0o700, exist_ok=True)
            before = {path.name: list(head) for path in files(self.folder.parent) if (head := tip(path)) is not None}
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            for folder in (self.folder, self.folder.parent):  # the names of new files are on disk too
                handle = os.open(folder, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
            if before:
                try:
                    self._add([{"table": HEADS, "participant": None, "recovered": False, "row": before}])
                except OSError:
                    self.close()
                    self.path.unlink()
                    raise
        return self._file

    def _add(self, records: list[dict[str, Any]]) -> None:
        """Write lines to the open file; after an error nothing was added."""
        assert self._file is not None
        last, parts = self._last, []
        for record in records:
            text = json.dumps(record | {"salt": secrets.token_hex(8)}, ensure_ascii=False, separators=(",", ":"))
            digest = hashed(text)
            before, last = last, hashed(last + digest)
            text = "null" if record.get("participant") in self._gone else text
            parts.append(f'{{"previous":"{before}","digest":"{digest}","hash":"{last}","record":{text}}}\n')
        words = "".join(parts).encode()
        try:
            write_all(self._file, words)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._last, self._size, self.lines = last, self._size + len(words), self.lines + len(records)

    @property
    def head(self) -> str | None:
        """To be kept elsewhere."""
        return None if self._file is None else f"{self.path.name}:{self.lines}:{self._last}"


def write_all(file, words: bytes) -> None:
    while words:
        words = words[os.write(file, words) :]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- reading --------------------------------------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    return sorted((Path(folder) / FOLDER).glob("*.jsonl"))


def lines(path: Path) -> Iterator[Line]:
    """The whole lines of a file, with what is wrong with them; a torn last line is left out."""
    last, offset = START, 0
    for number, raw in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not raw.endswith(b"\n"):
            return
        at = offset + raw.find(b'"record":') + len('"record":')
        end = offset + len(raw) - 2
        record, problem = None, None
        try:
            line = json.loads(raw)
            text = raw[at - offset : end - offset].decode()
            record = line["record"]
            if line["previous"] != last or line["hash"] != hashed(last + line["digest"]):
                problem = "does not follow the line before it"
            elif record is not None and hashed(text) != line["digest"]:
                problem = "was changed"
            last = line["hash"]
        except (ValueError, KeyError, TypeError):
            problem = "is not a whole line"
        yield Line(path, number, at, end, None if problem else record, problem)
        offset += len(raw)


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """Every record: table, participant (public id or None), recovered, row, salt. Blanked and damaged lines are left out."""
    found = (line.record for path in files(folder) for line in lines(path))
    return [record for record in found if record is not None and record["table"] != HEADS]


def problems(folder: Path) -> list[str]:
    """What is wrong with the files themselves, one sentence each."""
    every = [line for path in files(folder) for line in lines(path)]
    found = [f"Line {line.number} of {line.path.name} {line.problem}." for line in every if line.problem]
    named = [line.record for line in every if line.record is not None and line.record["table"] == HEADS]
    for record in named:
        for name, (number, of) in record["row"].items():
            found += head_problems(folder, f"{name}:{number}:{of}")
    return found


def tip(path: Path) -> tuple[int, str] | None:
    """(lines, hash of the last one) of a file; None if it has no whole line."""
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines()
    if not whole:
        return None
    try:
        return len(whole), str(json.loads(whole[-1])["hash"])
    except (ValueError, KeyError, TypeError):
        return len(whole), "damaged"


def heads(folder: Path) -> list[str]:
    """The heads of all files, the newest last; those that a later file names are left out."""
    named = {
        (name, *head)
        for path in files(folder)
        for line in lines(path)
        if line.record is not None and line.record["table"] == HEADS
        for name, head in line.record["row"].items()
    }
    tips = [(path.name, *head) for path in files(folder) if (head := tip(path)) is not None]
    return [f"{name}:{number}:{of}" for name, number, of in tips if (name, number, of) not in named]


def head_problems(folder: Path, head: str) -> list[str]:
    """Whether the journal still has, and goes on from, a head that was kept elsewhere."""
    name, _, rest = head.strip().rpartition(":")[0].rpartition(":")
    of = head.strip().rpartition(":")[2]
    if not name or not rest.isdigit():
        return [f"{head!r} is not a head of a journal; it must be NAME:LINES:HASH."]
    path = Path(folder) / FOLDER / Path(name).name
    if not path.is_file():
        return [f"The journal had a file {name}, which is not there any more."]
    raw = path.read_bytes().splitlines()
    try:
        now = json.loads(raw[int(rest) - 1])["hash"]
    except (IndexError, ValueError, KeyError, TypeError):
        return [f"The journal had {rest} lines in {name}, and has fewer, or others, now."]
    return [] if now == of else [f"The journal was written anew: line {rest} of {name} had another hash."]


# --- against the database -------------------------------------------------------------------------------------------------


def record_of(table: str, participant: str | None, row: dict[str, Any], recovered: bool = False) -> dict[str, Any]:
    kept = {name: row[name] for name in KEPT[table]}
    return {"table": table, "participant": participant, "recovered": recovered, "row": kept}


def name_of(record: dict[str, Any]) -> tuple:
    return (record["table"], record["participant"], *(record["row"][part] for part in NAMES[record["table"]]))


def stored(database: Connection) -> dict[tuple, dict[str, Any]]:
    """The rows of the database as they should be in the journal, by name. People who withdrew are in neither."""
    people = {row.id: row for row in database.execute(select(participants)) if row.status != "withdrawn"}
    found = []
    for name, table in TABLES.items():
        for row in database.execute(select(table).order_by(table.c.id)).mappings():
            whose = row["id"] if name == "participants" else row["participant_id"]
            if whose is None or whose in people:
                found.append(record_of(name, None if whose is None else people[whose].public_id, dict(row)))
    return {name_of(record): record for record in found}


def compare(database: Connection, folder: Path) -> list[str]:
    """How the two copies differ, one sentence each; nothing, if all is well."""
    differences = problems(folder)
    rows = stored(database)
    seen = set()
    for record in read_journal(folder):
        name = name_of(record)
        seen.add(name)
        if name not in rows:
            differences.append(f"The journal has {told(name)}, the database does not.")
        elif rows[name]["row"] != record["row"]:
            first = next(key for key, value in record["row"].items() if rows[name]["row"].get(key) != value)
            differences.append(f"The database and the journal differ in {first!r} of {told(name)}.")
    differences += [f"The database has {told(name)}, the journal does not." for name in rows if name not in seen]
    return differences


def told(name: tuple) -> str:
    table, person, *rest = name
    words = " ".join(f"{part} {value}" for part, value in zip(NAMES[table], rest, strict=True))
    return " ".join(filter(None, [table.removesuffix("s"), words, f"of {person}" if person else ""]))
