"""Plots show the explanations they are given: nothing cut off, nothing left out in silence, no global state."""

import builtins
import copy
import dataclasses
import importlib
import io
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from bayescase.explaining.explanation import Explanation
from bayescase.explaining.render import figures as plots
from bayescase.explaining.render.images import APART, EMPTY, MARKED, PLAIN, level, level_elsewhere, mean_level, pixel_role

from ...helpers import fit_model


def fit(x, S=3, **settings):
    return fit_model(x, S, **({"n_iter": 40, "n_chains": 2, "random_state": 0, "keep_draws": True} | settings))


@pytest.fixture(scope="module")
def images(planted):
    """Images of 4 × 6 pixels with values 0, 1, 2."""
    return fit(planted(N=40, P=24, V=3)[0])


LONG = "a name that goes on and on, $like this$ and _that_ \\ {even} & further, " * 3


@pytest.fixture(scope="module")
def awkward():
    """Names and values nobody would want to draw, and a case without any value."""
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=30)
    table = {
        LONG: np.where(kind, "x" * 90, "$"),
        "$x^$": np.array(["$\\frac{", "a\nb"], dtype=object)[kind],
        "<b>": np.where(kind, "–", "é"),
        "": kind,
        "plain": rng.integers(3, size=30),
    }
    table["plain"] = table["plain"].astype(object)
    table["plain"][3] = None
    return fit(table, 2)


@pytest.fixture(scope="module")
def many(planted):
    """Twenty clusters of three hundred features."""
    return fit(planted(N=60, P=300, V=3, S=20)[0], 20, n_iter=12, n_chains=1)


def all_plots(model, image_shape=None):
    explanation, fitted = model.explain(), model.fitted_
    yield plots.plot_prototypes(explanation)
    yield plots.plot_prototypes(explanation.clusters[0])
    yield plots.plot_subspaces(explanation)
    yield plots.plot_subspaces(explanation.clusters[-1])
    yield plots.plot_values(explanation)
    yield plots.plot_tree(model.explain_tree())
    yield plots.plot_differences(model.explain_differences())
    yield plots.plot_memberships(fitted)
    yield plots.plot_agreement(model.explain_agreement(explanation.clusters[0].cluster))
    yield plots.plot_case(model.explain_case(3))
    yield plots.plot_ribbon(fitted)
    yield plots.plot_history(fitted)
    if image_shape is not None:
        yield plots.plot_prototypes(explanation, image_shape=image_shape)
        yield plots.plot_history(fitted, image_shape=image_shape)


def texts(figure):
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


def words(figure):
    return "\n".join(t.get_text() for t in texts(figure))


