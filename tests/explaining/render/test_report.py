"""The report and the cards in notebooks: whole, harmless, small, and usable in a real browser."""

import dataclasses
import html.parser
import re

import numpy as np
import pytest
import sklearn

from bayescase import BayesianCaseModel

from ...helpers import fit_model

pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
from matplotlib.text import Text

from bayescase.explaining.render.blocks import Table
from bayescase.explaining.render.report import feature_table, write_report
from bayescase.explaining.render.sweeps import plot_ribbon

EVIL = "<script>window.evil = 1</script>"
WORSE = '"><img src=x onerror="window.evil = 1">'


def fit(x, S=3, **settings):
    return fit_model(x, S, **({"n_iter": 40, "n_chains": 2, "random_state": 0} | settings))


@pytest.fixture(scope="module")
def learned(mixed):
    return fit(mixed[0], "auto", max_clusters=12, q="learn")


@pytest.fixture(scope="module")
def hostile():
    kind = np.arange(24) % 2
    columns = {EVIL: np.where(kind, EVIL, "a"), WORSE: np.where(kind, WORSE, "b"), "]]>": kind, "{{title}}": kind + 1}
    return fit(columns, 2, case_names=[EVIL + WORSE] * 24).name_clusters([EVIL, WORSE])


@pytest.fixture(scope="module")
def pages(recipes, learned, hostile, alone, keyless, planted, tmp_path_factory):
    """name → path of a report."""
    folder = tmp_path_factory.mktemp("reports")
    pictures = fit(planted(N=40, P=24, V=2)[0])
    made = {
        "recipes": recipes,
        "learned": learned,
        "hostile": hostile,
        "pictures": pictures,
        "alone": alone,
        "keyless": keyless,
        "folded": recipes.fold(3),
    }
    for name, model in made.items():
        shape = (4, 6) if name == "pictures" else None
        model.report(folder / f"{name}.html", image_shape=shape, title=EVIL if name == "hostile" else None)
    return {name: folder / f"{name}.html" for name in made}


ALL = ("recipes", "learned", "hostile", "pictures", "alone", "keyless", "folded")


