"""How often is there a verdict where there is nothing? Whole studies, simulated by the schedule and judged by the analysis.

    python -m tests.study.analysis.error_rates --studies 400 --log rates.jsonl

Explanations differ in the effect of a condition by a standard deviation of 0, 0.5 and 1 logit, and the effect is zero on
average; people and cases differ by 1 logit. A line per study goes to the log, and a run that was stopped goes on where it was.
The figures in docs/study-analysis.md were made so; the everyday tests count fewer studies.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from bayescase.study.planted import Truth
from bayescase.study.power import one_study

from ..designs import between, predicting, small_design

DESIGNS = {"within": small_design, "between": between, "own explanation per case": predicting}


def verdicts(design, people, slopes, draw):
    """Is a difference claimed of explanations of this kind, and is one claimed at all?"""
    truth = Truth(
        right={"bcm": 0.77, "lda": 0.77}, person_sd=1.0, case_sd=1.0, person_slope_sd=0.0, case_slope_sd=0.0,
        explanation_slope_sd=slopes, seed=1,
    )  # fmt: skip
    claimed, kind, _ = one_study(design, people, truth, draw)
    return kind, claimed


def main():
    read = argparse.ArgumentParser()
    read.add_argument("--studies", type=int, default=400)
    read.add_argument("--people", default="24,100")
    read.add_argument("--slopes", default="0,0.5,1")
    read.add_argument("--designs", default="within")
    read.add_argument("--log", type=Path, required=True)
    given = read.parse_args()
    lines = [json.loads(line) for line in given.log.read_text().splitlines()] if given.log.exists() else []
    done = {(line["design"], line["people"], line["slopes"], line["draw"]): line for line in lines}
    for name in given.designs.split(","):
        design = DESIGNS[name]()
        for people in map(int, given.people.split(",")):
            for slopes in map(float, given.slopes.split(",")):
                counts = Counter()
                for draw in range(given.studies):
                    line = done.get((name, people, slopes, draw))
                    if line is None:
                        kind, any_ = verdicts(design, people, slopes, draw)
                        line = {"design": name, "people": people, "slopes": slopes, "draw": draw, "kind": kind, "any": any_}
                        with given.log.open("a") as log:
                            log.write(json.dumps(line) + "\n")
                    counts += Counter({"kind": line["kind"], "any": line["any"]})
                share = {what: f"{100 * counts[what] / given.studies:.1f} %" for what in ("kind", "any")}
                print(f"{name}, {people} people, SD {slopes:g}: kind {share['kind']}, these or kind {share['any']}", flush=True)


if __name__ == "__main__":
    main()
