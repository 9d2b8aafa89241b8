"""Every task and layout through the pages, languages, pictures, and a study below a path."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from sqlalchemy import select

from bayescase.study.data.tables import answers, events, responses
from bayescase.study.design.design import Check, Ending, Likert, Stimulus
from bayescase.study.design.design_file import add_picture, freeze, write_design
from bayescase.study.design.schedule import Step, plan
from bayescase.study.pages.pages import Pages
from bayescase.study.simulate import Page

from ..designs import between, predicting, rating_design, small_design
from ..people import HOST, visiting
from .visits import dump, ruled, title

# --- other tasks ----------------------------------------------------------------------------------------------------------


def test_predicting_through_the_pages(frozen):
    with visiting(frozen(predicting(item_ratings=(Likert("sure-of-it", "How sure?", ("no", "yes")),)))) as visit:
        ann = visit.visitor()
        ann.begin()
        page = ann.go("Question 1 ")
        assert "What it is about" in page.text
        assert 'class="explanation"' in page.text
        for label in ("yes", "no", "perhaps"):
            assert f">{label}</label>" in page.text
        form = ann.form(page)
        del form["sure-of-it"]
        wrong = ann.post("/study", form)
        assert wrong.status_code == 400
        assert re.search(r'id="choice-0"[^>]* checked', wrong.text)  # what was chosen stays chosen
        ann.post("/study", ann.form(page, **{"sure-of-it": "1"}))
        with visit.store.reading() as connection:
            kept = connection.execute(select(answers)).one()
        assert kept.ratings == {"sure-of-it": 1}
        assert kept.choice == plan(visit.store.design, 0).trials[0].options[0]
        assert title(ann.go()).startswith("Thank you")


def test_rating_through_the_pages(frozen):
    with visiting(frozen(rating_design())) as visit:
        ann = visit.visitor()
        ann.begin()
        page = ann.go("Question 1 ")
        assert "The model says: " in page.text
        assert 'name="choice"' not in page.text
        ann.go()
        with visit.store.reading() as connection:
            kept = connection.execute(select(answers)).all()
        assert [(row.choice, row.correct, row.ratings) for row in kept] == [(None, None, {"trust": 0})] * 16


def test_between_people_everybody_meets_one_condition(frozen):
    with visiting(frozen(between())) as visit:
        for _ in range(2):
            person = visit.visitor()
            person.begin()
            assert "Part 1 of" not in person.go("Question 1 ").text
            person.go()
        with visit.store.reading() as connection:
            kept = connection.execute(select(answers.c.participant_id, answers.c.condition).distinct()).all()
        assert len(kept) == 2
        assert {condition for _, condition in kept} == {"bcm", "lda"}


def test_a_part_is_rated_with_its_explanations_in_view(visit, ann):
    """What is rated is on the page, in the order of words of this person; and the answer belongs to its condition."""
    ann.begin()
    for block in range(2):
        page = ann.go(f"About part {block + 1}")
        condition = plan(visit.store.design, 0).cell.order[block]
        for shown in visit.store.design.explanations:
            names = {line.name for line in shown.stimulus.lines}
            cards = [set(re.findall(r"<li>([^<]*)</li>", card)) for card in page.text.split('class="one"')[1:]]
            assert (names in cards) == (shown.condition == condition)
        visit.clock.now += 6000
        ann.post("/study", ann.form(page, clear=str(block), sure="4"))
    with visit.store.reading() as connection:
        kept = connection.execute(select(responses).where(responses.c.kind == "ratings").order_by(responses.c.id)).all()
    assert [(row.ref, row.values["clear"]) for row in kept] == [("0", 0), ("1", 1)]


def test_comprehension_is_asked_until_it_is_understood(frozen):
    check = Check("task", "What are you asked?", ("Which is largest", "Which group"), 1, 0)
    design = small_design(checks=(check, *small_design().checks))
    with visiting(frozen(design)) as visit:
        ann, bob = visit.visitor(), visit.visitor()
        ann.begin()
        ann.go("A short question")
        again = ann.post("/study", ann.form(choice="0"))
        assert title(again).startswith("Instructions")
        assert "read this again" in again.text
        ann.go("A short question")
        assert title(ann.post("/study", ann.form(choice="1"))).startswith("Practice")
        bob.begin()
        for _ in range(2):
            bob.go("A short question")
            ended = bob.post("/study", bob.form(choice="0"))
        assert title(ended).startswith("The study ends here")
        assert "OUT-1" in ended.text
        assert title(bob.get("/")).startswith("Information") or title(bob.get("/")).startswith("The study ends")


def test_the_window_is_noted_once_and_nothing_else_of_the_device(visit):
    ann = visit.visitor(**{"user-agent": "Curious/1.0"})
    ann.begin()
    ann.go("Instructions")
    ann.post("/study", ann.form(window_width="1280", window_height="720", pixel_ratio="150", touch="0"))
    with visit.store.reading() as connection:
        (kept,) = connection.execute(select(events.c.detail).where(events.c.kind == "device")).scalars().all()
    assert kept == {"window_width": 1280, "window_height": 720, "pixel_ratio": 1.5, "touch": False}


def test_pages_are_in_the_language_of_the_study(frozen):
    with visiting(frozen(small_design(language="de"))) as visit:
        ann = visit.visitor()
        page = ann.get("/")
        assert '<html lang="de">' in page.text
        assert "Ich nehme nicht teil" in page.text
        ann.begin()
        seen = [title(ann.get()).split(" –")[0]]
        for _ in range(60):
            if seen[-1] == "Vielen Dank":
                break
            visit.clock.now += 6000
            seen.append(title(ann.post("/study", ann.form())).split(" –")[0])
        assert {"Über Sie", "Anleitung", "Übung", "Frage 1 von 16", "Eine kurze Pause", "Zu Teil 1", "Wie war es?"} <= set(seen)


def test_pictures_are_served_and_nothing_else(frozen, tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    folder = tmp_path / "study"
    name = add_picture(tmp_path / "a.png", folder)
    design = small_design()
    item = replace(design.items[0], stimulus=Stimulus("picture", text="a <dish>", file=name))
    write_design(replace(design, items=(item, *design.items[1:])), folder)
    freeze(folder)
    with visiting(folder) as visit:
        ann = visit.visitor()
        answer = ann.get(f"/media/{name}")
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"\x89PNG", "image/png")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        for other in ("secret.key", "..%2fsecret.key", "design.json", f"{name}x"):
            assert ann.get(f"/media/{other}").status_code == 404
        pages, design = Pages(visit.store.design), visit.store.design
        steps = [(plan(design, slot), Step("trial", str(n))) for slot in range(2) for n in range(16)]
        shown = "".join(pages.step(mine, step, {}).body.decode() for mine, step in steps)
        assert f'<img class="file" src="/media/{name}" alt="a &lt;dish&gt;">' in shown


def test_an_ending_can_send_the_id_back(frozen):
    """SONA wants it; it is in the person's own browser, not in the database."""
    ending = Ending("C1", "https://school.example/credit?code=C1&survey_code={id}")
    with visiting(frozen(ruled(complete=ending))) as visit:
        ann = visit.visitor()
        ann.begin("?PROLIFIC_PID=a%26b")
        page = ann.go()
        assert 'href="https://school.example/credit?code=C1&amp;survey_code=a%26b"' in page.text
        assert "a&b" not in str(dump(visit))
        other = visit.visitor()
        other.post("/return", {"receipt": visit.store.receipt_of(ann.person)})
        assert "school.example" not in other.get("/study").text


