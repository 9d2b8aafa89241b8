"""All texts of the pages, and those that a new study begins with, from one catalogue per language.

Another language is another file in `languages`, with the keys of `en.json`. A text may have places, {n}; where it depends on a
number it is {"one": …, "other": …}.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from .design import DesignError

HERE = Path(__file__).parent / "languages"
USUAL = "en"


class Catalogue:
    """catalogue("break.left", n=3) → "3 more seconds"."""

    def __init__(self, texts: dict[str, Any]):
        self.texts = texts

    def __call__(self, key: str, **values: Any) -> str:
        text = self.texts[key]
        if isinstance(text, dict):
            text = text["one" if values["n"] == 1 else "other"]
        return text.format(**values) if values else text

    def list(self, key: str) -> list[str]:
        return self.texts[key]


def languages() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in HERE.glob("*.json")))


@cache
def catalogue(language: str) -> Catalogue:
    """Of "de", or of "de-AT" by its first part; what no file has is in English."""
    for name in (language, language.partition("-")[0], USUAL):
        path = HERE / f"{name}.json"
        if name.isascii() and name.replace("-", "").isalnum() and path.exists():
            return Catalogue(json.loads(path.read_text("utf-8")))
    raise DesignError(f"The catalogue of the language {USUAL!r} is not there; install bayescase again.")
