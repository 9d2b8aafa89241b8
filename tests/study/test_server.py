"""The pages over HTTP: the flow, and everything that people, browsers and attackers do to it."""

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from click.testing import CliRunner
from sqlalchemy import select

from bayescase.cli.main import main
from bayescase.study import pages as pages_
from bayescase.study.design import Ending, Item, Line, Stimulus, write_design
from bayescase.study.export import collect, opened, reading
from bayescase.study.journal import compare, read_journal
from bayescase.study.pages import Pages, picture
from bayescase.study.schedule import plan
from bayescase.study.security import LIMIT, Admin, same_origin
from bayescase.study.simulate import Page, Rates, simulate
from bayescase.study.store import AWAY, MINUTE
from bayescase.study.tables import answers, metadata, responses

from .designs import small_design
from .people import HOST, visiting

EVIL = "'; DROP TABLE answers; -- <script>window.evil = 1</script> \"><img src=x onerror=alert(1)> {{ 7*7 }} \x00 %00 漢字"


def ruled(**rules):
    design = small_design()
    return replace(design, rules=replace(design.rules, **rules))


@pytest.fixture
def visit(frozen):
    with visiting(frozen(small_design())) as found:
        yield found


@pytest.fixture
def ann(visit):
    return visit.visitor()


def dump(visit):
    """Everything that is kept."""
    with visit.store.reading() as connection:
        kept = {table.name: connection.execute(select(table)).all() for table in metadata.sorted_tables}
    return kept, read_journal(visit.store.folder)


def title(answer):
    return Page(answer.text).title


def count(visit, table=answers):
    with visit.store.reading() as connection:
        return len(connection.execute(select(table.c.id)).all())


# --- the flow -------------------------------------------------------------------------------------------------------------


def test_the_whole_flow_on_both_databases(place):
    folder, database = place(small_design())
    with visiting(folder, database) as visit:
        ann = visit.visitor()
        assert title(ann.get("/")).startswith("Information")
        assert title(ann.begin()).startswith("About you")
        end = ann.go()
        assert "DONE-1" in end.text
        assert "Thank you. We compare two ways" in end.text
        assert ann.person.status == "complete"
        assert count(visit) == 16
        with visit.store.reading() as connection:
            assert not compare(connection, folder)
        assert title(ann.post("/study", {"step": "0", "round": "0", "part": "", "token": "x"})).startswith("This form was not")
        assert title(ann.get("/")).startswith("Information")  # the next person at this computer
        assert "go to your last page" in ann.get("/").text


def test_what_is_chosen_is_what_is_stored(visit, ann):
    ann.begin()
    ann.go("Question 1 ")
    for number in range(4):
        trial = plan(visit.store.design, 0).trials[number]
        ann.post("/study", ann.form(choice=str(number)))
        with visit.store.reading() as connection:
            kept = connection.execute(select(answers).where(answers.c.trial == number)).one()
        assert kept.choice == trial.options[number]
        assert tuple(kept.options) == trial.options


def test_times_of_the_browser_are_stored_and_checked(visit, ann):
    ann.begin()
    ann.go("Question 1 ")
    visit.clock.now += 5000
    good = {"shown_ms": "90", "first_input_ms": "2000", "submitted_ms": "4000", "hidden_ms": "10", "blur_count": "1"}
    ann.post("/study", ann.form(**good))
    visit.clock.now += 5000
    ann.post("/study", ann.form(**good | {"submitted_ms": "999999"}))
    ann.post("/study", ann.form(shown_ms="-1", first_input_ms="x", submitted_ms="9" * 30, hidden_ms="1e3", blur_count="٣"))
    with visit.store.reading() as connection:
        first, second, third = connection.execute(select(answers).order_by(answers.c.trial)).all()
    assert [getattr(first, name) for name in good] == [90, 2000, 4000, 10, 1]
    assert not first.timing_differs
    assert second.timing_differs
    assert [getattr(third, name) for name in good] == [None] * 5


