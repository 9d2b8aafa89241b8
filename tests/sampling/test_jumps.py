"""Switches between descriptions, and fits that jump between them."""

import warnings

import numpy as np
import pytest

from bayescase import BayesianCaseModel, ParameterError
from bayescase.sampling.chain import Chain
from bayescase.sampling.jumps import Switches, Tally, find_switches, how_often, together

BEST = np.repeat([0, 1, 2], [10, 8, 6])


def gain(labels, side):
    """As if what changes most gained most."""
    return float(((side >= 0) & (side != labels)).sum())


def test_a_switch_is_a_group_of_clusters_that_exchange_cases():
    """The other run is named otherwise and has five cases of the second cluster in the first; the third is the same."""
    other = np.where(np.arange(24) < 15, 2, np.where(BEST == 1, 0, 1))
    found = find_switches(BEST, [other, BEST], 3, gain)
    assert found.labels(0).tolist() == [0, 1]
    assert len(found.weight) == 1
    assert found.differing.tolist() == [5]
    assert found.sides.tolist() == [[*np.where(BEST == 2, -1, BEST)], [*[0] * 15, *[1] * 3, *[-1] * 6]]


def test_small_differences_are_none_and_nearly_the_same_switches_are_one():
    two, five = BEST.copy(), BEST.copy()
    two[10:12] = five[10:15] = 0
    again = five.copy()
    again[15] = 0
    found = find_switches(BEST, [two, five, again], 3, gain)
    assert found.differing.tolist() == [6]  # of the two the one that gains more
    assert not len(find_switches(BEST, [two], 3, gain).weight)


def test_a_large_part_of_a_small_cluster_makes_a_difference():
    """Two of the four cases of the third cluster go to the second: as many of a larger one would not count."""
    best = np.repeat([0, 1, 2], [10, 10, 4])
    other = np.where(np.arange(24) >= 22, 1, best)
    assert find_switches(best, [other], 3, gain).labels(0).tolist() == [1, 2]
    assert not len(find_switches(best, [np.where(np.arange(24) < 2, 1, best)], 3, gain).weight)


def test_switches_to_other_chains_come_first():
    """Else those that gain most."""
    five, eight = np.where(np.arange(24) < 5, 1, BEST), np.where(np.arange(24) >= 16, 0, BEST)
    assert find_switches(BEST, [five, eight], 3, gain).differing.tolist() == [8, 5]
    assert find_switches(BEST, [five, eight], 3, gain, n_sure=1).differing.tolist() == [5, 8]


def test_switches_of_other_chains_are_named_alike_and_none_is_twice():
    other = np.where((BEST == 1) & (np.arange(24) < 15), 0, BEST)
    mine = find_switches(BEST, [other], 3, gain)
    to = np.array([2, 0, 1])
    theirs = find_switches(np.argsort(to)[BEST], [np.argsort(to)[other]], 3, gain)
    assert not np.array_equal(theirs.sides, mine.sides)
    assert np.array_equal(theirs.named(to).sides, mine.sides)
    both = together([mine, theirs.named(to), Switches.between(mine.sides[::-1])])
    assert np.array_equal(both.sides, mine.sides)


def test_some_are_kept_with_their_sides():
    switches = Switches(np.arange(6)[:, None] * np.ones(4, dtype=np.int8), np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.2, 0.3]))
    kept = switches.kept(np.array([True, False, True]))
    assert kept.weight.tolist() == [0.5, 2.0]
    assert kept.share.tolist() == [0.1, 0.3]
    assert kept.sides[:, 0].tolist() == [0, 1, 4, 5]


def test_what_is_learned_weighs_switches():
    """By the share of tries that are accepted, and the cases that differ, squared; hopeless ones weigh nothing and go."""
    sides = np.zeros((6, 10), dtype=np.int8)
    sides[1, :4] = sides[3, :2] = sides[5, :6] = 1
    tally = Tally.none(3)
    for _ in range(20):
        tally.tell(0, 0.5)
        tally.tell(1, 0.25)
        tally.tell(2, 0.0)
    both = tally.plus(tally).plus(tally)
    weight = Switches.between(sides).weighed(both).weight
    assert weight[0] / weight[1] == pytest.approx(8.0, rel=0.05)
    assert weight[2] == 0.0
    assert tally.of(np.array([True, False, True])).tried.tolist() == [20.0, 60.0]
    assert both.to_keep.tolist() == [True, True, False]
    both.made[0] = 2
    assert both._replace(sweeps=30).to_keep.tolist() == [False, True, False]  # sweeps go there by themselves


