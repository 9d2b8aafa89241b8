"""Everything that browsers and attackers do to the pages."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

from sqlalchemy import select

from bayescase.study.data.database import MINUTE
from bayescase.study.data.journal import compare
from bayescase.study.data.tables import participants, responses
from bayescase.study.design.schedule import plan
from bayescase.study.pages import pages as pages_
from bayescase.study.pages.pages import Pages
from bayescase.study.simulate import Page
from bayescase.web.guard import LIMIT
from bayescase.web.password import AdminPassword

from ..designs import predicting, rating_design, small_design
from ..people import visiting
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
            ("GET", "/receipt"),
            ("GET", "/withdraw"),
            ("POST", "/study"),
            ("POST", "/withdraw"),
        ):
            answer = stranger.ask(method, path, headers=headers, data=form if method == "POST" else None)
            assert answer.status_code == 403
            assert "no place in the study" in answer.text
    assert stranger.post("/return", {"receipt": "0000-0000-0000-0000"}).status_code == 403
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
    del form["effort"]
    wrong = ann.post("/study", form | {"pleasant": "3"})
    assert wrong.status_code == 400
    assert re.search(r'id="pleasant-3"[^>]* checked', wrong.text)
    assert title(ann.post("/study", form | {"effort": "no-answer"})).startswith("Thank you")


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


def with_other_rights(design):
    """Another group is right everywhere; the order of words, which depends on the hash, stays."""
    items = tuple(replace(i, correct=next(o for o in i.options if o != i.correct), name="X") for i in design.items)
    found = replace(design, items=items)
    found.__dict__["hash"] = design.hash
    return found


def test_pages_do_not_tell_what_is_right(visit, ann):
    """The pages of a question are the same, byte for byte, whatever is right, and name neither cases nor prototypes."""
    design, seen = visit.store.design, plan(visit.store.design, 0)
    wrong = with_other_rights(design)
    form = {"step": 1, "round": 0, "part": "", "token": "t"}
    for step in seen.steps:
        if step.kind in ("trial", "practice", "check"):
            shown = Pages(design).step(seen, step, form).body
            assert shown == Pages(wrong).step(seen, step, form).body
    ann.begin()
    secrets = [item.id for item in design.items if item.item_set != "practice"] + [item.name for item in design.items]
    secrets += [r.source for r in design.explanations if " " in r.source] + ["correct", "bcm", "lda"]
    for number in range(1, 17):
        text = ann.go(f"Question {number} ").text
        text = re.sub(r'name="token" value="\w+"', "", text)
        assert not [secret for secret in secrets if re.search(rf"\b{re.escape(secret)}\b", text)]


def test_that_test_would_notice(visit, monkeypatch):
    design, seen = visit.store.design, plan(visit.store.design, 0)
    wrong = with_other_rights(design)
    honest = pages_.question

    def leaky(design, plan, trial):  # the right option first
        found = honest(design, plan, trial)
        right = trial.options.index(design.item(trial.item).correct)
        return found | {"options": found["options"][right:] + found["options"][:right]}

    monkeypatch.setattr(pages_, "question", leaky)
    step = next(step for step in seen.steps if step.kind == "trial")
    form = {"step": 1, "round": 0, "part": "", "token": "t"}
    assert Pages(design).step(seen, step, form).body != Pages(wrong).step(seen, step, form).body


@pytest.mark.parametrize("make", [predicting, rating_design])
def test_nor_do_the_other_tasks(make):
    """What will the model say is not to be read from the page; where people rate, its answer is shown on purpose."""
    design = make()
    seen, form = plan(design, 0), {"step": 1, "round": 0, "part": "", "token": "t"}
    if make is predicting:
        wrong = with_other_rights(design)
        for step in seen.steps:
            if step.kind in ("trial", "practice"):
                assert Pages(design).step(seen, step, form).body == Pages(wrong).step(seen, step, form).body
    text = "".join(Pages(design).step(seen, step, form).body.decode() for step in seen.steps if step.kind == "trial")
    assert not re.search(r"\b(bcm|lda|weights|words)\b", re.sub(r'class="[^"]*"', "", text))


# --- headers that are no addresses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "\\", "http://[]/", "a" * 5000, "null"])
@pytest.mark.parametrize("header", ["origin", "referer"])
def test_what_is_no_address_is_refused_with_all_headers(visit, origin, header):
    stranger = visit.visitor()
    stranger.client.headers.pop("origin")
    answer = stranger.ask("POST", "/consent", data={}, headers={header: origin})
    assert answer.status_code == 403
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


# --- a known id, a shared computer ----------------------------------------------------------------------------------------


def test_a_known_id_neither_takes_over_nor_erases(visit, ann):
    """Ids are on a platform's list, in logs and in addresses: knowing one is no proof of being the person."""
    ann.begin("?PROLIFIC_PID=ann1")
    ann.go()
    before = dump(visit)
    thief = visit.visitor()
    page = thief.get("/?PROLIFIC_PID=ann1")
    assert "Somebody has begun with the id" in page.text
    assert visit.app.cookie not in page.headers.get("set-cookie", "")
    other = visit.visitor()
    fresh_form = Page(other.get("/?PROLIFIC_PID=bob1").text).hidden
    forged = thief.post("/consent", fresh_form | {"PROLIFIC_PID": "ann1", "consent": "yes", "answer": "yes"})
    assert forged.status_code == 403  # a form is for the id that it was made for
    for path in ("/study", "/withdraw", "/receipt"):
        assert thief.get(path).status_code == 403
    assert thief.person is None
    assert dump(visit) == before