# --- below a path ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stripped", [False, True])
def test_the_whole_flow_below_a_path(frozen, stripped):
    """A proxy may take the path away before it passes a request on, or not."""
    with visiting(frozen(small_design()), path="/taste/two/") as visit:
        ann, app = visit.visitor(), visit.app

        async def proxy(scope, receive, send):
            rest = scope["path"].removeprefix("/taste/two") or "/"
            await app(scope | {"path": rest, "raw_path": rest.encode()} if stripped else scope, receive, send)

        ann.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=proxy), base_url=HOST, headers={"origin": HOST})

        def ask(method, path, **more):
            assert path.startswith("/taste/two")
            answer = ann.ask(method, path, **more)
            return ask("GET", answer.headers["location"]) if answer.status_code == 303 else answer

        page = ask("GET", "/taste/two/")
        assert not re.findall(r'(?:href|src|action)="/(?!taste/two)', page.text)
        form = Page(page.text)
        answer = ask("POST", form.action, data=form.hidden | {"consent": "yes", "answer": "yes"})
        for _ in range(60):
            if title(answer).startswith("Thank you"):
                break
            visit.clock.now += 6000
            assert not re.findall(r'(?:href|src|action)="/(?!taste/two)', answer.text)
            answer = ask("POST", Page(answer.text).action, data=ann.form(answer))
        assert title(answer).startswith("Thank you")
        cookie = next(one for one in ann.client.cookies.jar if one.name == visit.app.cookie)
        assert cookie.path == "/taste/two"
        assert ask("GET", "/taste/two/static/study.css").status_code == 200
        assert stripped or ann.ask("GET", "/tasteless").status_code == 404
