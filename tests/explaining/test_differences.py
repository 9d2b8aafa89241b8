"""Where chains differ, told: clusters that all found, cases that move, and what the others found instead."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.explaining.explanation import DifferencesExplanation, Explanation
from bayescase.explaining.overall import ClusterInChains, Flow, Way


def test_every_case_that_moves_is_listed_and_no_other(apart):
    found, fitted = apart.explain_differences(), apart.fitted_
    assert {case.row for case in found.cases} == set(np.flatnonzero(fitted.differing.moving))
    for case in found.cases:
        assert case.cluster == apart.labels_[case.row]
        assert set(case.chains) != {case.cluster}
    assert found.shown == (int(np.argmax(apart.chain_overlap_)),)
    best = found.shown[0]
    assert all(case.chains[best] == case.cluster for case in found.cases)  # the results rest on this one alone
    assert f"{len(found.cases)} of 60 cases could as well be in another one" in found.sentence
    assert f"{len(found.cases)} of 60 cases could as well be in another one" in apart.diagnostics_.verdict


def test_flows_have_all_cases(apart):
    found = apart.explain_differences()
    assert len(found.ways) == 2
    assert sorted(c for way in found.ways for c in way.chains) == [c for c in range(3) if c not in found.shown]
    for way in found.ways:
        assert sum(flow.size for flow in way.flows) == 60
        moved = sum(flow.size for flow in way.flows if flow.to != flow.cluster)
        assert moved == sum(case.chains[way.chains[0]] != case.cluster for case in found.cases)
        assert all(word in str(found) for word in found.moves(way)[:5])
    assert [way.lower for way in found.ways] == sorted(way.lower for way in found.ways)


def told(*flows):
    sizes = {0: 20, 1: 10}
    clusters = tuple(ClusterInChains(s, f"kind {s}", n, False, (1.0, 0.5)) for s, n in sizes.items())
    way = Way((1,), 3.0, tuple(Flow(*flow) for flow in flows))
    return DifferencesExplanation(30, 2, (0,), clusters, (), (way,)).moves(way)


def test_what_is_otherwise_in_words():
    assert told((0, 0, 0, 20), (1, 0, 0, 10)) == ("cluster 1 (kind 1) is one with cluster 0 (kind 0)",)
    assert told((0, 0, 0, 11), (0, None, 2, 9), (1, 1, 1, 10)) == (
        "9 of 20 cases of cluster 0 (kind 0) are a cluster of their own",
    )
    assert told((0, 0, 0, 19), (0, 1, 1, 1), (1, 1, 1, 10)) == ("1 of 20 cases of cluster 0 (kind 0) is in cluster 1 (kind 1)",)
    assert told((0, 0, 0, 15), (0, None, 2, 5), (1, 1, 1, 6), (1, None, 2, 4)) == (
        "5 of 20 cases of cluster 0 (kind 0) are in a cluster that is not shown",
        "4 of 10 cases of cluster 1 (kind 1) are in a cluster that is not shown",
    )
    assert told((0, 0, 0, 20), (1, 1, 1, 10)) == ()


def test_chains_that_agree_and_one_alone(planted):
    x, _ = planted(N=40, P=6, noise=0.02)
    agreeing = BayesianCaseModel(3, n_iter=40, n_chains=2, random_state=0).fit(x).explain_differences()
    assert str(agreeing) == "Both chains found the same clusters, and every case is in the same one in each of them."
    assert all(cluster.same and cluster.alike == (1.0, 1.0) for cluster in agreeing.clusters)
    alone = BayesianCaseModel(3, n_iter=40, n_chains=1, random_state=0).fit(x).explain_differences()
    assert str(alone).startswith("One chain alone found these clusters, so there is nothing to compare it with")


@pytest.mark.parametrize("kind", ["apart", "table", "bags", "recipes", "keyless", "unused", "alone"])
def test_json_files_and_data_frames(kind, request, tmp_path):
    pandas = pytest.importorskip("pandas")
    model = request.getfixturevalue(kind)
    found = model.explain_differences()
    assert Explanation.from_json(found.to_json()) == found
    model.save(tmp_path / "model.bcm")
    assert BayesianCaseModel.load(tmp_path / "model.bcm").explain_differences() == found
    assert len(pandas.DataFrame(found.clusters)) == len(model.explain().clusters)
    assert len(pandas.DataFrame(found.cases)) == len(found.cases)


def test_a_folded_model_differs_in_its_own_clusters(apart):
    whole = apart.explain_differences()
    for k in (1, 2, 3):
        found = apart.fold(k).explain_differences()
        assert len(found.clusters) <= k
        assert all(flow.to is not None for way in found.ways for flow in way.flows)
    assert found.n_cases == whole.n_cases
    one = apart.fold(1).explain_differences()
    assert [cluster.same for cluster in one.clusters] == [True]
    assert one.cases == ()


def test_a_table_on_disk_differs_by_its_sample(apart, tmp_path):
    """Rows and names are those of the table, and the labels of chains those of the same table in memory."""
    x = np.array([[*map(str, row)] for row in apart.encoder_.encoding_.decode(*apart.fitted_.data.cases)])
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f\n" + "".join(",".join(row) + "\n" for row in x))
    settings = {
        "n_iter": 30,
        "n_chains": 3,
        "random_state": 0,
        "encoder": {"feature_types": dict.fromkeys("abcdef", "category")},
    }
    disk = BayesianCaseModel(4, **settings).fit(tmp_path / "t.csv")
    memory = BayesianCaseModel(4, **settings).fit({name: x[:, j] for j, name in enumerate("abcdef")})
    assert disk.explain_differences() == memory.explain_differences()
    assert disk.explain_differences().cases