def test_practice_tells_whether_it_was_right_and_the_study_does_not(visit, ann):
    ann.begin()
    ann.go("Practice")
    trial = plan(visit.store.design, 0).practice[0]
    right = trial.options.index(visit.store.design.item(trial.item).correct)
    assert title(ann.post("/study", ann.form(choice=str(right)))).startswith("Practice: right")
    assert title(ann.get()).startswith("Practice: right")  # also after a reload
    assert title(ann.post("/study", ann.form())).startswith("Question 1 of 16")


def test_declining_takes_no_slot(visit, ann):
    page = Page(ann.get("/").text)
    declined = ann.post("/consent", page.hidden | {"answer": "no"})
    assert "NO-1" in declined.text
    assert not visit.store.monitor()[0].total(2)
    assert visit.store.monitor()[0].declined == 1


def test_consent_needs_the_tick(visit, ann):
    page = Page(ann.get("/").text)
    for given in ({}, {"answer": "yes"}, {"consent": "yes"}, {"consent": "no", "answer": "yes"}):
        answer = ann.post("/consent", page.hidden | given)
        assert answer.status_code == 400
        assert "tick the box" in answer.text
    assert ann.person is None


def test_endings_can_lead_to_the_platform(frozen):
    complete = Ending("C1", "https://app.example.com/submissions/complete?cc=C1&x=1")
    with visiting(frozen(ruled(complete=complete))) as visit:
        ann = visit.visitor()
        ann.begin()
        assert 'href="https://app.example.com/submissions/complete?cc=C1&amp;x=1"' in ann.go().text


# --- promise: GET changes nothing -----------------------------------------------------------------------------------------

PATHS = ("/", "/?PROLIFIC_PID=ann", "/study", "/link", "/withdraw", "/admin", "/nowhere", "/consent", "/continue", "/resume/x")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_looking_changes_nothing(visit, ann, method):
    before = dump(visit)
    for path in PATHS:
        ann.ask(method, path)
    assert dump(visit) == before
    ann.begin()
    ann.go("Practice")
    before = dump(visit)
    visit.clock.now += 10 * MINUTE
    for path in (*PATHS, f"/resume/{visit.store.token_of(ann.person.public_id)}"):
        ann.ask(method, path)
        visit.visitor().ask(method, path)
    assert dump(visit) == before


# --- promise: on disk before the next page is sent ------------------------------------------------------------------------


def kept_when_answered(visit, ann):
    """Whether an answer was in both copies at the moment when the server began to reply."""
    ann.begin()
    ann.go("Question 1 ")
    found = []

    async def watching(scope, receive, send):
        async def watched(message):
            if message["type"] == "http.response.start" and scope["method"] == "POST":
                found.append((count(visit), sum(record["table"] == "answers" for record in read_journal(visit.store.folder))))
            await send(message)

        await visit.app(scope, receive, watched)

    form = ann.form()
    cookies = ann.client.cookies
    ann.client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app=watching), base_url=HOST, headers={"origin": HOST}, cookies=cookies
    )
    ann.post("/study", form)
    return found == [(1, 1)]


def test_an_answer_is_in_both_copies_before_the_server_replies(visit, ann):
    assert kept_when_answered(visit, ann)


@pytest.mark.parametrize("broken", ["later", "one copy"])
def test_that_too_would_be_noticed(visit, ann, monkeypatch, broken):
    record, threads = visit.store.record, []
    if broken == "later":

        def later(*given):
            if visit.store.step_of(given[0]).kind != "trial":
                return record(*given)
            threads.append(threading.Timer(0.3, record, given))
            threads[-1].start()
            return "kept"

        monkeypatch.setattr(visit.store, "record", later)
    else:
        monkeypatch.setattr(visit.store.journal, "append", lambda records: None)
    assert not kept_when_answered(visit, ann)
    for thread in threads:
        thread.join()


# --- promise: once, and never changed -------------------------------------------------------------------------------------


