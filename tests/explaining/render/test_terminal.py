"""Tables for a terminal: the same contents as everywhere, and no markup from others."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from bayescase.explaining.render.terminal import case_table, explanation_table, pair_table, plain_table, tree_table
from bayescase.explaining.words import percent

from ...helpers import fit_model


def shown(table):
    console = Console(width=140, file=io.StringIO(), record=True)
    console.print(table)
    return console.export_text()


def words(text):
    return " ".join(re.sub(r"[│┃┏━┓┡╇┩├─┼┤└┴┘┳]", " ", text).split())


@pytest.mark.parametrize("which", ["recipes", "table", "alone", "keyless", "unused"])
def test_clusters_have_what_their_cards_have(which, request):
    explained = request.getfixturevalue(which).explain()
    text = shown(explanation_table(explained, "file.csv"))
    assert f"file.csv: {explained.summary}" in words(text)
    rows = [tuple(cell.strip() for cell in row.split("│")[2:6]) for row in text.splitlines() if row.startswith("│")]
    for cluster in explained.clusters:
        for d in (*cluster.card().has, *cluster.card().rare):
            shares = (percent(d.here), percent(d.there), percent(d.probability) if d.probability else "")
            assert (f"* {d.words}" if d.key else d.words, *shares) in rows
        if cluster.card().more:
            assert f"and {cluster.card().more} more" in text
        assert f"{cluster.size} of {cluster.n_cases} cases" in words(text)


def test_a_case_beside_its_prototype(recipes):
    case = recipes.explain_case(0)
    text = shown(case_table(case))
    neither = [f.name for f in case.features if f.value is False and f.prototype is False and not f.key]
    listed = {row.split("│")[1].strip() for row in text.splitlines() if row.startswith("│")}
    assert neither
    assert not listed & set(neither)
    assert listed >= {f.name for f in case.features if f.value is True or f.key}


def test_the_tree_of_one_cluster_is_a_sentence(alone):
    assert shown(tree_table(alone.explain_tree())).strip() == "There is only one cluster, so there is nothing to fold."


def test_a_pair_has_both_shares_in_the_columns_of_their_clusters(recipes):
    pair = recipes.explain_pair(0, 1)
    text = shown(pair_table(pair))
    for side, first in ((pair.first, True), (pair.second, False)):
        for d in side.more_often:
            line = next(row for row in text.splitlines() if f"cluster {side.cluster} " in row and f" {d.words} " in row)
            shares = [cell.strip() for cell in line.split("│")[3:5]]
            assert shares == [percent(d.here), percent(d.there)][:: 1 if first else -1]


def test_what_others_wrote_is_no_markup():
    kind = np.arange(24) % 2
    model = fit_model({"[bold]": np.where(kind, "[red]x[/]", "y"), "b": kind}, 2, n_iter=40, n_chains=1, random_state=0)
    model.name_cases(["[blink]"] * 24).name_clusters(["[link]a", "[/]"])
    assert "[bold] = [red]x[/]" in words(shown(explanation_table(model.explain(), "[dim]")))
    assert "[blink]" in shown(case_table(model.explain_case(0)))
    assert "[link]a" in shown(pair_table(model.explain_pair(0, 1)))
    assert "[b]" in shown(plain_table("[b]", ["[c]"], [["[d]"]]))
