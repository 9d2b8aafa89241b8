"""What went wrong, in the words of the command line: settings are options."""

from __future__ import annotations

import shlex
from typing import Any

import click

from ..errors import UNSET, Message, Setting

STOPPED = 130  # the exit code of Ctrl-C

# The parameters that have an option. The rest cannot be set from the command line.
OPTIONS = {
    "alpha": "--alpha",
    "array": "--array",
    "bags": "--bag",
    "bins": "--bins",
    "burn_in": "--burn-in",
    "c": "--c",
    "cache": "--cache",
    "candidates": "--candidates",
    "case_names": "--id",
    "checkpoint": "--checkpoint",
    "client": "--dask",
    "cv": "--folds",
    "data": "--data",
    "delimiter": "--delimiter",
    "device": "--device",
    "feature_types": "--type",
    "header": "--no-header",
    "image_shape": "--image",
    "keep_draws": "--keep-draws",
    "lam": "--lam",
    "max_clusters": "--max-clusters",
    "max_count": "--max-count",
    "max_iter": "--max-iterations",
    "min_cases": "--min-cases",
    "missing_values": "--missing",
    "moves": "--moves",
    "n_chains": "--chains",
    "n_clusters": "-k",
    "n_init": "--short-runs",
    "n_iter": "--iterations",
    "n_jobs": "--jobs",
    "out": "--out",
    "q": "--q",
    "random_state": "--seed",
    "sampler": "--sampler",
    "stop_words": "--stop-words",
    "texts": "--text",
    "tolerance": "--tolerance",
    "top_values": "--top",
}
FLAGS = ("admin_password", "header", "keep_draws", "paper_mode")  # options without a value
DATA = {  # what is given or done, not set
    "X": "The data",
    "n_samples": "The number of cases",
    "fold": "`bayescase fold`",
    "select_n_clusters": "`bayescase select`",
    "explain_differences": "`bayescase explain --differences`",
}
OF_STUDIES = (  # parameters that are called as their options
    *("admin_password", "admission", "arms", "break_every", "break_seconds", "column", "items_per_block", "keep_days"),
    *("language", "layout", "lda", "options", "order", "overlap", "paper_mode", "path", "platform", "port", "practice"),
    *("quota", "resume", "sample_size", "task", "tries"),
)
OPTIONS |= {name: f"--{name.replace('_', '-')}" for name in OF_STUDIES}
OF_COMMAND = {"select": {"n_clusters": "--to"}}  # options that are called otherwise there


def as_option(setting: Setting) -> str | None:
    """A setting as it is typed, `--type 'a b=category'`; None if the command line does not have it."""
    column, value = setting.column, setting.value
    if setting.parameter in DATA:
        return DATA[setting.parameter] if value is UNSET else str(value)
    context = click.get_current_context(silent=True)
    options = OPTIONS | OF_COMMAND.get((context and context.info_name) or "", {})
    option = options.get(setting.parameter)
    if option is None:
        return None
    if value is None:
        return f"{option} unset"
    if value is UNSET or setting.parameter in FLAGS:
        return option if column is None else f"{option} of {column!r}"
    if setting.parameter == "feature_types" and isinstance(value, dict):
        return " ".join(f"--drop {shlex.quote(str(name))}" for name in value)
    if setting.parameter == "feature_types" and value == "drop":
        return "--drop" if column is None else f"--drop {shlex.quote(str(column))}"
    if setting.parameter == "bags" and column is not None:
        between = str(value) if str(value).isalnum() else repr(str(value))  # a bare comma would be lost in a sentence
        return f"{option} {shlex.quote(str(column))} --separator {between}"
    if setting.parameter == "image_shape":
        return f"{option} {' '.join(map(str, value))}"
    text = ",".join(value) if setting.parameter == "arms" else as_text(value)
    return f"{option} {shlex.quote(text if column is None else f'{column}={text}')}"


def as_text(value: Any) -> str:
    """A value as an option takes it: 5, uniform:5, or 18,65."""
    if isinstance(value, (list, tuple)):
        return (":" if value and isinstance(value[0], str) else ",").join(map(str, value))
    return str(value)


def in_options(problem: object) -> str:
    """An error, a warning or a message in one line, with options in place of parameters."""
    text = problem.render(as_option) if isinstance(problem, Message) else str(problem)
    return " ".join(text.split())