def test_replayed_late_and_early_forms_lead_to_the_current_page(visit, ann):
    ann.begin()
    forms = []
    ann.go("Question 1 ")
    for _ in range(3):
        forms.append(ann.form())
        ann.post("/study", forms[-1])
    assert title(ann.get()).startswith("Question 4 ")
    before = dump(visit)
    for form in (*forms, *reversed(forms)):
        assert title(ann.post("/study", form | {"choice": "2"})).startswith("Question 4 ")
    assert dump(visit) == before
    ahead = ann.form() | {"step": str(ann.person.step + 1)}
    assert ann.post("/study", ahead).status_code == 403
    assert dump(visit) == before


def test_a_second_tab_and_the_back_button_cannot_answer_twice(visit, ann):
    ann.begin()
    ann.go("Question 1 ")
    first, second = ann.form(choice="0"), ann.form(choice="1")
    ann.post("/study", first)
    assert title(ann.post("/study", second)).startswith("Question 2 ")
    assert title(ann.get()).startswith("Question 2 ")
    assert count(visit) == 1
    assert "no-store" in ann.get().headers["cache-control"]


def test_a_double_click_on_consent_is_one_person(visit, ann):
    page = Page(ann.get("/").text)
    form = page.hidden | {"consent": "yes", "answer": "yes"}
    ann.post("/consent", form)
    other = visit.visitor()  # the second click left before the first one's cookie came
    other.post("/consent", form)
    assert ann.person.id == other.person.id
    assert visit.store.monitor()[0].total(2) == 1


def test_the_same_person_of_a_platform_comes_back_to_their_place(visit, ann):
    ann.begin("?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=1")
    ann.go("Question 2 ")
    elsewhere = visit.visitor()
    assert title(elsewhere.begin("?PROLIFIC_PID=ann")).startswith("Question 2 ")
    shared = title(ann.begin("?PROLIFIC_PID=bob"))  # another person at the same computer
    assert shared.startswith("About you")
    kept, journal = dump(visit)
    assert '"ann"' not in str(kept).replace("'", '"')
    assert "PROLIFIC" not in str(journal)
    (consent, _) = [event.detail for event in kept["events"] if event.kind == "consent"]
    assert set(consent) == {"slot", "study", "session"}
    assert len(consent["session"]) == 64


def test_an_early_form_in_a_break_changes_nothing(visit, ann):
    ann.begin()
    ann.go("A short break")
    before = dump(visit)
    visit.clock.now += 2000
    early = ann.post("/study", ann.form())
    assert early.status_code == 409
    assert "Not yet:</strong> 3 more seconds" in early.text
    assert dump(visit) == before
    visit.clock.now += 3000
    assert title(ann.post("/study", ann.form(early))).startswith("Question 5 ")


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


