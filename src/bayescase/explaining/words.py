"""Words: values and features in a sentence, things counted and listed, text cut to fit. All words are clean: see `clean`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..reading.columns import ABSENT, PRESENT, says_absent
from ..reading.features import Feature, intervals


def show(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else clean(value) or '""'


def phrase(name: str, value: Any) -> str:
    """A feature and its value: "onion", "no onion", "coat = long"."""
    if value is True or (isinstance(value, str) and value.lower() == PRESENT[0]):
        return clean(name)
    if value is False or (isinstance(value, str) and value.lower() == ABSENT[0]):
        return f"no {clean(name)}"
    return f"{clean(name)} = {show(value)}"


def phrase_of(feature: Feature, places: Sequence[int], optional: bool = False) -> str:
    """A feature and some of its values, by their places: "onion", "coat = long or curly", "age = 40 to 59".

    optional: the feature says whether something is there; all values that say so are its name alone.
    """
    chosen = [feature.values[k] for k in places]
    if optional and not any(map(says_absent, chosen)) and len(chosen) == sum(not says_absent(v) for v in feature.values):
        return clean(feature.name)
    if len(places) == 1:
        return phrase(feature.name, chosen[0])
    return f"{clean(feature.name)} = {join_values(feature, places)}"


def join_values(feature: Feature, places: Sequence[int]) -> str:
    """Some values of a feature, by their places; neighbours on a scale become one range."""
    runs: list[list[int]] = []
    for k in sorted(places):
        if runs and feature.ordered and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return any_of([word for run in runs for word in run_words(feature, run)])


def run_words(feature: Feature, run: Sequence[int]) -> list[str]:
    """Neighbours on a scale: one range of numbers; of other values a range from three on."""
    values = feature.values
    if feature.type == "number" and len(run) < len(values):
        whole = values == intervals(feature.edges, True)
        edges = [feature.edges[k] for k in (run[0] - 1, run[-1]) if 0 <= k < len(feature.edges)]
        return [intervals(edges, whole)[0 if run[0] == 0 else 1]]
    if len(run) > 2 and feature.type != "number":
        return [f"{show(values[run[0]])} to {show(values[run[-1]])}"]
    return [show(values[k]) for k in run]


def any_of(words: Sequence[str]) -> str:
    """ "a, b or c"."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def percent(share: float | None) -> str:
    """ "100%" only if it is 1, "0%" only if it is 0."""
    if share is None:
        return "–"
    shown = f"{share:.0%}"
    if shown == "0%" and share > 0:
        return "<1%"
    return ">99%" if shown == "100%" and share < 1 else shown


def clean(words: object) -> str:
    """One line that can be drawn and written, whatever was in it."""
    line = " ".join(str(words).split()).encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def cut(words: object, most: int) -> str:
    """At most so many letters."""
    line = clean(words)
    return line if len(line) <= most else line[: most - 1].rstrip(" …") + "…"


def cluster_title(number: int, name: str) -> str:
    """ "cluster 3 (pasta, parmesan)"."""
    return f"cluster {number} ({name})" if name else f"cluster {number}"


def counted(n: int, what: str = "case") -> str:
    """ "1 case", "2,000 cases", "3 people"."""
    if what == "person" and n != 1:
        return f"{n:,} people"
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listed(words: Iterable[str], most: int) -> str:
    """ "a, b and c"; what is beyond `most` is counted."""
    words = list(words)
    more = len(words) - most
    words = words[:most] + ([f"{more} more"] if more > 0 else [])
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def not_shown(*counts: tuple[int, str]) -> str:
    """ "not shown: 3 that matter and 5 others"; "" if nothing is left out."""
    words = [f"{n:,} {what}" for n, what in counts if n > 0]
    return f"not shown: {listed(words, len(words))}" if words else ""
