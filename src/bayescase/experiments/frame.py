"""One loop over experiments and seeds: results as JSON, one file per seed, each whole or not there."""

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.exceptions import ConvergenceWarning

from .. import __version__
from ..errors import ParameterError
from ..explaining.render.drawing import Figure  # before hours of sampling, not after them
from ..storage import replacing


class Row(NamedTuple):
    """A line of the page: what the paper says, what came out here, and where the two differ."""

    what: str
    paper: str
    ours: str
    remark: str = ""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or something to set beside it."""

    name: str
    title: str
    paper: str  # what the paper did, in a sentence or two; or, what it did not do
    files: tuple[str, ...]  # what it can use of the folder of data
    full: dict  # settings
    quick: dict  # settings for minutes on a laptop
    source: Callable[[dict, Path | None], str]  # (settings, data) → what the cases are, in words
    run: Callable[[int, dict, Path | None], dict]  # (seed, settings, data) → numbers
    figures: Callable[[list[dict]], dict[str, Figure]]  # numbers of each seed → what it shows: the figure
    rows: Callable[[list[dict]], list[Row]] | None = None  # numbers of each seed → lines of the page
    tables: Callable[[list[dict]], str] | None = None  # numbers of each seed → Markdown, where such lines do not fit
    left_out: Callable[[dict, Path | None], ParameterError | None] = lambda settings, data: None  # if it cannot be run: why


def reproduce(
    experiments: list[Experiment],
    out: Path,
    data: Path | None = None,
    *,
    quick: bool = False,
    seeds: int | None = None,
    n_jobs: int = -1,
    say: Callable[[str | ParameterError], Any] = print,
) -> dict[str, list[dict]]:
    """Run what is not there yet; what every seed of every experiment gave."""
    check_data(experiments, data)
    out.mkdir(parents=True, exist_ok=True)
    n = (2 if quick else 10) if seeds is None else seeds

    def log(words):
        say(words)
        with open(out / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n")

    found: dict[str, list[dict]] = {}
    for experiment in experiments:
        settings = experiment.quick if quick else experiment.full
        if why := experiment.left_out(settings, data):
            if len(experiments) == 1:
                raise why
            say(why)
            continue
        head = {"experiment": experiment.name, "settings": settings, "source": experiment.source(settings, data)}
        head = as_kept(head)
        (out / experiment.name).mkdir(exist_ok=True)
        found[experiment.name] = [one_seed(experiment, seed, head, out, data, n_jobs, log) for seed in range(n)]
    return found


def as_kept(settings: dict) -> dict:
    """As it will be read again: tuples are lists."""
    return json.loads(json.dumps(settings))


def one_seed(experiment, seed, head, out, data, n_jobs, log):
    """The numbers of a seed, read if they are there, else made and written."""
    path = out / experiment.name / f"seed-{seed}.json"
    if path.exists():
        return read_numbers(path, head)
    start = time.perf_counter()
    with parallel_config(n_jobs=n_jobs), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the numbers say whether the chains agree
        numbers = experiment.run(seed, head["settings"], data)
    text = json.dumps({**head, "seed": seed, "version": __version__, "numbers": numbers}, ensure_ascii=False, allow_nan=False)
    with replacing(path) as file:
        file.write((text + "\n").encode())
    log(f"{experiment.name}, seed {seed}: {time.perf_counter() - start:.1f} s, {head['source']}")
    return json.loads(text)["numbers"]


def read_result(path):
    """(what was run, its numbers) of a file."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        return {name: kept[name] for name in ("experiment", "settings", "source")}, kept["numbers"]
    except (ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            "{path} is not a result of `bayescase reproduce`; move it away.", parameter="out", path=path
        ) from error


def read_numbers(path, head):
    """Results of other settings or other data are neither mixed in nor overwritten."""
    made, numbers = read_result(path)
    if made != head:
        raise ParameterError(
            "{path} was made with other settings or data; give another {parameter}, or delete {folder}.",
            parameter="out",
            path=path,
            folder=path.parent,
        )
    return numbers


def read_results(experiment: Experiment, out: Path) -> tuple[dict, list[dict]]:
    """(what was run, the numbers of each seed) of an experiment; empty if it was not run."""
    paths = sorted((out / experiment.name).glob("seed-*.json"), key=lambda path: (len(path.name), path.name))
    head = read_result(paths[0])[0] if paths else {}
    return head, [read_numbers(path, head) for path in paths]


def check_data(experiments, data):
    if data is None:
        return
    if not data.is_dir():
        raise ParameterError("{parameter}: there is no folder {value}.", parameter="data", value=data)
    wanted = [name for experiment in experiments for name in experiment.files]
    if wanted and not any((data / name).exists() for name in wanted):
        raise ParameterError(
            "{parameter}: the folder {value} has no {files}.", parameter="data", value=data, files=" and no ".join(wanted)
        )


def local_file(data: Path | None, name: str) -> Path | None:
    """The file in the folder of data, or None if there is none and other data has to do."""
    return data / name if data is not None and (data / name).exists() else None


def spread(values, digits=2) -> str:
    """Mean and standard deviation over seeds."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return f"{values.mean():.{digits}f} (one seed)"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def error(values) -> float:
    """Standard error of the mean over seeds."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def seeds_in_words(n: int) -> str:
    return f"{n} seed{'s' * (n != 1)}"