def test_means_over_cases_vary_least():
    """Switches of other labels by d / √a, and less below a share of 0.1; those of the same labels are one."""
    sides = np.zeros((8, 20), dtype=np.int8)
    sides[1, :8] = sides[3, :8] = 1
    sides[4:6], sides[5, :4], sides[6:], sides[7, :4] = 2, 3, 4, 5
    tally = Tally(np.array([20.0, 20.0, 5.0, 0.1]), np.full(4, 50.0), np.zeros(4), 1)
    switches = Switches.between(sides).balanced(tally)
    same, other, seldom = switches.weight[:2].sum(), *switches.weight[2:]
    share = switches.share
    assert switches.weight[0] == switches.weight[1]
    assert same / other == pytest.approx(8 / 4 * np.sqrt(share[2] / share[0]))
    assert seldom / other == pytest.approx(share[3] * 0.1**-1.5 * np.sqrt(share[2]))


def test_tries_take_as_long_as_sweeps_and_are_no_more_than_needed():
    sides = np.array([np.arange(400) % 2, np.arange(400) // 200], dtype=np.int8)

    def often(share, cells, bags=False):
        switches = Switches(sides, np.ones(1), np.array([share]))
        return how_often(switches, np.full(400, cells), bags)

    assert often(0.01, 1) == (1, 2)
    assert often(0.5, 1) == (5, 1)
    assert often(0.01, 50) == (1, 1)
    assert often(0.01, 1, bags=True) == (1, 1)
    assert [often(0.5, 1).at(t) for t in range(6)] == [1, 0, 0, 0, 0, 1]
    assert how_often(Switches.none(), np.full(400, 9), False).at(0) == 0


def test_few_of_many_cases_make_no_difference():
    many = np.repeat([0, 1], 1000)
    three = np.where(np.arange(2000) < 3, 1, many)
    assert not len(find_switches(many, [three], 2, gain).weight)


def test_which_side_is_nearer():
    """By cases that the side says something about."""
    switches = Switches.between(np.array([[0, 0, 1, -1], [1, 1, 0, -1]], dtype=np.int8))
    assert switches.nearer(np.array([0, 0, 0, 1])).tolist() == [False]
    assert switches.nearer(np.array([1, 0, 0, 0])).tolist() == [True]


@pytest.fixture(scope="module")
def two_ways():
    """Cases that fall in two by the first features, or by the others, which are the same of the cases in reverse."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.integers(2, size=(60, 1)), 4, axis=1)
    x = np.where(rng.random(x.shape) < 0.15, 1 - x, x)
    return np.concatenate([x, x[::-1]], axis=1)


def fit(x, monkeypatch=None, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BayesianCaseModel(2, **{"n_iter": 300, "n_init": 8, "n_chains": 2, "random_state": 0} | how).fit(x)


def ways_taken(model, monkeypatch, x):
    """How often the chains of a fit like this one change from one way to the other."""
    seen = []
    step = Chain.step

    def watched(self, t, plan, driver):
        step(self, t, plan, driver)
        z = self.rows.labels().reshape(x.shape)[:, 0]
        first, other = (abs(np.corrcoef(z, x[:, j])[0, 1]) if z.any() and not z.all() else 0.0 for j in (0, 4))
        seen.append((self.number, first > other))

    monkeypatch.setattr(Chain, "step", watched)
    model.fit(x)
    return sum(int((np.diff([way for c, way in seen if c == number]) != 0).sum()) for number in (0, 1))


def test_chains_go_to_and_fro(two_ways, monkeypatch):
    settings = {"n_iter": 300, "n_init": 8, "n_chains": 2, "random_state": 0, "n_jobs": 1}
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("ignore")
        plain = ways_taken(BayesianCaseModel(2, moves="cases", **settings), patch, two_ways)
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("ignore")
        jumping = ways_taken(BayesianCaseModel(2, moves="jumps", **settings), patch, two_ways)
    assert plain == 0
    assert jumping >= 20


def test_threads_and_checkpoints_do_not_change_a_fit(two_ways, tmp_path):
    one = fit(two_ways, moves="jumps", n_jobs=1)
    two = fit(two_ways, moves="jumps", n_jobs=2)
    path = tmp_path / "run"
    model = BayesianCaseModel(2, n_iter=300, n_init=8, n_chains=2, random_state=0, moves="jumps")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(two_ways, checkpoint=path, callback=lambda report: report.sweep == 120)
        assert model.interrupted_
        again = BayesianCaseModel(2, n_iter=300, n_init=8, n_chains=2, random_state=0, moves="jumps")
        again.fit(two_ways, checkpoint=path)
    for other in (two, again):
        assert np.array_equal(one.log_joint_, other.log_joint_)
        assert np.array_equal(one.memberships_, other.memberships_)


def started(table, path, n_iter, callback=None, **settings):
    """A fit that goes on from the checkpoint, if there is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianCaseModel(2, n_iter=n_iter, n_chains=2, random_state=0, **settings)
        return model.fit(table, checkpoint=path, callback=callback)


def test_a_longer_run_takes_up_one_that_did_not_search(two_ways, tmp_path):
    """By default runs of 250 sweeps and more search and jump: one that goes on does what it has begun with."""
    one, two = (fit(two_ways, n_iter=n, n_init=1) for n in (300, 700))
    started(two_ways, tmp_path / "run", 100)
    for n, wanted in ((300, one), (700, two)):
        found = started(two_ways, tmp_path / "run", n)
        assert np.array_equal(found.log_joint_, wanted.log_joint_)
        assert found.fitted_.plan.moves == "cases"
    assert found.fitted_.problem.could_jump  # a run of its own would


def test_a_shorter_run_takes_up_switches(two_ways, tmp_path):
    started(two_ways, tmp_path / "run", 250, lambda report: report.sweep == 30)
    found = started(two_ways, tmp_path / "run", 60)
    assert found.fitted_.plan.moves == "jumps"
    assert np.array_equal(found.log_joint_, fit(two_ways, n_iter=60, n_init=16, moves="jumps").log_joint_)


def test_chains_that_jump_call_their_clusters_alike(two_ways, monkeypatch):
    """Each chain goes round both ways. By the first draw that it keeps, one was named after the one, one after the other."""
    jumping = [fit(two_ways, moves="jumps", random_state=seed).fitted_.posterior.overlap.min() for seed in range(4)]
    assert min(jumping) > 0.85
    monkeypatch.setattr("bayescase.sampling.run.Run.agree_on_names", lambda run: None)
    first = [fit(two_ways, moves="jumps", random_state=seed).fitted_.posterior.overlap.min() for seed in range(4)]
    assert min(first) < 0.75


@pytest.mark.parametrize(("first", "then"), [("cases", "auto"), ("auto", "jumps"), ("cases", "jumps"), ("cases", "none")])
def test_a_run_with_other_moves_is_another_one(two_ways, tmp_path, first, then):
    started(two_ways, tmp_path / "run", 40, moves=first)
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        started(two_ways, tmp_path / "run", 300, moves=then)


def test_bags_and_number_of_clusters(two_ways):
    lists = [[f"{j}{v}" for j, v in enumerate(row)] for row in two_ways]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bags = BayesianCaseModel(2, n_iter=60, n_init=4, n_chains=2, random_state=0, moves="jumps").fit({"items": lists})
        auto = BayesianCaseModel("auto", n_iter=60, n_init=4, n_chains=2, random_state=0, moves="jumps").fit(two_ways)
    assert np.isfinite(bags.log_joint_).all()
    assert np.isfinite(auto.log_joint_).all()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"n_init": 1}, "needs a search for the start"),
        ({"n_iter": 60}, "fewer than 250 sweeps makes none; make it longer with n_iter=250, or ask for one with n_init=4"),
        ({"n_iter": "auto", "max_iter": 200}, "makes none; make it longer with max_iter=250"),
        ({"n_iter": 60, "n_init": 1}, "n_init of at least 2"),
        ({"init": "cells"}, "needs a search for the start"),
        ({"sampler": "collapsed"}, "sampler='rows'"),
    ],
)
def test_jumps_need_a_search(two_ways, how, says):
    with pytest.raises(ParameterError, match=says):
        BayesianCaseModel(2, moves="jumps", **{"n_iter": 300, **how}).fit(two_ways)