def test_who_comes_back_needs_their_own_code(visit, ann):
    ann.begin("?PROLIFIC_PID=ann1")
    ann.go("Question 3 ")
    code = visit.store.receipt_of(ann.person)
    assert code in ann.get("/receipt").text
    elsewhere = visit.visitor()
    assert "Somebody has begun" in elsewhere.get("/?PROLIFIC_PID=ann1").text
    wrong = elsewhere.post("/return", {"receipt": "0000-0000-0000-0000"})
    assert wrong.status_code == 403
    assert "not known here" in wrong.text
    assert title(elsewhere.post("/return", {"receipt": code.lower()})).startswith("Question 3 ")
    assert elsewhere.person.id == ann.person.id


def test_no_secret_is_ever_in_an_address(visit, ann):
    """Addresses end in the logs of proxies, in histories and in referrers."""
    ann.begin("?PROLIFIC_PID=ann1")
    token, code = ann.client.cookies[visit.app.cookie], visit.store.receipt_of(ann.person)
    seen = []
    for path in ("/study", "/receipt", "/withdraw", "/return", "/"):
        answer = ann.get(path)
        seen += [*re.findall(r'(?:href|action|src)="([^"]*)"', answer.text), str(answer.url)]
    assert not [address for address in seen if token in address or code in address or code.replace("-", "") in address]
    shown = re.search(r"http://study.test/return#([\w-]+)", ann.get("/receipt").text)
    assert shown[1] == code  # what follows # stays in the browser
    assert all(route.path != "/resume/{token}" for route in visit.app.admin.routes())
    assert ann.get(f"/resume/{token}").status_code == 404


def test_an_address_cannot_replace_the_place_of_this_browser(visit, ann):
    """A link that somebody sends must not put another person's answers into this browser."""
    ann.begin()
    ann.go("Question 2 ")
    bob = visit.visitor()
    bob.begin()
    code, own = visit.store.receipt_of(bob.person), ann.client.cookies[visit.app.cookie]
    for path in (f"/return#{code}", f"/return?receipt={code}", f"/?receipt={code}"):
        ann.get(path)
        assert ann.client.cookies[visit.app.cookie] == own
    assert "has a place in the study already" in ann.get("/return").text


