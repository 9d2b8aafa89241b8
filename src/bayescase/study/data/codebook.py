"""What each column of an export means."""

from ... import __version__
from ..design.design import PRACTICE, Design

WHO = (
    ("participant", "text", "random id of the person"),
    ("phase", "text", "pilot or live"),
    ("simulated", "true or false", "made by the software, not a person"),
    ("status", "text", "active, complete, timed out, screened out or withdrawn"),
    ("slot", "number", "place in the schedule; the plan of the person follows from it and the design"),
    ("cell", "text", "order of the blocks, with the item set of each"),
)
ANSWERS = (
    *WHO,
    ("round", "number", "how often a block had been begun again when the answer was given"),
    ("superseded", "true or false", "the block was begun again later; the analysis leaves the answer out"),
    ("trial", "number", "question, from 0, through all blocks"),
    ("block", "number", "from 0"),
    ("condition", "text", "how it was explained"),
    ("item", "text", "id of the case that was shown"),
    ("item_set", "text", "A, B, …"),
    ("item_name", "text", "name of the case; not shown to the person"),
    ("explanation", "text", "which explanation the answer depends on: that of the right group, or the item's own"),
    ("options", "text", "groups that were offered, from top to bottom"),
    ("right_choice", "number", "group that is right, or that the model says"),
    ("choice", "number", "group that was chosen"),
    ("choice_label", "text", "its name"),
    ("correct", "true or false", "was it right? empty where the task was to rate"),
    (
        "seconds",
        "number",
        "from the first sending of the question to its answer, by the server; reloads and the network included",
    ),
    ("browser_seconds", "number", "from the showing of the question to its answer, by the browser; empty without JavaScript"),
    ("first_input_seconds", "number", "from the showing to the first choice, by the browser"),
    ("hidden_seconds", "number", "how long the page was hidden behind another, by the browser"),
    ("blur_count", "number", "how often the page lost the focus, by the browser"),
    ("timing_differs", "true or false", "the browser's time is longer than the server's allows"),
    ("after_consent", "number", "seconds from the consent to the sending of the question"),
)
PEOPLE = (
    *WHO,
    ("order", "text", "conditions in the order of the blocks"),
    ("item_sets", "text", "item sets in the order of the blocks"),
    ("consented_on", "date", "day of the consent, UTC"),
    ("finished_on", "date", "day of the end, UTC; empty if there was none"),
    ("step", "number", "pages passed"),
    ("steps", "number", "pages in all"),
    ("rounds", "number", "how often a block was begun again"),
    ("answers", "number", "answers that count"),
    ("superseded_answers", "number", "answers of blocks that were begun again"),
    ("right_answers", "number", "right answers among those that count"),
    ("checks_failed", "number", "attention checks answered wrongly"),
    ("misunderstandings", "number", "wrong answers to comprehension checks"),
    ("total_seconds", "number", "from the consent to the end"),
    ("longest_pause_seconds", "number", "longest time between two forms that were sent"),
    ("window_width", "number", "of the browser, in CSS pixels, when the instructions were read; empty without JavaScript"),
    ("window_height", "number", "the same"),
    ("pixel_ratio", "number", "device pixels per CSS pixel"),
    ("touch", "true or false", "is the main pointer a finger?"),
)
EVENTS = (
    ("participant", "text", "random id of the person; empty if it is about nobody"),
    ("kind", "text", "what happened"),
    ("day", "date", "UTC"),
    ("seconds", "number", "since the consent of the person"),
    ("detail", "JSON", "more about it"),
)
RESPONSES = (
    ("participant", "text", "random id of the person"),
    ("round", "number", "how often a block had been begun again"),
    ("kind", "text", "demographics, comprehension, practice, check, ratings, questionnaire"),
    ("ref", "text", "id of the practice item or check; number of the block, from 0"),
    ("values", "JSON", "what was entered"),
    ("seconds", "number", "since the consent of the person"),
)
EXACT = {
    "answers": (("sent_at", "time", "first sending, UTC"), ("received_at", "time", "arrival of the answer, UTC")),
    "people": (
        ("external_hash", "text", "keyed hash of the id at a recruiting platform"),
        ("other_hashes", "JSON", "keyed hashes of what else the platform sent"),
        ("consented_at", "time", "UTC"),
        ("last_seen_at", "time", "last request, UTC"),
        ("finished_at", "time", "UTC"),
    ),
    "events": (("at", "time", "UTC"),),
    "responses": (("received_at", "time", "UTC"),),
}