@pytest.mark.parametrize(
    ("how", "like"),
    [({}, "jumps"), ({"n_init": 1}, "cases"), ({"init": "cells"}, "cases"), ({"sampler": "collapsed"}, "none")],
)
def test_small_tables_have_jumps_by_default_if_there_is_a_search(two_ways, how, like):
    assert np.array_equal(fit(two_ways, **how).log_joint_, fit(two_ways, moves=like, **how).log_joint_)


def test_large_tables_have_no_jumps():
    with pytest.raises(ParameterError, match="at most 50,000 cells; these have 50,020"):
        BayesianCaseModel(2, moves="jumps").fit(np.arange(50_020).reshape(-1, 20) % 3)


@pytest.mark.parametrize(
    ("how", "could"),
    [
        ({}, False),
        ({"moves": "cases"}, True),
        ({"moves": "clusters"}, False),
        ({"moves": "cases", "n_init": 1}, False),
        ({"moves": "cases", "init": "cells"}, False),
    ],
)
def test_which_fits_could_have_jumped(two_ways, how, could):
    """Those are advised to, if chains differ or hardly go to and fro."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianCaseModel(2, n_chains=2, random_state=0, **{"n_iter": 20, "n_init": 2} | how).fit(two_ways)
    assert model.fitted_.problem.could_jump == could
