"""A browser without a screen: keeps cookies, reads forms, follows redirects, and can be told to misbehave."""

import asyncio
from contextlib import contextmanager

import httpx

from bayescase.study.pages.server import create_app
from bayescase.study.simulate import Page

HOST = "http://study.test"


class Clock:
    def __init__(self):
        self.now = 1_700_000_000_000

    def __call__(self):
        return self.now


class Visit:
    """An application with its clock, and as many visitors as wanted."""

    def __init__(self, folder, database=None, **settings):
        self.clock = Clock()
        self.app = create_app(folder, database, clock=self.clock, **settings)
        self.store = self.app.store
        self.runner = asyncio.Runner()

    def visitor(self, address="198.51.100.1", **headers):
        return Visitor(self, headers, address)


@contextmanager
def visiting(folder, database=None, **settings):
    visit = Visit(folder, database, **settings)
    try:
        yield visit
    finally:
        visit.runner.close()
        visit.store.close()


class Visitor:
    def __init__(self, visit, headers, address):
        self.visit = visit
        transport = httpx.ASGITransport(app=visit.app, raise_app_exceptions=False, client=(address, 4242))
        self.client = httpx.AsyncClient(transport=transport, base_url=HOST, headers={"origin": HOST} | headers)

    def ask(self, method, path, **settings):
        """One request; redirects are not followed."""
        return self.visit.runner.run(self.client.request(method, path, **settings))

    def get(self, path="/study"):
        answer = self.ask("GET", path)
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer

    def post(self, path, data=None, **settings):
        """A form, and the page where one ends up."""
        answer = self.ask("POST", path, data=data, **settings)
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer

    @property
    def person(self):
        return self.visit.store.find(self.client.cookies.get(self.visit.app.cookie))

    def begin(self, query=""):
        page = Page(self.get(f"/{query}").text)
        return self.post("/consent", page.hidden | {"consent": "yes", "answer": "yes"})

    def form(self, answer=None, **given):
        """The fields of the current page (or of an earlier one), the first choice everywhere."""
        page = Page((answer or self.get()).text)
        return page.hidden | {name: values[0] for name, values in page.choices.items()} | given

    def go(self, until="Thank you", wait=6000):
        """Fill page after page, up to one whose title begins so; the page."""
        answer = self.get()
        for _ in range(60):
            if Page(answer.text).title.startswith(until):
                return answer
            self.visit.clock.now += wait
            answer = self.post("/study", self.form(answer))
            assert answer.status_code == 200, answer.text
        raise AssertionError(f"There is no page {until!r}.")
