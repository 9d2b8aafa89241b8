"""The pages over HTTP: the flow, and everything that people do to it."""

import threading

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from sqlalchemy import select

from bayescase.study.data.database import MINUTE
from bayescase.study.data.journal import compare, read_journal
from bayescase.study.data.monitor import AWAY
from bayescase.study.data.tables import answers, responses
from bayescase.study.design.design import Ending
from bayescase.study.design.schedule import plan
from bayescase.study.simulate import Page

from ..designs import small_design
from ..people import HOST, visiting
from .visits import count, dump, ruled, title

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


PATHS = (
    "/", "/?PROLIFIC_PID=ann", "/study", "/receipt", "/return", "/withdraw", "/admin", "/admin/counts", "/admin/person/x",
    "/admin/state", "/nowhere", "/consent", "/continue", "/media/x.png",
)  # fmt: skip


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
    for path in (*PATHS, f"/admin/person/{ann.person.public_id}"):
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


def test_ids_of_a_platform_are_kept_as_hashes(visit, ann):
    ann.begin("?PROLIFIC_PID=ann1&STUDY_ID=s&SESSION_ID=1")
    ann.go("Question 2 ")
    assert title(ann.get("/?PROLIFIC_PID=ann1")).startswith("Question 2 ")  # the same browser goes on
    shared = title(ann.begin("?PROLIFIC_PID=bob1"))  # another person at the same computer
    assert shared.startswith("About you")
    kept, journal = dump(visit)
    assert "ann1" not in str(kept) + str(journal)
    assert "PROLIFIC" not in str(journal)
    hashes = kept["participants"][0].other_hashes
    assert set(hashes) == {"STUDY_ID", "SESSION_ID"}
    assert {len(value) for value in hashes.values()} == {64}
    assert [event.detail for event in kept["events"] if event.kind == "consent"] == [{"slot": 0}, {"slot": 1}]


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


# --- coming back and leaving ----------------------------------------------------------------------------------------------


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
