"""Bring your own: items and explanations that were made elsewhere → a design.

`items.csv` has a row per item. Its columns: `id`; `answer`, the right group or what the model says; `options`, if an item does
not offer every group, as names with | between; `set`, A, B, … or practice, else dealt out evenly. What people see of an item is
a file `items/ID.*` beside the table, else the column `text`, else all other columns as a table of features and values.

The folder of explanations has a folder per condition, with a file per group or per item, named after it: text (.txt, .md), a
table (.csv; with the columns feature and weight, drawn as bars), a picture (.png, .jpg, .gif, .webp, .svg; NAME.alt.txt says
what it shows), or our own card (.json, a stimulus as in design.json).
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...explaining.records import build
from ...explaining.words import clean, listed
from .design import (
    PRACTICE,
    SETS,
    TASKS,
    Condition,
    Design,
    DesignError,
    Group,
    Item,
    Line,
    ShownExplanation,
    Stimulus,
)
from .design_checks import PICTURES, check
from .design_file import add_picture
from .language import catalogue
from .schedule import shuffled
from .wishes import Wishes, one_of
from .wording import (
    Wanted,
    block_ratings,
    checks,
    confidence,
    demographics,
    item_trust,
    plan,
    rules,
    texts,
    with_codes,
)

SPECIAL = ("id", "answer", "options", "set", "text")
TEXTS, TABLES, CARDS = (".txt", ".md"), (".csv",), (".json",)
MOST_TEXT = 20_000  # characters


@dataclass(frozen=True, kw_only=True)
class OwnWishes(Wishes):
    """How a study of one's own explanations is to be made.

    Parameters
    ----------
    items : path
        The table of items.
    explanations : path
        The folder of explanations.
    task : {"classify", "predict", "rate"}
        Which group is this? What will the model say? What do you think of it?
    **others
        See `Wishes`.
    """

    items: Path
    explanations: Path
    task: str = "classify"
    practice: int = 0

    def __post_init__(self):
        super().__post_init__()
        if self.task not in TASKS:
            raise one_of("task", TASKS, self.task)


def make_own_design(folder: Path, **wishes: Any) -> Design:
    """Make a study of items and explanations from files; pictures are copied into `folder`. See `OwnWishes`."""
    wish = OwnWishes(**wishes)
    rows = read_rows(Path(wish.items))
    conditions, files = explanation_files(Path(wish.explanations))
    names = sorted(
        {row["answer"] for row in rows if row.get("answer")} | {o for row in rows for o in split(row.get("options"))}
    )
    groups = tuple(Group(k, name) for k, name in enumerate(names))
    ids = [row["id"] for row in rows]
    draw = picture_keeper(folder)
    items = own_items(rows, groups, wish, len(conditions), draw)
    explanations = own_explanations(files, groups, ids, wish, draw)
    language, parts = wish.language, len(conditions) if wish.layout == "within" else 1
    questions = sum(item.item_set != PRACTICE for item in items)
    wanted = Wanted(
        wish.task, questions, parts, tuple(c.about for c in conditions), sum(item.item_set == PRACTICE for item in items)
    )
    per_item = ((confidence(language),) if wish.confidence else ()) + ((item_trust(language),) if wish.task == "rate" else ())
    made = {
        "items": f"{len(items)} from {Path(wish.items).name}",
        "explanations": f"{len(explanations)} from {Path(wish.explanations).name}: {listed([c.id for c in conditions], 9)}",
    }
    design = Design(
        title=clean(wish.title or catalogue(language)(f"new.title.{wish.task}")),
        language=language,
        seed=int(wish.seed),
        task=wish.task,
        layout=wish.layout,
        mode="paper" if wish.paper_mode else "crossed",
        order=wish.order,
        conditions=conditions,
        groups=groups,
        explanations=explanations,
        items=items,
        checks=checks(language, wish.task, questions),
        item_ratings=per_item,
        block_ratings=block_ratings(language),
        questionnaire=(),
        demographics=demographics(language),
        texts=texts(wish, wanted),
        plan=plan(wish, per_item[-1].id if wish.task == "rate" else "accuracy"),
        rules=rules(wish),
        made=made,
    )
    design = with_codes(design, wish.platform)
    check(design)
    return design


# --- items ----------------------------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[dict[str, str]]:
    rows = table_rows(path)
    if "id" not in rows[0]:
        raise DesignError(f"{path} must have a column id; it has {listed(list(rows[0]), 9)}.")
    for number, row in enumerate(rows, 2):
        if not row["id"]:
            raise DesignError(f"{path}, line {number}: the id is empty.")
    return rows


def table_rows(path: Path) -> list[dict[str, str]]:
    """A CSV file as rows of clean texts."""
    reader = csv.DictReader(io.StringIO(read_text(path)), restval="")
    rows = [{clean(key or ""): clean(value or "") for key, value in row.items() if key is not None} for row in reader]
    if not rows:
        raise DesignError(f"{path} has no rows.")
    return rows


def read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DesignError(f"{path} is not a text file in UTF-8.") from None


def split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split("|") if part.strip()]


def own_items(
    rows: list[dict[str, str]], groups: tuple[Group, ...], wish: OwnWishes, conditions: int, draw: "Draw"
) -> tuple[Item, ...]:
    number = {group.label: group.id for group in groups}
    sets = deal(rows, wish, conditions if wish.layout == "within" else 1)
    folder, found = Path(wish.items).parent / "items", []
    for row in rows:
        answer = number.get(row.get("answer", ""))
        if answer is None and wish.task != "rate":
            raise DesignError(f"{wish.items}: the item {row['id']} has no answer, which the task {wish.task} needs.")
        options = tuple(number[name] for name in split(row.get("options"))) or tuple(sorted(number.values()))
        seen = stimulus_of_row(row, folder, draw)
        options = () if wish.task == "rate" else options
        found.append(Item(row["id"], sets[row["id"]], None, row["id"], seen, answer, options, ()))
    return tuple(found)


def deal(rows: list[dict[str, str]], wish: OwnWishes, k: int) -> dict[str, str]:
    """The set of each item: as the table says, else evenly over sets and answers, in random order."""
    given = {row["id"]: row["set"] for row in rows if row.get("set")}
    if given and len(given) < len(rows):
        lost = next(row["id"] for row in rows if row["id"] not in given)
        raise DesignError(f"{wish.items}: some items have a set, but {lost} has none; give all of them one, or none.")
    if given:
        return {id: PRACTICE if name.lower() == PRACTICE else name.upper() for id, name in given.items()}
    order = shuffled(rows, f"{wish.seed}/sets")
    practice, rest = order[: wish.practice], sorted(order[wish.practice :], key=lambda row: row.get("answer", ""))
    if len(rest) < k or len(rest) % k:
        raise DesignError(
            f"{wish.items} has {len(rest)} items besides those to practise; {k} conditions need a multiple of {k}, as each "
            "gets as many. Leave some out, or say which are of which set in a column set."
        )
    return {row["id"]: PRACTICE for row in practice} | {row["id"]: SETS[n % k] for n, row in enumerate(rest)}


def stimulus_of_row(row: dict[str, str], folder: Path, draw: "Draw") -> Stimulus:
    file = file_named(folder, row["id"])
    if file is not None:
        return draw(file)
    if row.get("text"):
        return Stimulus("text", text=row["text"])
    lines = tuple(Line(name, value) for name, value in row.items() if name not in SPECIAL and value)
    if not lines:
        raise DesignError(f"The item {row['id']} has nothing to show: no file items/{row['id']}.*, no text, no other columns.")
    return Stimulus("table", lines)


def file_named(folder: Path, name: str) -> Path | None:
    found = [path for path in sorted(folder.glob(f"{name}.*")) if path.stem == name] if folder.is_dir() else []
    if len(found) > 1:
        raise DesignError(f"{folder} has {listed([path.name for path in found], 9)}; keep one of them.")
    return found[0] if found else None


# --- explanations ---------------------------------------------------------------------------------------------------------


def explanation_files(folder: Path) -> tuple[tuple[Condition, ...], dict[str, dict[str, Path]]]:
    """The conditions, in the order of their names, and {condition: {what is explained: file}}.

    A condition's file about.txt says in a phrase how it explains; its first line may be a label and a colon.
    """
    if not folder.is_dir():
        raise DesignError(f"{folder} is not a folder; it must have a folder per condition.")
    conditions, files = [], {}
    for path in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        label, about = path.name, path.name
        if (path / "about.txt").exists():
            words = clean(read_text(path / "about.txt"))
            label, colon, about = words.partition(":")
            label, about = (label.strip(), about.strip()) if colon else (path.name, words)
        conditions.append(Condition(path.name, label, about))
        known = [p for p in sorted(path.iterdir()) if p.is_file() and p.name != "about.txt" and not p.name.startswith(".")]
        files[path.name] = {p.stem: p for p in known if not p.name.endswith(".alt.txt")}
    if len(conditions) < 2:
        raise DesignError(f"{folder} must have two folders or more, one per condition; it has {len(conditions)}.")
    return tuple(conditions), files


def own_explanations(
    files: dict[str, dict[str, Path]], groups: tuple[Group, ...], ids: list[str], wish: OwnWishes, draw: "Draw"
) -> tuple[ShownExplanation, ...]:
    number = {group.label: group.id for group in groups}
    named = {name for of in files.values() for name in of}
    by_item = wish.task != "classify" and not named & set(number)
    known = set(ids) if by_item else set(number)
    found = []
    for condition, of in files.items():
        for name, path in of.items():
            if name not in known:
                what = "item" if by_item else "group"
                raise DesignError(f"{path} is named after no {what}; {what}s are {listed(sorted(known), 6)}.")
            group, item = (None, name) if by_item else (number[name], None)
            found.append(ShownExplanation(condition, group, item, path.name, draw(path)))
        lost = sorted(known - set(of))
        if lost:
            raise DesignError(f"{Path(wish.explanations) / condition} has no file for {listed(lost, 6)}.")
    return tuple(found)


Draw = Callable[[Path], Stimulus]


def picture_keeper(folder: Path) -> Draw:
    return lambda path: stimulus_of_file(path, folder)


def stimulus_of_file(path: Path, folder: Path) -> Stimulus:
    """What a file shows; a picture is copied into the folder of the study."""
    kind = path.suffix.lower()
    if kind in TEXTS:
        text = read_text(path).strip()
        if len(text) > MOST_TEXT:
            raise DesignError(f"{path} has {len(text)} characters; people can be shown {MOST_TEXT} at most.")
        return Stimulus("text", text=text)
    if kind in TABLES:
        return stimulus_of_table(path)
    if kind in CARDS:
        try:
            return build(Stimulus, json.loads(read_text(path)))
        except (ValueError, TypeError, KeyError) as error:
            raise DesignError(f"{path} is not a card: it must be a stimulus as design.json has them ({error}).") from error
    if kind in PICTURES:
        words = path.with_suffix(".alt.txt")
        return Stimulus("picture", text=clean(read_text(words)) if words.exists() else "", file=add_picture(path, folder))
    raise DesignError(f"{path} cannot be shown; it must end in {listed([*TEXTS, *TABLES, *CARDS, *PICTURES], 99)}.")


def stimulus_of_table(path: Path) -> Stimulus:
    """With the columns feature and weight it is drawn as bars, with feature and value as a card, with any other as it is."""
    rows = table_rows(path)
    names = list(rows[0])
    if set(names) in ({"feature", "weight"}, {"feature", "value", "weight"}):
        lines = []
        for number, row in enumerate(rows, 2):
            try:
                lines.append(Line(row["feature"], row.get("value") or None, False, float(row["weight"])))
            except ValueError:
                raise DesignError(f"{path}, line {number}: the weight {row['weight']!r} is not a number.") from None
        return Stimulus("bars", tuple(lines))
    if names == ["feature", "value"]:
        return Stimulus("table", tuple(Line(row["feature"], row["value"]) for row in rows))
    if names == ["feature"]:
        return Stimulus("set", tuple(Line(row["feature"]) for row in rows))
    return Stimulus("grid", rows=(tuple(names), *(tuple(row[name] for name in names) for row in rows)))
