"""Is a study ready?"""

import json
import os
from dataclasses import replace

from sqlalchemy import update

from bayescase.study.data import tables
from bayescase.study.design.design import PLACEHOLDER
from bayescase.study.design.design_file import write_design
from bayescase.study.doctor import OK, PROBLEM, WARNING, examine
from bayescase.web.keys import KEY
from bayescase.web.password import AdminPassword

from .designs import small_design
from .made_data import START
from .studies import DESIGN, change, run


def levels(folder, **how):
    return {(line.what, line.level): line.words for line in examine(folder, **how)}


def test_the_doctor_finds_a_good_study_ready(study):
    AdminPassword(study).set("long enough")
    found = levels(study)
    assert not [line for line in found if line[1] == PROBLEM], found
    assert run("doctor", study).exit_code == 0
    for what in ("design", "texts", "codes", "items", "disk", "journal", "password", "SQLite", "database", "export", "verify"):
        assert (what, OK) in found
    assert ("plan", OK) in found
    assert "Anybody who has the address" in found["admission", WARNING]


def test_the_doctor_names_what_is_missing(tmp_path):
    rules, texts = DESIGN.rules, DESIGN.texts
    flagged = (replace(DESIGN.items[0], flags=("coders differ",)), *DESIGN.items[1:])
    design = small_design(
        mode="paper",
        checks=(),
        items=flagged,
        texts=replace(texts, contact=f"{PLACEHOLDER}: name]"),
        rules=replace(rules, complete=replace(rules.complete, code="")),
        plan=replace(DESIGN.plan, hypotheses=(), stopping=""),
        made={"model": "80 cases"},
    )
    write_design(design, tmp_path)
    found = levels(tmp_path)
    assert "contact" in found["texts", PROBLEM]
    assert "complete" in found["codes", PROBLEM]
    assert "freeze" in found["design", PROBLEM]
    assert "a1" in found["items", WARNING]
    assert {
        ("coders", WARNING),
        ("cells", WARNING),
        ("attention", WARNING),
        ("password", WARNING),
        ("data", WARNING),
    } <= found.keys()
    assert "lacks hypotheses, stopping" in found["plan", WARNING]
    done = run("doctor", tmp_path)
    assert done.exit_code == 1
    assert "problem  texts: Something is to be filled in in texts.contact" in done.stdout
    assert json.loads(run("doctor", tmp_path, "--json").stdout)[0]["level"] == PROBLEM


def test_the_doctor_sees_clocks_keys_and_damage(study):
    assert ("clock", PROBLEM) in levels(study, now=START - 10**7)
    os.chmod(study / KEY, 0o644)
    assert "chmod 600" in levels(study)["key", PROBLEM]
    change(study, update(tables.answers).where(tables.answers.c.id == 7).values(choice=99))
    assert "the journal differ in 'choice'" in levels(study)["verify", PROBLEM]
    (study / "study.db").write_bytes(b"nothing" * 1000)
    assert ("database", PROBLEM) in levels(study)
    assert "design.json" in levels(study / "nowhere")["design", PROBLEM]