def drawn_texts(figure):
    """(text, box) of what is really drawn: not the labels of axes that are switched off."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    hidden = {id(t) for ax in figure.axes if not ax.axison for axis in (ax.xaxis, ax.yaxis) for t in axis.findobj(Text)}
    for ax in figure.axes:
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not min(limits) <= tick.get_loc() <= max(limits):
                    hidden |= {id(tick.label1), id(tick.label2)}
    return [(t, t.get_window_extent(renderer)) for t in texts(figure) if id(t) not in hidden]


def check_figure(figure):
    assert isinstance(figure, Figure)
    width, height = figure.bbox.width, figure.bbox.height
    drawn = drawn_texts(figure)
    for text, box in drawn:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"cut off: {text.get_text()!r} at {box}"
        assert text.get_fontsize() >= 8
    upright = [(t, b) for t, b in drawn if t.get_rotation() == 0]
    x0, y0, x1, y1 = np.array([box.extents for _, box in upright]).T
    across = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    down = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    covered = np.triu((across >= 2) & (down >= 0.35 * np.minimum.outer(y1 - y0, y1 - y0)), k=1)
    pairs = [(upright[a][0].get_text(), upright[b][0].get_text()) for a, b in np.argwhere(covered)]
    assert not pairs, f"one lies over the other: {pairs[:3]}"


CASES = ["table", "awkward", "alone"]


@pytest.mark.parametrize("which", CASES)
def test_no_label_is_cut_off_or_covered(which, request):
    model = request.getfixturevalue(which)
    for figure in all_plots(model):
        check_figure(figure)


def test_no_label_is_cut_off_on_recipes_and_images(recipes, images):
    for figure in all_plots(recipes):
        check_figure(figure)
    for figure in all_plots(images, image_shape=(4, 6)):
        check_figure(figure)


def test_many_clusters_and_features_stay_readable_and_what_is_left_out_is_counted(many):
    explanation = many.explain()
    for figure in all_plots(many, image_shape=(15, 20)):
        check_figure(figure)
        wide, high = figure.get_size_inches()
        assert wide <= 20
        assert high <= 70
    more = f"{len(explanation.clusters) - 12} smaller clusters not shown"
    assert more in words(plots.plot_subspaces(explanation))
    assert more in words(plots.plot_ribbon(many.fitted_))
    assert more in words(plots.plot_history(many.fitted_))
    assert "not shown: 285 features of the prototype" in words(plots.plot_subspaces(explanation))
    assert f"{len(explanation.values) - 30} values not shown" in words(plots.plot_values(explanation))
    cluster = explanation.clusters[0]
    assert f"and {len(cluster.more_often) - 8} more" in words(plots.plot_prototypes(cluster))


def test_figures_use_no_global_state(table):
    code = (
        "import sys\nfrom bayescase.explaining.render import figures, report\nassert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    for figure in all_plots(table):
        figure.savefig(io.BytesIO(), format="svg")
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    for name in [n for n in sys.modules if re.match(r"bayescase\.explaining\.render\.|matplotlib", n)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    for name in ("figures", "report"):
        with pytest.raises(ImportError, match=r"pip install 'bayescase\[plots\]'"):
            importlib.import_module(f"bayescase.explaining.render.{name}")


def test_plots_draw_what_came_back_from_json(recipes):
    explanation = recipes.explain()
    back = Explanation.from_json(explanation.to_json())
    for draw in (plots.plot_prototypes, plots.plot_subspaces, plots.plot_values):
        assert words(draw(back)) == words(draw(explanation))


# --- what they show -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["recipes", "table"])
def test_cards_have_what_the_card_has(which, request):
    for cluster in request.getfixturevalue(which).explain().clusters:
        figure, card = plots.plot_prototypes(cluster), cluster.card()
        shown = [t.get_text() for t in texts(figure)]
        assert card.title in shown
        assert f"{card.size}, {card.like}".split(" (")[0] in " ".join(shown)
        for d in (*card.has, *card.rare):
            assert {d.words, d.shares, d.role} - {""} <= {" ".join(words.split()) for words in shown}
        assert {name for name, _ in card.items} <= set(shown)
        boxes = [p for p in figure.axes[0].patches if type(p).__name__ == "FancyBboxPatch"]
        assert len(boxes) == bool(card.items) + sum(key for _, key in card.items)  # one explains the boxes
        assert ("less often:" in shown) == bool(card.rare)


@pytest.mark.parametrize("letter", ["i", "ab ", "W", "WWWW ", "字"])
def test_the_sentence_of_three_long_names_ends(recipes, images, letter):
    """It was cut after three lines: "would…"."""
    for model, shape in ((recipes, None), (images, (4, 6))):
        explained = model.explain()
        first, *others = explained.clusters
        names = [(letter * 100)[:99] + str(k) for k in range(3)]
        three = tuple(dataclasses.replace(first.prototype, row=k, name=names[k], probability=0.1) for k in range(3))
        first = dataclasses.replace(first, prototype=three[0], candidates=three)
        assert first.like.endswith("would do as well")
        figure = plots.plot_prototypes(dataclasses.replace(explained, clusters=(first, *others)), image_shape=shape)
        ends = sum(cluster.like.endswith("would do as well") for cluster in (first, *others))
        assert " ".join(t.get_text() for t in texts(figure)).count("would do as well") == ends


def test_levels_of_pixels(images):
    cluster = images.explain().clusters[0]
    here = images.labels_ == cluster.cluster
    for j, f in enumerate(cluster.features):
        values = images.feature_values_[j]
        column = images.fitted_.data.x[:, j] - images.fitted_.data.offset[j]
        assert level(f) == values.index(f.value) / (len(values) - 1)
        assert mean_level(f) == pytest.approx(column[here].mean() / (len(values) - 1))
        assert level_elsewhere(f) == pytest.approx(column[~here].mean() / (len(values) - 1))
        want = PLAIN if not f.key else MARKED if f.value > 0 else APART if f.sets_apart else EMPTY
        assert pixel_role(f) == want


def test_images_tell_ink_from_emptiness_by_shape_not_by_colour(images):
    cluster = images.explain().clusters[0]
    figure = plots.plot_prototypes(cluster, image_shape=(4, 6))
    roles = [pixel_role(f) for f in cluster.features]
    marks = [len(c.get_offsets()) for c in figure.axes[0].collections]
    key = 1  # each kind is explained once
    assert sum(marks) == roles.count(APART) + roles.count(EMPTY) + 2 * key
    assert len(figure.axes[0].images) == 4 + 6


def test_names_made_of_pixels_are_not_shown(images):
    cluster = images.explain().clusters[0]
    shown = [t.get_text() for t in texts(plots.plot_prototypes(cluster, image_shape=(4, 6)))]
    assert f"Cluster {cluster.cluster}" in shown
    assert cluster.title not in shown
    named = dataclasses.replace(cluster, name="ones", named=True)
    assert f"Cluster {cluster.cluster}: ones" in words(plots.plot_prototypes(named, image_shape=(4, 6)))


def test_the_heat_map_shows_the_shares_and_boxes_what_is_key(recipes):
    explanation = recipes.explain()
    rows = explanation.telling_values(30)
    figure = plots.plot_values(explanation)
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), [row.shares for row in rows])
    assert len(figure.axes[0].patches) == sum(sum(row.keys) for row in rows)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [row.words for row in rows]


def test_a_heat_map_of_nothing_is_a_sentence(alone):
    assert "No value is much more common" in words(plots.plot_values(alone.explain()))


@pytest.mark.parametrize("N", [1199, 1200, 1201, 1500, 20_000])
def test_memberships_of_more_cases_than_pixels_are_averaged_evenly(N):
    """Column k is the mean over the cases k N / columns … (k + 1) N / columns, parts of cases included."""
    rng = np.random.default_rng(0)
    member = rng.dirichlet(np.ones(3), size=N)
    order = rng.permutation(N)
    picture = plots.averaged(member, order, 1200)
    columns = min(N, 1200)
    assert picture.shape == (columns, 3)
    np.testing.assert_allclose(picture.sum(axis=1), 1)
    fine = np.repeat(member[order], columns, axis=0) if N <= 1500 else None
    if fine is not None:
        np.testing.assert_allclose(picture, fine.reshape(columns, N, 3).mean(axis=1))
    np.testing.assert_allclose(picture.mean(axis=0), member.mean(axis=0))


def test_cases_lie_where_their_clusters_begin_and_end(planted):
    """The lines between clusters are at the cases where the main cluster changes, and so is the picture."""
    N = 20_000
    labels = np.sort(np.random.default_rng(0).integers(4, size=N))
    picture = plots.averaged(np.eye(4)[labels], np.arange(N), 1200)
    edges = np.cumsum(np.bincount(labels))[:-1]
    first = [int(np.argmax(picture[:, s] > 0.5)) for s in range(1, 4)]
    assert all(abs(column * N / 1200 - edge) <= N / 1200 for column, edge in zip(first, edges, strict=True))


def test_agreement_shows_agreement(recipes):
    found = recipes.explain_agreement(1)
    cells = plots.plot_agreement(found, most=10).axes[0].images[0].get_array()
    assert cells.tolist() == [[2 if a is None else int(a) for a in m.agrees[:10]] for m in found.members]


def test_the_ribbon_ranks_the_prototypes_of_each_draw_and_names_them(recipes):
    figure = plots.plot_ribbon(recipes.fitted_)
    p = recipes.fitted_.posterior.p
    for s in range(5):
        ranks = figure.axes[s].images[0].get_array()
        best = recipes.fitted_.prototype_ranking[s][0]
        assert (np.asarray(ranks) == 0).mean() == pytest.approx(best.probability)
        assert ranks.shape == p.shape[:2]
        assert recipes.case_names_[best.row][:20] in words(figure)
    lines = figure.axes[5].get_lines()
    pooled = np.flatnonzero(recipes.chain_overlap_ >= 0.9)
    for line, c in zip(lines, pooled, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), recipes.log_joint_[c])


def test_history_shows_the_draws_of_the_best_chain(table):
    best = int(np.argmax(table.draws_.log_joint.mean(axis=1)))
    cluster = table.explain().clusters[0]
    shown = plots.plot_history(table.fitted_).axes[0].images[0].get_array()
    has = [f.key or f.value not in (None, False) for f in cluster.features]
    assert shown.shape == (sum(has), table.draws_.p.shape[1])
    assert shown.sum() == table.draws_.omega[best, :, cluster.cluster][:, has].sum()


def test_history_starts_at_the_first_sweep_without_burn_in(planted):
    x, _ = planted(N=30, P=4, V=2)
    model = fit(x, 2, burn_in=0, thin=1, n_iter=20)
    shown = words(plots.plot_history(model.fitted_, image_shape=(2, 2), sweeps=4))
    assert "sweep 1\n" in shown
    assert "sweep 20" in shown


def test_a_prototype_without_any_value_is_drawn():
    x = np.full((6, 2), np.nan)
    x[1:] = [[0, 1], [0, 1], [1, 0], [1, 0], [1, 1]]
    with pytest.warns(UserWarning, match="no value"):
        model = fit(x, 1, prototype_prior=[1, 0, 0, 0, 0, 0], n_chains=1)
    assert model.prototypes_.tolist() == [0]
    assert not model.explain().clusters[0].key_features
    for figure in all_plots(model):
        check_figure(figure)


def test_a_case_shows_its_weights(table):
    case = table.explain_case(0)
    bars = plots.plot_case(case).axes[1].patches
    assert [bar.get_width() for bar in bars] == pytest.approx([c.weight for c in case.reasons[0].contributions])


# --- wrong input ----------------------------------------------------------------------------------------------------------


def test_wrong_input_is_told_what_to_do(table, images, mixed):
    with pytest.raises(TypeError, match=r"takes what model.explain\(\).* returns, not BayesianCaseModel"):
        plots.plot_prototypes(table)
    with pytest.raises(TypeError, match=r"takes what model.explain_case\(case\) returns"):
        plots.plot_case(table.explain())
    with pytest.raises(TypeError, match=r"takes what model.explain_agreement\(cluster\) returns"):
        plots.plot_agreement(table.explain())
    for draw in (plots.plot_memberships, plots.plot_ribbon, plots.plot_history):
        with pytest.raises(TypeError, match=r"takes model.fitted_, not BayesianCaseModel"):
            draw(table)
    with pytest.raises(ValueError, match=r"image_shape=\(5, 5\) has 25 pixels, but the model has 24 features"):
        plots.plot_prototypes(images.explain(), image_shape=(5, 5))
    for wrong in (24, (4,), (4.0, 6), (-4, -6), "46", (True, 24)):
        with pytest.raises(ValueError, match="two positive whole numbers, height and width"):
            plots.plot_prototypes(images.explain(), image_shape=wrong)
    with pytest.raises(ValueError, match="sweeps must be a positive whole number"):
        plots.plot_history(images.fitted_, image_shape=(4, 6), sweeps=0)
    forgetful = fit(mixed[0], keep_draws=False)
    with pytest.raises(ValueError, match="fit with keep_draws=True"):
        plots.plot_history(forgetful.fitted_)


def test_the_tree_has_every_cluster_and_the_prototypes_of_its_joins(bags):
    tree = bags.explain_tree(tolerance=0.4)
    figure = plots.plot_tree(tree)
    check_figure(figure)
    shown = words(figure)
    for node in tree.nodes[:5]:
        assert f"{node.size} cases like {node.prototype.name}"[:20] in shown
    for node in tree.joins:
        assert node.prototype.name[:8] in shown
    assert tree.sentence[:30] in shown
    assert "40%" in shown


def test_a_folded_model_draws_what_it_has(bags):
    fewer = bags.fold(3)
    for draw in (plots.plot_prototypes, plots.plot_subspaces, plots.plot_values):
        check_figure(draw(fewer.explain()))
    check_figure(plots.plot_memberships(fewer.fitted_))
    assert words(plots.plot_tree(fewer.explain_tree())) == words(plots.plot_tree(bags.explain_tree()))
    for draw in (plots.plot_ribbon, plots.plot_history):
        with pytest.raises(ValueError, match="A folded model has no sweeps of its own"):
            draw(fewer.fitted_)


def test_differences_count_the_cases_that_move(apart):
    found = apart.explain_differences()
    figure = plots.plot_differences(found)
    check_figure(figure)
    shown = words(figure)
    for way in found.ways:
        assert way.title in shown
        largest = max((flow for flow in way.flows if flow.to != flow.cluster), key=lambda flow: flow.size)
        assert f"\n{largest.size}" in shown
    patches = [patch for patch in figure.axes[0].patches if type(patch).__name__ == "PathPatch"]
    assert len(patches) == sum(len(way.flows) for way in found.ways)
    with pytest.raises(TypeError, match="explain_differences"):
        plots.plot_differences(apart.explain())


def test_many_ways_are_counted(apart):
    found = apart.explain_differences()
    many = dataclasses.replace(found, ways=found.ways[:1] * 5)
    figure = plots.plot_differences(many)
    check_figure(figure)
    assert "not shown: 2 more ways to cluster the cases" in words(figure)


def test_clusters_have_their_names_in_every_picture(bags):
    named = copy.copy(bags).name_clusters([f"kind {'abcde'[s]}" for s in range(bags.n_clusters_)])
    used = [cluster.cluster for cluster in named.explain().clusters]
    drawn = {
        "values": plots.plot_values(named.explain()),
        "subspaces": plots.plot_subspaces(named.explain()),
        "prototypes": plots.plot_prototypes(named.explain()),
        "memberships": plots.plot_memberships(named.fitted_),
        "ribbon": plots.plot_ribbon(named.fitted_),
        "history": plots.plot_history(named.fitted_),
        "tree": plots.plot_tree(named.explain_tree()),
        "case": plots.plot_case(named.explain_case(0)),
    }
    for kind, figure in drawn.items():
        text = " ".join(t.get_text() for t in figure.findobj(Text))
        assert all(named.cluster_names_[s] in text for s in used), kind
    for s in used:
        agreement = named.explain_agreement(s)
        assert named.cluster_names_[s] in str(agreement)
        text = " ".join(t.get_text() for t in plots.plot_agreement(agreement).findobj(Text))
        assert named.cluster_names_[s] in text