ORIGINS = [
    ({"sec-fetch-site": "same-origin"}, True),
    ({"sec-fetch-site": "none"}, True),
    ({"sec-fetch-site": "same-site", "origin": HOST}, False),
    ({"sec-fetch-site": "cross-site", "origin": HOST}, False),
    ({"sec-fetch-site": "rubbish"}, False),
    ({"origin": HOST}, True),
    ({"origin": HOST.replace("http", "https")}, True),  # a proxy speaks HTTPS
    ({"origin": "http://evil.test"}, False),
    ({"origin": f"{HOST}.evil.test"}, False),
    ({"origin": f"{HOST}:8001"}, False),
    ({"origin": "null"}, False),
    ({"origin": "null", "referer": f"{HOST}/study"}, True),
    ({"referer": f"{HOST}/study"}, True),  # browsers older than 2020
    ({"referer": "http://evil.test/study.test"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("headers", "ours"), ORIGINS)
def test_forms_of_other_sites_are_refused(headers, ours):
    given = {name.encode(): value.encode() for name, value in (headers | {"host": "study.test"}).items()}
    assert same_origin(given) == ours
    assert (
        not same_origin({name: value for name, value in given.items() if name != b"host"} | {b"host": b""})
        or "sec-fetch-site" in headers
    )


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
    Admin(visit.store.folder).set("long enough")
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


# --- coming back and leaving ----------------------------------------------------------------------------------------------


def test_the_personal_link_goes_on_in_another_browser(visit, ann):
    ann.begin()
    ann.go("Question 3 ")
    address = re.search(r'href="(http://study.test/resume/\w+)"', ann.get("/link").text)[1]
    other = visit.visitor()
    assert title(other.get(address.removeprefix(HOST))).startswith("Question 3 ")
    other.post("/study", other.form())
    assert title(ann.get()).startswith("Question 4 ")


@pytest.mark.parametrize(
    ("rules", "gap", "first", "then"),
    [
        ({"resume": "resume"}, 3 * AWAY, "Welcome back", "Question 3 "),
        ({"resume": "resume"}, 24 * 60 * MINUTE, "Welcome back", "Question 3 "),
        ({"resume": "resume within", "resume_minutes": 30}, 20 * MINUTE, "Welcome back", "Question 3 "),
        ({"resume": "resume within", "resume_minutes": 30}, 31 * MINUTE, "The time is over", None),
        ({"resume": "restart block"}, 3 * AWAY, "Welcome back", "Question 1 "),
        ({"resume": "refuse"}, 3 * AWAY, "The time is over", None),
        ({"resume": "refuse"}, AWAY, "Question 3 ", None),
    ],
)
def test_coming_back(frozen, rules, gap, first, then):
    with visiting(frozen(ruled(**rules))) as visit:
        ann = visit.visitor()
        ann.begin()
        ann.go("Question 3 ")
        visit.clock.now += gap
        page = ann.get()
        assert title(page).startswith(first)
        if then is not None:
            assert title(ann.post("/continue", ann.form(page))).startswith(then)
            ann.go()
        elif first.startswith("The time"):
            assert "LATE-1" in page.text
            before = dump(visit)
            assert title(ann.post("/study", ann.form())).startswith(("The time", "This form"))
            assert dump(visit) == before
        with visit.store.reading() as connection:
            assert not compare(connection, visit.store.folder)


def test_withdrawing_asks_first_and_deletes_all(visit, ann):
    ann.begin()
    ann.go("Question 6 ")
    form = ann.form()
    asked = ann.get("/withdraw")
    assert "cannot be undone" in asked.text
    assert count(visit) == 5
    assert title(ann.post("/withdraw", ann.form(asked))).startswith("You have withdrawn")
    assert count(visit) == count(visit, responses) == 0
    for method, path in (("GET", "/study"), ("GET", "/withdraw"), ("POST", "/study"), ("POST", "/continue")):
        answer = ann.ask(method, path, data=form if method == "POST" else None)
        assert answer.status_code in (200, 303, 403)
    assert title(ann.get()).startswith("You have withdrawn")
    assert count(visit) == 0
    assert title(ann.begin()).startswith("About you")  # may begin anew


def test_every_page_offers_to_withdraw(visit, ann):
    page = ann.begin()
    while not title(page).startswith("Thank you"):
        assert 'href="/withdraw"' in page.text
        visit.clock.now += 6000
        page = ann.post("/study", ann.form(page))
    assert 'href="/withdraw"' in page.text


# --- the researcher -------------------------------------------------------------------------------------------------------


def test_the_monitor_is_closed_without_the_password(visit, ann, monkeypatch):
    assert "No password is set" in ann.get("/admin").text
    assert ann.post("/admin/in", {"password": ""}).status_code == 403
    admin = Admin(visit.store.folder)
    with pytest.raises(ValueError, match="8 or more"):
        admin.set("short")
    admin.set("correct horse")
    assert "correct horse" not in admin.path.read_text()
    assert admin.path.read_text().startswith("$argon2id$")
    assert admin.path.stat().st_mode & 0o777 == 0o600
    assert "Password" in ann.get("/admin").text
    assert ann.post("/admin/in", {"password": "wrong"}).status_code == 403
    seen = ann.post("/admin/in", {"password": "correct horse"})
    assert "People by cell" in seen.text
    assert "People by cell" not in visit.visitor().get("/admin").text
    visit.clock.now += 13 * 60 * MINUTE
    assert "People by cell" not in ann.get("/admin").text
    ann.post("/admin/in", {"password": "correct horse"})
    cookies = dict(ann.client.cookies)
    ann.post("/admin/out")
    ann.client.cookies.update(cookies)
    assert "People by cell" not in ann.get("/admin").text  # the session itself is gone
    for _ in range(Admin.TRIES):
        last = ann.post("/admin/in", {"password": "wrong"})
    assert last.status_code == 429
    assert ann.post("/admin/in", {"password": "correct horse"}).status_code == 429


# --- what is drawn --------------------------------------------------------------------------------------------------------


def test_tables_and_images_are_drawn():
    table = Stimulus("table", (Line("legs", "4", True), Line("<tail>", None, False)), None, (), ())
    image = Stimulus("image", (), (2, 3), (0.0, 1.0, 1.0, None, 0.5, 0.0), (1, 2))
    design = small_design()
    items = tuple(replace(i, stimulus=table if i.item_set == "A" else image) for i in design.items)
    representations = tuple(replace(r, stimulus=image) for r in design.representations)
    design = replace(design, items=items, representations=representations)
    seen = plan(design, 0)
    text = "".join(Pages(design).step(seen, s, {}).body.decode() for s in seen.steps if s.kind == "trial")
    assert "&lt;tail&gt;" in text
    assert '<td><span>4</span><span class="hidden"> (boxed)</span></td>' in text
    drawn = picture(image)
    assert [(bar["x"], bar["y"], bar["n"], bar["ink"]) for bar in drawn["bars"]] == [
        (1, 0, 2, 1.0),
        (0, 1, 1, None),
        (1, 1, 1, 0.5),
    ]
    assert drawn["outline"] == "M1 0h1M1 1h1M1 0v1M2 0h1M2 1h1M3 0v1"


def test_hostile_texts_of_a_design_are_text():
    design = small_design(title=EVIL)
    design = replace(
        design,
        items=tuple(
            replace(i, stimulus=Stimulus("set", (Line(design.title, None, True),), None, (), ())) for i in design.items
        ),
    )
    assert isinstance(design.items[0], Item)
    for step in plan(design, 0).steps:
        text = Pages(design).step(plan(design, 0), step, {}, ending=design.rules.complete).body.decode()
        assert "<script>w" not in text
        assert "<img" not in text


# --- simulated people -----------------------------------------------------------------------------------------------------


def test_simulated_people_answer_as_they_are_told(place):
    folder, database = place(ruled(timeout_minutes=60))
    done = simulate(folder, 6, rates=Rates({"bcm": 1.0, "lda": 0.0}, attention=1.0, seed=1), database=database, at_once=6)
    assert (done.people, done.complete, done.dropped, done.answers, done.errors) == (6, 6, 0, 96, ())
    with visiting(folder, database) as visit:
        with visit.store.reading() as connection:
            kept = connection.execute(select(answers)).all()
            assert not compare(connection, folder)
        assert all(row.correct == (row.condition == "bcm") for row in kept)
        assert not any(row.timing_differs for row in kept)
        checks = [row for row in dump(visit)[0]["responses"] if row.kind == "check"]
        assert len(checks) == 6 * len(visit.store.design.checks)
        assert all(row.values["correct"] for row in checks)
        assert {row.simulated for row in dump(visit)[0]["participants"]} == {True}
        live, pilot = visit.store.monitor()
        assert (live.total(1), pilot.total(1), pilot.simulated) == (0, 6, 6)


def test_a_seed_repeats_a_simulation(frozen):
    kept = []
    for name in ("one", "two"):
        folder = frozen(small_design(), name)
        done = simulate(folder, 5, rates=Rates({"bcm": 0.8, "lda": 0.6}, 1.0, 1.0, dropout=0.5, seed=4), at_once=3)
        assert done.dropped > 0
        assert not done.errors
        with visiting(folder) as visit:
            people = {row.id: row.first_slot for row in dump(visit)[0]["participants"]}
            kept.append(sorted((people[row.participant_id], row.trial, row.choice) for row in dump(visit)[0]["answers"]))
    assert kept[0] == kept[1]


# --- the command line -----------------------------------------------------------------------------------------------------


def test_commands(frozen, tmp_path, monkeypatch):
    monkeypatch.delenv("BAYESCASE_ADMIN_PASSWORD", raising=False)
    folder, run = frozen(small_design()), CliRunner().invoke
    shown = run(main, ["study", "monitor", str(folder)])
    assert shown.exit_code == 1
    assert "no data" in shown.output
    shown = run(main, ["study", "simulate", str(folder), "--n", "2", "--json"])
    assert shown.exit_code == 0, shown.output
    assert '"complete": 2' in shown.output
    with opened(folder) as engine, reading(engine) as connection:
        passed = [row["checks_failed"] == 0 for row in collect(connection, small_design()).people]
    assert passed == [True, True]  # options reach the right parameters: 98 % attention, whatever the seed
    shown = run(main, ["study", "monitor", str(folder)])
    assert "pilot: 32 answers" in shown.output
    assert '"answers": 32' in run(main, ["study", "monitor", str(folder), "--json"]).output
    shown = run(main, ["study", "serve", str(folder), "--host", "0.0.0.0"])
    assert shown.exit_code == 1
    assert "needs a password" in shown.output
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shown = run(main, ["study", "serve", str(folder), "--port", str(taken.getsockname()[1])])
    assert shown.exit_code == 1
    assert "is in use; choose another with --port" in shown.output
    assert "Listening" not in shown.output
    write_design(small_design(), tmp_path / "draft")
    shown = run(main, ["study", "serve", str(tmp_path / "draft"), "--live"])
    assert shown.exit_code == 1
    assert "study freeze" in shown.output
    design = small_design()
    half = frozen(replace(design, texts=replace(design.texts, contact="[FILL IN a name]")), "half")
    shown = run(main, ["study", "serve", str(half), "--live"])
    assert shown.exit_code == 1
    assert "filled in in the texts contact" in shown.output
    assert "not frozen" in run(main, ["study", "simulate", str(tmp_path / "draft")]).output
    assert "There is no design.json" in run(main, ["study", "serve", str(tmp_path)]).output


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def serving(folder, port, *options):
    command = [sys.executable, "-m", "bayescase", "study", "serve", str(folder), "--port", str(port), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        try:
            httpx.get(f"http://127.0.0.1:{port}/static/study.css", timeout=5)
            return server
        except httpx.TransportError:
            assert server.poll() is None, server.communicate()
            time.sleep(0.05)
    raise AssertionError("The server did not start.")


def test_the_server_ends_cleanly_and_a_preview_keeps_nothing(tmp_path):
    write_design(small_design(), tmp_path)
    before, port = sorted(tmp_path.iterdir()), free_port()
    server = serving(tmp_path, port)
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"origin": f"http://127.0.0.1:{port}"}, follow_redirects=True
    ) as client:
        page = Page(client.get("/").text)
        assert "About you" in client.post("/consent", data=page.hidden | {"consent": "yes", "answer": "yes"}).text
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=30)
    assert server.returncode == 0
    assert out == ""
    assert "preview" in err
    assert err.endswith("Stopped.\n")
    assert "127.0.0.1 -" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_missing_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    shown = CliRunner().invoke(main, ["study", "serve", str(tmp_path)])
    assert shown.exit_code == 1
    assert "pip install 'bayescase[study]'" in shown.output
