"""The researcher's pages: the password, the monitor, the path of a person."""

import re

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")


from bayescase.study.data.database import MINUTE
from bayescase.study.simulate import Page
from bayescase.web.password import AdminPassword


def logged_in(visit, browser, password="correct horse"):
    AdminPassword(visit.store.folder).set(password)
    return browser.post("/admin/in", {"password": password})


def test_the_monitor_is_closed_without_the_password(visit, ann):
    assert "No password is set" in ann.get("/admin").text
    assert ann.post("/admin/in", {"password": ""}).status_code == 403
    admin = AdminPassword(visit.store.folder)
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
    stranger = visit.visitor()
    assert "People by cell" not in stranger.get("/admin").text
    assert stranger.get("/admin/counts").status_code == 403
    assert "Path" not in stranger.get("/admin/person/x").text
    visit.clock.now += 13 * 60 * MINUTE
    assert "People by cell" not in ann.get("/admin").text
    ann.post("/admin/in", {"password": "correct horse"})
    cookies = dict(ann.client.cookies)
    ann.post("/admin/out")
    ann.client.cookies.update(cookies)
    assert "People by cell" not in ann.get("/admin").text  # the session itself is gone


def test_wrong_passwords_do_not_shut_out_the_one_who_knows_it(visit, ann):
    AdminPassword(visit.store.folder).set("correct horse")
    thief = visit.visitor(address="203.0.113.7")
    for _ in range(AdminPassword.TRIES):
        assert thief.post("/admin/in", {"password": "wrong"}).status_code == 403
    assert thief.post("/admin/in", {"password": "correct horse"}).status_code == 429
    assert "People by cell" in ann.post("/admin/in", {"password": "correct horse"}).text  # from another address
    known = visit.visitor(address="203.0.113.7")  # behind the same address, in a browser that was logged in before
    known.client.cookies.update({visit.app.admin.known_cookie: ann.client.cookies[visit.app.admin.known_cookie]})
    assert "People by cell" in known.post("/admin/in", {"password": "correct horse"}).text
    forged = visit.visitor(address="203.0.113.7")
    forged.client.cookies.update({visit.app.admin.known_cookie: "a." + "0" * 64})
    assert forged.post("/admin/in", {"password": "correct horse"}).status_code == 429


def test_a_new_password_ends_all_sessions(visit, ann):
    assert "People by cell" in logged_in(visit, ann).text
    AdminPassword(visit.store.folder).set("another horse")
    assert "People by cell" not in ann.get("/admin").text
    assert "People by cell" in ann.post("/admin/in", {"password": "another horse"}).text


def test_the_monitor_pauses_and_closes(visit, ann):
    logged_in(visit, ann)
    page = ann.get("/admin")
    token = Page(page.text).hidden["token"]
    assert ann.post("/admin/state", {"state": "paused", "token": "x"}).status_code == 403
    assert ann.post("/admin/state", {"state": "broken", "token": token}).status_code == 403
    assert visit.visitor().post("/admin/state", {"state": "paused", "token": token}).status_code == 403
    assert visit.store.state() == "open"
    assert "<strong>paused</strong>" in ann.post("/admin/state", {"state": "paused", "token": token}).text
    assert visit.store.state() == "paused"
    ann.post("/admin/state", {"state": "closed", "token": token})
    assert visit.store.state() == "closed"
    assert "connect-src 'self'" in ann.get("/admin").headers["content-security-policy"]


def test_the_path_of_a_person_is_blind_until_the_study_is_closed(visit, ann):
    bob = visit.visitor()
    bob.begin()
    bob.go()
    logged_in(visit, ann)
    listed = ann.get("/admin").text
    assert f"/admin/person/{bob.person.public_id}" in listed
    assert "check-1" in listed
    page = ann.get(f"/admin/person/{bob.person.public_id}").text
    assert "question 16" in page
    assert not re.search(r">question 16, \w+, \w+: (right|wrong)<", page)
    assert ann.get("/admin/person/nobody").status_code == 404
    visit.store.set_state("closed")
    assert re.search(r">question 16, \w+, \w+: (right|wrong)<", ann.get(f"/admin/person/{bob.person.public_id}").text)


def test_counts_are_brought_up_to_date(visit, ann):
    logged_in(visit, ann)
    assert "0 answers" in ann.get("/admin/counts").text
    bob = visit.visitor()
    bob.begin()
    bob.go()
    assert "16 answers" in ann.get("/admin/counts").text