def codebook(design: Design, identified: bool) -> dict[str, list[dict[str, str]]]:
    """file → its columns: name, kind, meaning."""
    of_answers = [(f"rating_{one.id}", "number", f"“{one.text}” {numbered(one.labels)}") for one in design.item_ratings]
    of_people = []
    for check in design.checks:
        if check.after:
            right = check.options[check.correct]
            of_people.append((f"check_{check.id}", "number", f"“{check.text}” {numbered(check.options)}; right is {right}"))
    for item in design.of_set(PRACTICE):
        words = f"group chosen for the practice item {item.name}" + (
            "" if item.correct is None else f"; right is {item.correct}"
        )
        of_people.append((f"practice_{item.id}", "number", words))
    for likert in design.block_ratings:
        for condition in design.conditions:
            words = f"“{likert.text}” {numbered(likert.labels)}; of the part with {condition.label}"
            of_people.append((f"rating_{likert.id}_{condition.id}", "number", words))
    for field in design.demographics:
        kind = "number" if field.kind == "number" else "text"
        of_people.append((f"about_{field.id}", kind, f"“{field.label}” {', '.join(field.options)}".strip()))
    for likert in design.questionnaire:
        of_people.append((f"likert_{likert.id}", "number", f"“{likert.text}” {numbered(likert.labels)}"))
    all_columns = {
        "answers": (*ANSWERS, *of_answers),
        "people": (*PEOPLE, *of_people),
        "events": EVENTS,
        "responses": RESPONSES,
    }
    return {
        f"{name}.csv": [
            {"name": column, "kind": kind, "meaning": meaning}
            for column, kind, meaning in (*columns, *(EXACT[name] if identified else ()))
        ]
        for name, columns in all_columns.items()
    }


def numbered(words) -> str:
    return ", ".join(f"{i}: {word}" for i, word in enumerate(words))


ABOUT = """# Codebook: {title}

Design {hash}, written by bayescase {version}.

- `answers.csv` has one row per answer, `people.csv` one per person, `events.csv` one per event, `responses.csv` one per other
  form. `data.json` has all four; `design.json` is the study itself; `manifest.json` has the SHA-256 and the number of rows of
  each file.
- {privacy}
- Every cell of the CSV files is in quotes. Where one of `= + - @` or an apostrophe stands at the beginning of a text, or after
  a comma, semicolon, bar, tab or line break in it, an apostrophe is put in front, so that no spreadsheet runs it, whatever it
  takes for a separator; remove that one apostrophe to get the text back. Numbers are never changed.
- An empty cell is missing. Free text was written by participants and may name people; read it before you publish it.
"""
ANONYMISED = (
    "Anonymised: no hashes of external ids, days instead of exact times. Times are relative to the consent of the person. Rows "
    "are sorted by the random ids; the slots still tell roughly who came before whom."
)
IDENTIFIED = "**Not anonymised**: it has exact times and hashes of external ids. Do not publish it."


def in_markdown(book, design, identified):
    text = ABOUT.format(
        title=" ".join(design.title.split()),
        hash=design.hash,
        version=__version__,
        privacy=IDENTIFIED if identified else ANONYMISED,
    )
    for name, columns in book.items():
        text += f"\n## {name}\n\n| column | kind | meaning |\n|---|---|---|\n"
        for column in columns:
            meaning = " ".join(column["meaning"].split()).replace("|", "\\|")
            text += f"| `{column['name']}` | {column['kind']} | {meaning} |\n"
    return text