def test_erasing_what_is_complete_needs_the_receipt(visit, ann):
    """The next person at this computer has the cookie, and must not delete what the last one gave."""
    ann.begin()
    ann.go()
    asked = ann.get("/withdraw")
    assert 'name="receipt"' in asked.text
    before = dump(visit)
    bob = visit.visitor()
    bob.begin()
    before = dump(visit)
    for code in ("", "0000-0000-0000-0000", visit.store.receipt_of(bob.person)):
        refused = ann.post("/withdraw", ann.form(asked, receipt=code))
        assert refused.status_code == 403
        assert "Nothing was deleted" in refused.text
    assert dump(visit) == before
    code = visit.store.receipt_of(ann.person)
    assert title(ann.post("/withdraw", ann.form(asked, receipt=code))).startswith("You have withdrawn")
    assert count(visit) == 0


def test_who_has_withdrawn_cannot_take_part_again(visit, ann):
    ann.begin("?PROLIFIC_PID=ann1")
    ann.go("Question 2 ")
    assert "cannot take part again with the same id" in ann.get("/withdraw").text
    ann.post("/withdraw", ann.form(ann.get("/withdraw")))
    for browser in (ann, visit.visitor()):
        refused = browser.get("/?PROLIFIC_PID=ann1")
        assert refused.status_code == 403
        assert "Each id can take part once" in refused.text


# --- admission ------------------------------------------------------------------------------------------------------------


def admitted(frozen, **changes):
    design = small_design()
    rules = replace(design.rules, admission=replace(design.rules.admission, **changes))
    return visiting(frozen(replace(design, rules=rules)))


def test_nobody_without_an_id_gets_a_live_place(frozen):
    with admitted(frozen, who="id", id_pattern="[0-9a-f]{24}") as visit:
        for query in ("", "?PROLIFIC_PID=", "?PROLIFIC_PID=ann", f"?other={'a' * 24}"):
            answer = visit.visitor().get(f"/{query}")
            assert answer.status_code == 403
            assert "use the link that you got" in answer.text
        stranger = visit.visitor()
        assert title(stranger.begin(f"?PROLIFIC_PID={'a' * 24}")).startswith("About you")
        assert count(visit, participants) == 1


def test_many_places_in_a_second_are_not_given(frozen):
    with admitted(frozen, per_minute=3) as visit:
        statuses = []
        for _ in range(8):
            stranger = visit.visitor()
            form = Page(stranger.get("/").text).hidden
            statuses.append(stranger.post("/consent", form | {"consent": "yes", "answer": "yes"}).status_code)
        assert statuses == [200] * 3 + [429] * 5
        assert count(visit, participants) == 3


def test_a_form_of_consent_declines_once_and_grows_old(visit, ann):
    form = Page(ann.get("/").text).hidden | {"answer": "no"}
    for _ in range(5):
        assert "NO-1" in ann.post("/consent", form).text
    assert visit.store.monitor()[0].declined == 1
    visit.clock.now += 13 * 60 * MINUTE
    late = ann.post("/consent", form | {"consent": "yes", "answer": "yes"})
    assert late.status_code == 403
    assert "too old" in late.text


@pytest.mark.parametrize(("state", "words"), [("paused", "Nobody new can begin"), ("closed", "takes no answers any more")])
def test_a_study_that_is_paused_or_closed_says_so(visit, ann, state, words):
    ann.begin()
    ann.go("Question 2 ")
    form = ann.form()
    visit.store.set_state(state)
    refused = visit.visitor().get("/")
    assert refused.status_code == 503
    assert words in refused.text
    page = ann.post("/study", form)
    assert title(page).startswith("Question 3 " if state == "paused" else "The study is closed")
    visit.store.set_state("open")
    assert title(ann.get()).startswith("Question 3 " if state == "paused" else "Question 2 ")