class Reader(html.parser.HTMLParser):
    """Tags, their attributes, and the text, as a browser would see them; complains about tags that do not match."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if "style" not in self.stack:
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.mark.parametrize("name", ALL)
def test_a_report_is_one_whole_page_that_fetches_nothing(pages, name):
    text = pages[name].read_text("utf-8")
    page = Reader(text)
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
    assert not {"script", "link", "iframe", "object", "form"} & {tag for tag, _ in page.tags}
    assert not re.search(r"https?:|@import|url\(", text)
    for image in page.all("img"):
        assert image["src"].startswith("data:image/png;base64,")
        assert len(image["alt"]) > 20
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in page.all("a")]
    assert links
    assert all(link[1:] in ids for link in links)
    labelled = {attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs}
    assert labelled <= set(ids)
    assert not any(key.startswith("on") for _, attrs in page.tags for key in attrs)


@pytest.mark.parametrize("name", ALL)
def test_every_figure_has_a_sentence_and_a_table(pages, name):
    figures = re.findall(r"<figure>.*?</figure>", pages[name].read_text("utf-8"), re.S)
    assert figures
    for figure in figures:
        sentence = re.search(r"<figcaption>(.+?)</figcaption>", figure)[1]
        assert sentence.endswith(".")
        assert re.search(r"<details>.*<table><caption>.+?</caption><thead>.*<tbody>\s*<tr>.*</details>", figure, re.S)


@pytest.mark.parametrize("name", ALL)
def test_tables_have_captions_and_headers_and_no_ragged_rows(pages, name):
    for table in re.findall(r"<table>.*?</table>", pages[name].read_text("utf-8"), re.S):
        head, body = re.search(r"<caption>.+?</caption><thead>(.*)</thead><tbody>(.*)</tbody>", table, re.S).groups()
        width = len(re.findall(r'<th scope="col"', head))
        assert width == head.count("<th")
        for row in re.findall(r"<tr.*?</tr>", body, re.S):
            assert row.count('<th scope="row"') == 1
            assert row.count("<td") == width - 1


def text_of(path):
    return re.sub(r"\s+", " ", " ".join(Reader(path.read_text("utf-8")).text))


def test_the_report_says_what_the_explanation_says(pages, recipes):
    explanation, text = recipes.explain(), text_of(pages["recipes"])
    assert explanation.verdict in text
    assert "Run longer with n_iter=80." in text
    for cluster in explanation.clusters:
        card = cluster.card()
        assert cluster.title in text
        assert f"{card.size}, {card.like}" in text
        for d in (*card.has, *card.rare):
            assert re.search(
                rf"{re.escape(d.words)} .{{0,20}}{re.escape(d.shares)}" + (f"; {re.escape(d.role)}" if d.role else ""), text
            )
        assert all(name in text for name, _ in card.items)
        assert all(c.name in text for c in cluster.criticisms)
        if cluster.key_features:
            assert str(recipes.explain_agreement(cluster.cluster)) in text
    assert any(cluster.key_features for cluster in explanation.clusters)


def test_the_report_has_the_names_of_cases_and_clusters_in_tables_and_pictures(pages, recipes, monkeypatch, tmp_path):
    """The ribbon is a picture: its labels are read before it is drawn."""
    from bayescase.explaining.render import report as module

    drawn = []
    monkeypatch.setattr(module, "plot_ribbon", lambda fitted, **names: drawn.append(plot_ribbon(fitted, **names)) or drawn[-1])
    recipes.report(tmp_path / "x.html")
    labels = " ".join(t.get_text() for t in drawn[0].findobj(Text))
    for row in recipes.prototypes_:
        name = recipes.case_names_[row]
        assert name[:20] in labels
        assert name in text_of(pages["recipes"])


def test_no_absence_is_listed_unless_it_sets_the_cluster_apart(recipes):
    for cluster in recipes.explain().clusters:
        rare = {d.feature for d in cluster.rare}
        rows = next(block for block in feature_table(cluster) if isinstance(block, Table)).rows
        assert rows
        assert all(value == "yes" or name in rare for name, value, *_ in rows)


def test_a_model_whose_clusters_are_settled_is_not_shouted_at(keyless, tmp_path):
    """Short on one trace only."""
    for converged, sound, expected in (
        (True, True, "Trust it:"),
        (False, True, "Trust the clusters:"),
        (False, False, "Take care:"),
    ):
        fitted = dataclasses.replace(keyless.fitted_)
        verdict = dataclasses.replace(keyless.diagnostics_, converged=converged, sound=sound)
        fitted.__dict__["diagnostics"] = verdict
        write_report(fitted, tmp_path / "x.html")
        text = (tmp_path / "x.html").read_text("utf-8")
        assert f"<strong>{expected}</strong>" in text
        assert ('class="verdict bad"' in text) == (not sound)


def test_the_report_of_a_model_that_learned_shows_what_it_learned(pages, learned):
    text = text_of(pages["learned"])
    assert "How many clusters?" in text
    assert f"{learned.hyperparameters_['q'].mean:.4g}" in text


def test_the_report_shows_how_clusters_fold(pages, recipes):
    tree = recipes.explain_tree()
    for name in ("recipes", "folded"):
        page = " ".join("".join(Reader(pages[name].read_text("utf-8")).text).split())
        assert "Which clusters may be told as one" in page
        assert tree.sentence in page
        assert tree.joins[-1].prototype.name in page
    assert "3 clusters, folded from 5" in page
    assert "Which clusters may be told as one" not in pages["alone"].read_text("utf-8")


def test_the_report_says_where_chains_differ(apart, words, tmp_path):
    found = apart.explain_differences()
    write_report(apart.fitted_, tmp_path / "apart.html")
    page = " ".join("".join(Reader((tmp_path / "apart.html").read_text("utf-8")).text).split())
    assert "Where the chains differ" in page
    assert found.sentence in page
    for case in found.cases:
        assert f"{case.name}cluster {case.cluster}" in page.replace(" cluster", "cluster")
    write_report(words.fitted_, tmp_path / "words.html")
    assert not words.explain_differences().ways
    assert "Where the chains differ" not in (tmp_path / "words.html").read_text("utf-8")


def test_hostile_names_are_text(pages, hostile):
    text = pages["hostile"].read_text("utf-8")
    page = Reader(text)
    assert "<script" not in text
    assert "onerror=" not in text.replace("onerror=&#34;", "").replace("onerror=&quot;", "")
    assert EVIL in " ".join(page.text)
    assert WORSE in " ".join(page.text)
    card = hostile._repr_mimebundle_()["text/html"]
    assert EVIL not in card
    assert WORSE not in card


def test_odd_letters_do_not_break_the_file(tmp_path):
    kind = np.arange(12) % 2
    columns = {"a\ud800b": np.where(kind, "x\x00y", "z"), "täglich\u2028": kind, "漢字": kind}
    model = fit(columns, 2)
    model.report(tmp_path / "odd.html", title="\udc00 \x07")
    text = (tmp_path / "odd.html").read_text("utf-8")
    assert "\x00" not in text
    assert "täglich" in text
    assert "漢字" in text


def test_a_large_report_stays_small(planted, tmp_path):
    x, _ = planted(N=10_000, P=100, V=5, S=12, seed=3)
    names = {f"a feature with a rather long name, number {j}": x[:, j] for j in range(100)}
    cases = [f"a case with quite a long name, number {i}" for i in range(10_000)]
    fit(names, 12, n_iter=6, n_chains=1, alpha=0, case_names=cases).report(tmp_path / "large.html")
    assert (tmp_path / "large.html").stat().st_size < 5e6 / 2


def test_wrong_input(recipes, tmp_path):
    with pytest.raises(sklearn.exceptions.NotFittedError):
        BayesianCaseModel().report(tmp_path / "x.html")
    with pytest.raises(ValueError, match="image_shape"):
        recipes.report(tmp_path / "x.html", image_shape=(3, 3))
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        recipes.report(tmp_path / "nowhere" / "x.html")
    assert not list(tmp_path.iterdir())


def test_a_report_replaces_what_was_there(recipes, tmp_path):
    path = tmp_path / "x.html"
    path.write_text("old" * 10_000_000)
    recipes.report(str(path))
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert "oldold" not in path.read_text("utf-8")


# --- notebooks ------------------------------------------------------------------------------------------------------------


def test_a_notebook_shows_a_card_per_cluster_once_fitted(recipes):
    model = recipes
    shown = model._repr_mimebundle_()
    assert shown["text/plain"] == repr(model)
    assert shown["text/html"].count('<section class="card"') == 5
    assert model._repr_html_().count('<section class="card"') == 5
    fresh = BayesianCaseModel()
    assert "bayescase" not in fresh._repr_html_().replace("bayescase.estimator", "")
    assert '<section class="card"' not in fresh._repr_mimebundle_()["text/html"]


def test_a_notebook_shows_text_only_if_scikit_learn_is_told_so(recipes):
    model = recipes
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_two_models_in_a_notebook_share_no_ids(recipes):
    first, second = (re.findall(r'id="(bayescase-\d+)"', recipes._repr_html_()) for _ in range(2))
    assert len(first) == 5
    assert not set(first) & set(second)


def test_a_loaded_model_shows_the_same_cards(recipes, tmp_path):
    recipes.save(tmp_path / "m")
    loaded = BayesianCaseModel.load(tmp_path / "m")
    assert loaded._repr_html_().count('<section class="card"') == 5


# --- a real browser -------------------------------------------------------------------------------------------------------


def visit(browser, path, **settings):
    """(page, what went wrong on it, what it asked for)."""
    page = browser.new_page(**settings)
    wrong, asked = [], []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    return page, wrong, asked


SCREENS = [(name, 1280, "light") for name in ALL]
SCREENS += [("learned", 320, "light"), ("learned", 1280, "dark"), ("recipes", 320, "dark"), ("pictures", 320, "dark")]


@pytest.mark.parametrize(("name", "width", "scheme"), SCREENS)
def test_axe_finds_nothing(browser, axe, pages, name, width, scheme):
    page, wrong, _ = visit(browser, pages[name], viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    page.add_script_tag(path=str(axe))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    told = [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0].get("failureSummary")) for v in found["violations"]]
    assert not told
    assert not wrong
    page.close()


@pytest.mark.parametrize("width", [1280, 320])
@pytest.mark.parametrize("name", ALL)
def test_the_page_fits_the_screen_and_asks_for_nothing(browser, pages, name, width):
    page, wrong, asked = visit(browser, pages[name], viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("window.evil") is None
    assert not wrong
    assert [url for url in asked if not url.startswith("data:")] == [pages[name].as_uri()]
    page.close()


def test_the_keyboard_reaches_everything(browser, pages):
    page, _, _ = visit(browser, pages["recipes"], viewport={"width": 1280, "height": 800})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    summaries = page.locator("summary")
    summaries.nth(0).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    page.close()


def test_the_page_prints(browser, pages):
    page, _, _ = visit(browser, pages["recipes"])
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert not page.locator("nav").is_visible()
    assert page.pdf().startswith(b"%PDF")
    page.close()


def test_cards_in_a_notebook_pass_axe(browser, axe, recipes, table, tmp_path):
    cards = "".join(re.sub(r"<details>.*</details>", "", model._repr_html_(), flags=re.S) for model in (recipes, table))
    path = tmp_path / "notebook.html"
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>x</title></head>'
    path.write_text(f"{head}<body><main><h1>a</h1><h2>b</h2><h3>c</h3>{cards}</main></body></html>", "utf-8")
    for width in (1280, 320):
        page, wrong, _ = visit(browser, path, viewport={"width": width, "height": 800})
        page.add_script_tag(path=str(axe))
        found = page.evaluate("axe.run()")["violations"]
        assert not [(v["id"], v["nodes"][0]["html"][:200]) for v in found]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not wrong
        page.close()
