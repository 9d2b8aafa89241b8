"""Everything that browsers and attackers do to the pages."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

from sqlalchemy import select

from bayescase.study.data.journal import compare
from bayescase.study.data.tables import responses
from bayescase.study.design.schedule import plan
from bayescase.study.pages import pages as pages_
from bayescase.study.pages.pages import Pages
from bayescase.study.simulate import Page
from bayescase.web.guard import LIMIT
from bayescase.web.password import AdminPassword

from .visits import EVIL, count, dump, title

# --- attacks --------------------------------------------------------------------------------------------------------------


def test_forged_forms_are_refused(visit, ann):
    ann.begin()
    ann.go("Question 1 ")
    good, before = ann.form(), dump(visit)
    bob = visit.visitor()
    bob.begin()
    bob.go("Question 1 ")
    before = dump(visit)
    forged = [good | {"token": ""}, good | {"token": "0" * 64}, good | {"token": "漢字"}, {}, good | {"round": "1"}]
    forged += [good | {"part": "feedback"}, good | {"step": EVIL}, good | {"step": "-1"}, bob.form()]
    for form in forged:
        answer = ann.post("/study", form)
        assert answer.status_code == 403
        assert "Go to the current page" in answer.text
    for path in ("/withdraw", "/continue", "/consent"):
        assert ann.post(path, {"token": "x"}).status_code == 403
        assert ann.post(path, bob.form()).status_code == 403
    assert dump(visit) == before
    assert title(ann.post("/study", good)).startswith("Question 2 ")


def test_unknown_and_stolen_tokens(visit, ann):
    ann.begin()
    form, before = ann.form(), dump(visit)
    stranger = visit.visitor()
    for token in (None, "", "x", "0" * 64, EVIL.encode("ascii", "ignore").decode().replace("\x00", "")):
        headers = {} if token is None else {"cookie": f"{visit.app.cookie}={token}"}
        for method, path in (
            ("GET", "/study"),
            ("GET", "/link"),
            ("GET", "/withdraw"),
            ("POST", "/study"),
            ("POST", "/withdraw"),
        ):
            answer = stranger.ask(method, path, headers=headers, data=form if method == "POST" else None)
            assert answer.status_code == 403
            assert "no place in the study" in answer.text
    assert stranger.get("/resume/unknown").status_code == 404
    assert dump(visit) == before


@pytest.mark.parametrize(
    "field", ["choice", "step", "round", "part", "token", "shown_ms", "blur_count", "age", "gender", "cooking"]
)
def test_anything_in_any_field_is_harmless(visit, ann, field):
    ann.begin()
    if field not in ("age", "gender", "cooking"):
        ann.go("Question 1 ")
    for value in (EVIL, "", "-1", "1e999", "NaN", "9" * 400, "ⅷ"):
        visit.clock.now += 6000
        answer = ann.post("/study", ann.form(**{field: value}))
        assert answer.status_code in (200, 400, 403)
        assert "<script>window" not in answer.text
        assert "<img" not in answer.text
        assert "Traceback" not in answer.text
        if answer.status_code == 400:
            assert "Please check:" in answer.text
    visit.clock.now += 1
    ann.go()
    with visit.store.reading() as connection:
        assert not compare(connection, visit.store.folder)
        for row in connection.execute(select(responses).where(responses.c.kind == "demographics")):
            assert "\x00" not in str(row.values)


def test_words_are_kept_as_they_were_written(visit, ann):
    ann.begin()
    words = "O'Brien <b>& 漢字</b>\n“soup”; DROP TABLE answers"
    ann.post("/study", ann.form(age="41", gender="2", cooking=words))
    with visit.store.reading() as connection:
        kept = connection.execute(select(responses.c["values"])).scalar_one()
    assert kept == {"age": 41, "gender": "another", "cooking": words}


def test_wrong_answers_are_explained_and_what_was_given_stays(visit, ann):
    ann.begin()
    wrong = ann.post("/study", ann.form(age="forty", cooking="<i>soup"))
    assert wrong.status_code == 400
    assert "Write a number" in wrong.text
    assert 'value="&lt;i&gt;soup"' in wrong.text
    assert 'aria-invalid="true"' in wrong.text
    assert count(visit, responses) == 0
    ann.post("/study", ann.form(age="", gender="", cooking=""))
    ann.go("How was it")
    form = ann.form()
    del form["sure"]
    wrong = ann.post("/study", form | {"clear": "3"})
    assert wrong.status_code == 400
    assert re.search(r'id="clear-3"[^>]* checked', wrong.text)
    assert title(ann.post("/study", form | {"sure": "no-answer"})).startswith("Thank you")


def test_large_bodies_are_refused_while_they_come(visit, ann):
    ann.begin()
    form, before = ann.form(), dump(visit)
    large = ann.post("/study", form | {"cooking": "x" * (LIMIT + 1)})
    assert large.status_code == 413
    assert "too large" in large.text

    async def pieces():
        for _ in range(40):
            yield b"x" * 4096

    assert ann.post("/study", content=pieces()).status_code == 413
    assert ann.post("/study", content=b"x", headers={"content-length": "many"}).status_code == 413
    many = "&".join(f"f{i}=1" for i in range(1000))
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert ann.post("/study", content=many, headers=kind).status_code == 400
    parts = {"content-type": "multipart/form-data; boundary=x"}
    for body in (
        b"--x\r\nrubbish",
        b'--x\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\nc\r\n--x--\r\n',
        b"",
    ):
        assert ann.post("/study", content=body, headers=parts).status_code in (400, 403)
    assert ann.post("/study", content=b"\xff\xfe%ff=%", headers=kind).status_code == 403
    assert ann.post("/study", content=b"{}", headers={"content-type": "application/json"}).status_code == 403
    assert dump(visit) == before


def test_a_form_that_was_cut_off_on_its_way_is_not_taken_for_whole(visit, ann):
    """The connection breaks in the middle of a word: what came is a valid form, but not what the person wrote."""
    ann.begin()
    before = dump(visit)
    request = ann.client.build_request("POST", "/study", data=ann.form(cooking="soup"))
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    scope = {"type": "http", "method": "POST", "path": "/study", "scheme": "http", "query_string": b"", "headers": headers}
    came = [{"type": "http.request", "body": request.content[:-2], "more_body": True}, {"type": "http.disconnect"}]
    sent = []

    async def receive():
        return came.pop(0)

    async def send(message):
        sent.append(message)

    visit.runner.run(visit.app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert dump(visit) == before


def test_data_are_for_the_owners_eyes(visit, ann):
    ann.begin()
    for path in (visit.store.folder / "study.db", visit.store.folder / "secret.key", visit.store.journal.path):
        assert path.stat().st_mode & 0o077 == 0


def test_the_check_of_origins_is_in_the_way_of_every_form(visit, ann):
    ann.begin()
    form, before = ann.form(), dump(visit)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/study", "/consent", "/withdraw", "/continue", "/admin/in", "/admin/out", "/nowhere"):
            answer = ann.ask(method, path, data=form, headers={"origin": "http://evil.test"})
            assert answer.status_code == 403
    assert dump(visit) == before


def test_every_answer_has_the_headers_and_every_mistake_a_page(visit, ann, monkeypatch):
    ann.begin()
    monkeypatch.setattr(visit.store, "monitor", lambda: 1 / 0)
    AdminPassword(visit.store.folder).set("long enough")
    ann.post("/admin/in", {"password": "long enough"})
    found = {
        200: ann.get(), 403: ann.post("/study", {}), 404: ann.get("/nowhere"), 405: ann.ask("PUT", "/study"),
        413: ann.post("/study", {"x": "x" * LIMIT}), 500: ann.get("/admin"),
    }  # fmt: skip
    for status, answer in found.items():
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<style|<script(?! src)|\sstyle=|\son\w+=", answer.text)
        assert not re.search(r"Traceback|sqlalchemy|division|/home|/tmp|/dev", answer.text)
        assert status == 200 or 'href="/study"' in answer.text
    assert title(ann.get()).startswith("About you")


def test_the_cookie_is_closed_to_scripts_and_other_sites(visit, ann):
    page = Page(ann.get("/").text)
    set_cookie = ann.ask("POST", "/consent", data=page.hidden | {"consent": "yes", "answer": "yes"}).headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(set_cookie.split("; "))
    assert "Secure" not in set_cookie
    token = re.search(r"=(\w+);", set_cookie)[1]
    kept, journal = dump(visit)
    assert token not in str(kept)
    assert token not in str(journal)


def test_nothing_about_addresses_is_kept_or_logged(visit, caplog, capfd):
    ann = visit.visitor(**{"x-forwarded-for": "203.0.113.7", "user-agent": "Curious/1.0"})
    ann.begin()
    ann.go()
    everything = str(dump(visit)) + caplog.text + "".join(capfd.readouterr())
    assert "203.0.113" not in everything
    assert "127.0.0.1" not in everything
    assert "Curious" not in everything


# --- promise: nothing tells what is right ---------------------------------------------------------------------------------


def test_pages_do_not_tell_what_is_right(visit, ann):
    """The pages of a question are the same, byte for byte, whatever is right, and name neither cases nor prototypes."""
    design, seen = visit.store.design, plan(visit.store.design, 0)
    wrong = replace(
        design,
        items=tuple(replace(i, correct=next(o for o in i.options if o != i.correct), name="X", id=i.id) for i in design.items),
    )
    form = {"step": 1, "round": 0, "part": "", "token": "t"}
    for step in seen.steps:
        if step.kind in ("trial", "practice", "check"):
            shown = Pages(design).step(seen, step, form).body
            assert shown == Pages(wrong).step(seen, step, form).body
    ann.begin()
    secrets = [item.id for item in design.items if item.item_set != "practice"] + [item.name for item in design.items]
    secrets += [r.source for r in design.representations if " " in r.source] + ["correct", "bcm", "lda"]
    for number in range(1, 17):
        text = ann.go(f"Question {number} ").text
        text = re.sub(r'name="token" value="\w+"', "", text)
        assert not [secret for secret in secrets if re.search(rf"\b{re.escape(secret)}\b", text)]


def test_that_test_would_notice(visit, monkeypatch):
    design, seen = visit.store.design, plan(visit.store.design, 0)
    wrong = replace(design, items=tuple(replace(i, correct=next(o for o in i.options if o != i.correct)) for i in design.items))
    honest = pages_.question

    def leaky(design, trial):  # the right option first
        found = honest(design, trial)
        right = trial.options.index(design.item(trial.item).correct)
        return found | {"options": found["options"][right:] + found["options"][:right]}

    monkeypatch.setattr(pages_, "question", leaky)
    step = next(step for step in seen.steps if step.kind == "trial")
    form = {"step": 1, "round": 0, "part": "", "token": "t"}
    assert Pages(design).step(seen, step, form).body != Pages(wrong).step(seen, step, form).body
